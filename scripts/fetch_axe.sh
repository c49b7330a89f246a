#!/usr/bin/env bash
# Download axe-core into .axe/. The browser tests use it to check accessibility; it is not part of the program. If it or a
# browser is missing, this script says so and succeeds, and those tests are skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
version=4.14.1
for needed in npm chromium chromedriver; do
  if ! command -v "$needed" >/dev/null; then
    echo "axe-core was not downloaded: $needed is not installed (apt-get install npm chromium chromium-driver)."
    exit 0
  fi
done
if [ -f .axe/axe.min.js ] && grep -q "v$version" .axe/axe.min.js; then exit 0; fi
fetched=$(mktemp -d)
trap 'rm -rf "$fetched"' EXIT
if ! (cd "$fetched" && npm pack --silent "axe-core@$version" >/dev/null && tar -xzf axe-core-*.tgz); then
  echo "axe-core was not downloaded: npm could not download axe-core@$version."
  exit 0
fi
mkdir -p .axe
mv "$fetched/package/axe.min.js" .axe/
