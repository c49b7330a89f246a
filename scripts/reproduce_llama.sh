#!/usr/bin/env bash
# Compile llama.cpp twice, in two folders, and compare the wheels: the same inputs must give the same bytes.
#   scripts/reproduce_llama.sh    takes twenty minutes or more; GLIBC=2.28 compiles with zig, as for build_wheel.sh
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in first second; do
    mkdir "$work/$name"
    TMPDIR=$work/$name scripts/build_wheel.sh "$work/$name/built"
done
cd "$work"
if cmp first/built/*.whl second/built/*.whl; then
    sha256sum first/built/*.whl
else
    for name in first second; do mkdir "$name/files" && (cd "$name/files" && python3 -m zipfile -e ../built/*.whl .); done
    diff -rq first/files second/files >&2 || true
    exit 1
fi
