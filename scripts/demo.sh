#!/usr/bin/env bash
# Set up, pull the starter models, index corpus/, answer one question, and write sentences about chunks. A second run
# downloads and computes nothing again.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh

profile=${LOCAL_RAG_PROFILE:-starter}
question=${1:-"How many weeks of paid leave does the parent who gives birth get in Ireland?"}
show() { echo; echo "\$ $*"; "$@"; }
PATH="$PWD/.venv/bin:$PATH"

show local-rag models pull "$profile"
# Contexts by code are ready with the first index. Then the question is asked; then a model writes its sentences.
LOCAL_RAG_CONTEXT_MINUTES=0 show local-rag index corpus --profile "$profile"
show local-rag ask "$question"
show local-rag index
# The sentence about this table lets its passage come first; without it, it comes third.
show local-rag search "ST-4480 accuracy" --no-rerank --explain --top 1
show local-rag status
