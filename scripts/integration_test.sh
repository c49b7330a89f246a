#!/usr/bin/env bash
# Run the tests that need the starter models (1.7 GB, downloaded once). Takes some minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
export LOCAL_RAG_KEEP_WARM=0 # no command leaves a process behind
scripts/setup.sh --dev
.venv/bin/local-rag models pull starter
exec .venv/bin/pytest -m integration "$@"
