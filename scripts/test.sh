#!/usr/bin/env bash
# Set up where needed, then lint, types and tests with the tiny models. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
PATH="$PWD/.venv/bin:$PATH"

local-rag models pull tiny
ruff check .
ruff format --check .
mypy
lint-imports --no-logo
scripts/fetch_axe.sh
# What was skipped is printed with its reason, the browser's tests among it, and what took longest.
pytest -rs --durations=20 "$@"
