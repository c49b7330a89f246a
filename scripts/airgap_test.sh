#!/usr/bin/env bash
# Go the whole way across an air gap with a profile, by default tiny: pack, then as another user, without network,
# compiler, pip configuration and home: verify, install, index, ask, update, roll back, uninstall.
# With tiny, llama.cpp is packed as it is installed here; with others it is built for all processors.
# AIRGAP_PACKED names a folder with a `bundle` and an `update` that were packed before, to go the other half of the way.
# Exit code 0 when the whole way worked. What this machine does not allow is said and left out.
set -euo pipefail
cd "$(dirname "$0")/.."
profile=${1:-tiny}
python=${PYTHON:-}
[ -n "$python" ] || { [ -x .venv/bin/python ] && python=$PWD/.venv/bin/python || python=$(command -v python3); }
llama=portable
[ "$profile" = tiny ] && llama=installed
work=$(mktemp -d "${TMPDIR:-/tmp}/airgap.XXXXXX")
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
pack() { "$python" -P -c 'from local_rag.cli.main import main; main()' bundle create --profile "$profile" --llama "$llama" "$@"; }
export PYTHONPATH=$PWD

# A network namespace of its own. Where none can be made, local-rag's own seal is all that closes the network.
apart=()
if unshare -n true 2>/dev/null; then
    apart=(unshare -n)
elif unshare -rn true 2>/dev/null; then
    apart=(unshare -rn)
else
    echo "Not done: this machine allows no network namespace, so the network is closed by local-rag alone." >&2
fi
user=()
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && [ "${apart[*]:-}" != "unshare -rn" ]; then
    user=(setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs)
elif [ "$(id -u)" = 0 ]; then
    echo "Not done: this machine lets root become no other user." >&2
fi

seconds() { date +%s; }
started=$(seconds)
if [ -n "${AIRGAP_PACKED:-}" ]; then
    cp -r "$AIRGAP_PACKED/bundle" "$AIRGAP_PACKED/update" "$work"
    packed=$(seconds)
else
    echo "== packing the profile $profile"
    pack --output "$work/bundle" --part-size 200M
    packed=$(seconds)
    pack --output "$work/update" --without-models
fi
du -sh "$work/bundle" "$work/update"

mkdir "$work/home" "$work/path" "$work/tmp"
# A PATH that holds what a bare machine has: no compiler, no pip.
for program in sh cat ls mkdir rm mv cp find dirname basename mktemp sha256sum tar uname env test grep sed readlink ssh-keygen; do
    place=$(command -v "$program" || true)
    [ -z "$place" ] || [ "${place#/}" = "$place" ] || ln -s "$place" "$work/path/$program"
done
interpreter=$("$python" -c 'import os, sys; print(os.path.realpath(sys._base_executable))')
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if ! "${user[@]}" test -x "$interpreter" 2>/dev/null; then
    # One that another user may not run, in a home for one, is copied with its library.
    base=$("$python" -c 'import sys; print(sys.base_prefix)')
    mkdir -p "$work/python"
    cp -r "$base/bin" "$work/python/"
    mkdir -p "$work/python/lib"
    cp -r "$base/lib/python$version" "$work/python/lib/"
    cp "$base"/lib/libpython* "$work/python/lib/" 2>/dev/null || true
    rm -rf "$work/python/lib/python$version/site-packages"
    interpreter=$work/python/bin/python$version
fi
ln -s "$interpreter" "$work/path/python$version"
[ "${#user[@]}" = 0 ] || chown -R 65534:65534 "$work/home" "$work/tmp"

cat > "$work/way.sh" <<'END'
set -eu
for program in cc gcc g++ clang cmake make pip pip3 zig; do
    if command -v "$program" >/dev/null; then echo "$program is in the PATH" >&2; exit 1; fi
done
say() { echo "== $*"; }
rag=$HOME/apps/local-rag/bin/local-rag
if [ -e /proc/net/route ] && [ "$(wc -l < /proc/net/route 2>/dev/null || echo 1)" -gt 1 ]; then echo "there is a route" >&2; fi
say verify
"python$VERSION" -I "$BUNDLE/verify.py" "$BUNDLE"
say install
sh "$BUNDLE/install.sh" --prefix "$HOME/apps/local-rag"
"$rag" bundle verify "$BUNDLE" > /dev/null
first=$(readlink "$HOME/apps/local-rag/current")
say index one new file with generated contexts
mkdir "$HOME/documents"
printf '# Office\n\nThe office is in Oslo.\n' > "$HOME/documents/office.md"
"$rag" index "$HOME/documents" --library "$HOME/library" --context llm
say ask
"$rag" ask "Is the office in Oslo?" --library "$HOME/library" --json > "$HOME/answer.json"
"python$VERSION" -I - "$HOME/answer.json" <<'CHECK'
import json, sys
told = json.load(open(sys.argv[1]))
print(told["answer"])
read = told["read"] or told["passages"]
assert any("office.md" in passage["path"] for passage in read), "the new file was not read"
assert told["answered"], "the question was not answered"
assert any("office.md" in citation["path"] for citation in told["citations"]), "the new file is not cited"
CHECK
say doctor
"$rag" doctor --library "$HOME/library" | grep -E '^(ok|warning|failed) +(bundle|packages|offline|decoding)'
say update without models
sh "$UPDATE/install.sh" --prefix "$HOME/apps/local-rag"
second=$(readlink "$HOME/apps/local-rag/current")
[ "$first" != "$second" ] || { echo "the update is not in use" >&2; exit 1; }
say roll back
"$rag" bundle rollback
[ "$(readlink "$HOME/apps/local-rag/current")" = "$first" ] || { echo "the first version is not in use" >&2; exit 1; }
"$rag" search "office in Oslo" --library "$HOME/library" > /dev/null
say uninstall
"$rag" bundle uninstall
[ ! -e "$HOME/apps/local-rag" ] || { echo "uninstall left something:" >&2; find "$HOME/apps" >&2; exit 1; }
[ -e "$HOME/library/library.sqlite3" ] || { echo "uninstall touched the library" >&2; exit 1; }
END

crossed=$(seconds)
echo "== on the other side, as $("${user[@]}" id -u 2>/dev/null || id -u)${apart:+, in a network namespace of its own}"
(cd "$work/home" && "${apart[@]}" "${user[@]}" env -i HOME="$work/home" TMPDIR="$work/tmp" PATH="$work/path" LANG=C.UTF-8 \
    BUNDLE="$work/bundle" UPDATE="$work/update" VERSION="$version" "$work/path/sh" "$work/way.sh")
ended=$(seconds)
echo "The whole way worked: packed in $((packed - started)) s, the update in $((crossed - packed)) s, the other side in $((ended - crossed)) s."
