#!/usr/bin/env bash
# Fetch axe-core, by which the browser's tests check accessibility, into .axe/. Only tests use it; it is not shipped.
# Where it cannot be had, or there is no browser to use it in, say so and go on: those tests are skipped then.
set -euo pipefail
cd "$(dirname "$0")/.."
version=4.14.1
for needed in npm chromium chromedriver; do
  if ! command -v "$needed" >/dev/null; then
    echo "axe-core is not fetched: $needed is not installed (apt-get install npm chromium chromium-driver)."
    exit 0
  fi
done
if [ -f .axe/axe.min.js ] && grep -q "v$version" .axe/axe.min.js; then exit 0; fi
fetched=$(mktemp -d)
trap 'rm -rf "$fetched"' EXIT
if ! (cd "$fetched" && npm pack --silent "axe-core@$version" >/dev/null && tar -xzf axe-core-*.tgz); then
  echo "axe-core is not fetched: npm could not get axe-core@$version."
  exit 0
fi
mkdir -p .axe
mv "$fetched/package/axe.min.js" .axe/
