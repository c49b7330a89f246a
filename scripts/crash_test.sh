#!/usr/bin/env bash
# Kill `local-rag index` 200 times, let its writes fail, fill its disk, and check that no finished work is lost. Then write
# the figures to docs/reliability.md. Takes about 15 minutes. Arguments such as `--kills 20` go to scripts/crash_test.py.
set -euo pipefail
cd "$(dirname "$0")/.."
export LOCAL_RAG_KEEP_WARM=0 # no command leaves a process behind
scripts/setup.sh
.venv/bin/local-rag models pull tiny
.venv/bin/python scripts/crash_test.py "$@"
exec .venv/bin/python scripts/write_docs.py
