#!/usr/bin/env bash
# Set up, pull the starter models, index corpus/ with the contexts of all chunks, show one of them and answer one
# question. A second run downloads and computes nothing again.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${LOCAL_RAG_PROFILE:-starter}
scripts/setup.sh --pull "$profile"

question=${1:-"How many weeks of paid leave does the parent who gives birth get in Ireland?"}
show() { echo; echo "\$ $*"; "$@"; }
PATH="$PWD/.venv/bin:$PATH"

show local-rag index corpus --profile "$profile"
show local-rag search "$question" --explain --top 1
show local-rag ask "$question"
show local-rag status
