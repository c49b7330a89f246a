#!/usr/bin/env bash
# Do 500 random commands on a library, or as many as the first argument says, and compare it with a simple model of
# what must be found after each. The second argument is the seed. Stops with exit code 1 at the first difference.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
.venv/bin/local-rag models pull tiny
exec .venv/bin/python scripts/soak.py "$@"
