#!/usr/bin/env bash
# Kill `local-rag index` 200 times, fail its writes, fill its disk, and check that nothing finished is lost; then write the
# figures to docs/reliability.md. Takes about 15 minutes. Arguments go to scripts/crash_test.py, such as `--kills 20`.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh
.venv/bin/local-rag models pull tiny
.venv/bin/python scripts/crash_test.py "$@"
exec .venv/bin/python scripts/write_docs.py
