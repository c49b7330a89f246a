#!/usr/bin/env bash
# Set up if needed, check style, layers and types, and run the tests in two processes with the tiny models.
#   scripts/test.sh            all tests except the long runs: at most 15 minutes on two cores
#   scripts/test.sh --quick    only the quick tests, and no check of types: at most 90 seconds
#   scripts/test.sh --rest     only the long runs (marked `rest`), scripts/cluster_test.sh full and
#                              scripts/airgap_test.sh: at most 60 minutes
# Other arguments go to pytest, which then runs the tests that they name.
set -euo pipefail
cd "$(dirname "$0")/.."
export LOCAL_RAG_KEEP_WARM=0 # no command leaves a process behind
scripts/setup.sh --dev
PATH="$PWD/.venv/bin:$PATH"
# pytest prints why it skipped a test, such as those of the browser, and which tests took longest.
tests() { pytest --numprocesses 2 --dist "$by" -rs --durations=20 "$@"; }
by=worksteal

local-rag models pull tiny
if [ "${1-}" = --rest ]; then
    scripts/fetch_axe.sh
    by=loadfile # one browser, one cluster
    tests -m "rest and not integration" "${@:2}"
    if python -c 'import qdrant_client, qdrant_edge, ray' 2>/dev/null; then scripts/cluster_test.sh full; fi
    exec scripts/airgap_test.sh tiny
fi
ruff check .
ruff format --check .
lint-imports --no-logo
if [ "${1-}" = --quick ]; then
    tests -m "not slow and not rest and not integration" "${@:2}"
    exit
fi
mypy
if [ $# -gt 0 ]; then
    tests "$@"
else
    tests -m "not rest and not integration"
fi
