#!/usr/bin/env bash
# Set up where needed, then lint, types and tests with the tiny models, and the way across an air gap with a bundle of
# them. Arguments go to pytest, which then is all that runs at the end.
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
[ $# -gt 0 ] || scripts/airgap_test.sh tiny
