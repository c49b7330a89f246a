#!/usr/bin/env bash
# Test clusters with real engines: two machines of Ray on loopback, and Qdrant's engine core behind its client.
# `full` also loses a machine and the driver, lets one join, tries a wrong token and real models: some minutes.
# With LOCAL_RAG_TEST_QDRANT_URL a true Qdrant server takes the place of the engine core, where none is killed.
set -euo pipefail
cd "$(dirname "$0")/.."
case "${1-}" in
    "") ;;
    full) export LOCAL_RAG_TEST_CLUSTER=full ;;
    *) echo "usage: scripts/cluster_test.sh [full]" >&2; exit 2 ;;
esac
scripts/setup.sh
PATH="$PWD/.venv/bin:$PATH"
if ! reason=$(python -c 'import qdrant_client, qdrant_edge, ray' 2>&1); then
    echo "Ray or Qdrant is not installed (${reason##*$'\n'}); run \`pip install -c constraints.txt '.[cluster-test]'\`." >&2
    exit 1
fi
local-rag models pull tiny
pytest tests/cluster tests/cli/test_cluster.py
