#!/usr/bin/env bash
# Test clusters with real engines, both over TLS: two Ray nodes on loopback, and Qdrant's engine core below its client;
# as root also two machines on a network of their own, behind the firewall of docs/scale.md. `full` also kills a node and
# the driver, adds a node, and tests a wrong token and real models; it takes some minutes.
# LOCAL_RAG_TEST_QDRANT_URL names a Qdrant server to use instead of the engine core, except where a test kills it.
set -euo pipefail
cd "$(dirname "$0")/.."
export LOCAL_RAG_KEEP_WARM=0 # no command leaves a process behind
case "${1-}" in
    "") ;;
    full) export LOCAL_RAG_TEST_CLUSTER=full ;;
    *) echo "usage: scripts/cluster_test.sh [full]" >&2; exit 2 ;;
esac
scripts/setup.sh --dev
PATH="$PWD/.venv/bin:$PATH"
if ! reason=$(python -c 'import qdrant_client, qdrant_edge, ray' 2>&1); then
    echo "Ray or Qdrant is not installed (${reason##*$'\n'}); run \`pip install -c constraints.txt '.[cluster-test]'\`." >&2
    exit 1
fi
local-rag models pull tiny
pytest tests/cluster tests/cli/test_cluster.py tests/index/test_every_index.py
