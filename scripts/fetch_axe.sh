#!/usr/bin/env bash
# Fetch axe-core, by which the browser's tests check accessibility, into .axe/. Only tests use it; it is not shipped.
set -euo pipefail
cd "$(dirname "$0")/.."
version=4.14.1
if [ -f .axe/axe.min.js ] && grep -q "v$version" .axe/axe.min.js; then exit 0; fi
fetched=$(mktemp -d)
trap 'rm -rf "$fetched"' EXIT
(cd "$fetched" && npm pack --silent "axe-core@$version" >/dev/null && tar -xzf axe-core-*.tgz)
mkdir -p .axe
mv "$fetched/package/axe.min.js" .axe/
