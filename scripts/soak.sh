#!/usr/bin/env bash
# Run random commands on a library, 500 or as many as the first argument says, and compare the library with a simple model
# after each. The second argument is the seed. Stops with exit code 1 at the first difference.
set -euo pipefail
cd "$(dirname "$0")/.."
export LOCAL_RAG_KEEP_WARM=0 # no command leaves a process behind
scripts/setup.sh
.venv/bin/local-rag models pull tiny
exec .venv/bin/python scripts/soak.py "$@"
