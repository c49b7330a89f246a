#!/usr/bin/env bash
# Test the whole way across an air gap with a profile (default: tiny): sign and pack a bundle, pack it again in another folder
# and compare the sums, and pack an update. Then, as another user, without network, compiler, pip configuration and home:
# verify, reject 25 kinds of tampering, install, index, ask, update, fail an update, roll back, be killed in each step,
# uninstall, and compare the disk before and after.
# With tiny, the bundle has the installed llama.cpp; with other profiles, one built for all processors.
# AIRGAP_PACKED names a folder with a `bundle` and an `update` from an earlier run, to skip packing.
# Exit code 0 if everything worked. Steps that this machine does not allow are named and skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
export LOCAL_RAG_KEEP_WARM=0 # no command leaves a process behind
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

# A network namespace of its own. If that is not possible, only local-rag itself closes the network.
apart=()
if unshare -n true 2>/dev/null; then
    apart=(unshare -n)
elif unshare -rn true 2>/dev/null; then
    apart=(unshare -rn)
else
    echo "Skipped: this machine allows no network namespace, so only local-rag itself closes the network." >&2
fi
user=()
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && [ "${apart[*]:-}" != "unshare -rn" ]; then
    user=(setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs)
elif [ "$(id -u)" = 0 ]; then
    echo "Skipped: this machine does not let root become another user." >&2
fi

seconds() { date +%s; }
started=$(seconds)
if [ -n "${AIRGAP_PACKED:-}" ]; then
    cp -r "$AIRGAP_PACKED/bundle" "$AIRGAP_PACKED/update" "$AIRGAP_PACKED"/*.pub "$work"
    packed=$(seconds)
else
    echo "== packing and signing the profile $profile"
    ssh-keygen -q -t ed25519 -N '' -f "$work/packer"
    pack --output "$work/bundle" --part-size 200M --sign "$work/packer"
    packed=$(seconds)
    pack --output "$work/update" --without-models --sign "$work/packer"
    echo "== packing again, in another folder"
    mkdir -p "$work/elsewhere/tmp"
    TMPDIR=$work/elsewhere/tmp pack --output "$work/elsewhere/again" --part-size 200M
    cmp "$work/bundle/SHA256SUMS" "$work/elsewhere/again/SHA256SUMS"
    rm -rf "$work/elsewhere"
    ssh-keygen -q -t ed25519 -N '' -f "$work/other"
    chmod 644 "$work/packer.pub" "$work/other.pub"
fi
du -sh "$work/bundle" "$work/update"

mkdir "$work/home" "$work/path" "$work/tmp"
# A PATH with the programs of a minimal machine: no compiler, no pip.
for program in sh cat ls mkdir rm mv cp find dirname basename mktemp sha256sum tar uname env test grep sed readlink ssh-keygen sort cmp head dd printf touch wc kill rmdir; do
    found=$(command -v "$program" || true)
    [ -z "$found" ] || [ "${found#/}" = "$found" ] || ln -s "$found" "$work/path/$program"
done
interpreter=$("$python" -c 'import os, sys; print(os.path.realpath(sys._base_executable))')
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
if ! "${user[@]}" test -x "$interpreter" 2>/dev/null; then
    # An interpreter that another user may not run, for example in a home folder, is copied with its library.
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
current() { readlink "$HOME/apps/local-rag/selected/current"; }
say verify
"python$VERSION" -I "$BUNDLE/verify.py" "$BUNDLE" --key "$KEYS/packer.pub" --require-signature
say reject tampering
"python$VERSION" -I "$TAMPER" "$BUNDLE" "$KEYS" "$TMPDIR"
find "$HOME" | sort > "$TMPDIR/before"
say be killed in each step of an installation
count=0
while :; do
    count=$((count + 1))
    if "python$VERSION" -I "$KILL" "$count" "$BUNDLE" "$HOME/apps/local-rag" > "$TMPDIR/killed" 2>&1; then break; fi
    [ ! -x "$rag" ] || "$rag" --version > /dev/null
done
echo "killed in $((count - 1)) steps"
say install
sh "$BUNDLE/install.sh" --prefix "$HOME/apps/local-rag" --key "$KEYS/packer.pub" --require-signature
"$rag" bundle verify "$BUNDLE" --key "$KEYS/packer.pub" > /dev/null
first=$(current)
say index one new file with generated contexts
mkdir "$HOME/documents"
printf '# Office\n\nThe office is in Oslo.\n' > "$HOME/documents/office.md"
"$rag" index "$HOME/documents" --library "$HOME/library"
say ask
"$rag" ask "Is the office in Oslo?" --library "$HOME/library" --json > "$HOME/answer.json"
"python$VERSION" -I - "$HOME/answer.json" <<'CHECK'
import json, sys
report = json.load(open(sys.argv[1]))
print(report["answer"])
read = report["read"] or report["passages"]
assert any("office.md" in passage["path"] for passage in read), "the new file was not read"
assert report["outcome"] != "refused", "the question was refused"  # a tiny model may only quote
assert any("office.md" in citation["path"] for citation in report["citations"]), "the new file is not cited"
CHECK
say doctor
"$rag" doctor --library "$HOME/library" | grep -E '^(ok|warning|failed) +(bundle|packages|offline|decoding)'
say update without models
sh "$UPDATE/install.sh" --prefix "$HOME/apps/local-rag" --key "$KEYS/packer.pub"
second=$(current)
[ "$first" != "$second" ] || { echo "the update is not in use" >&2; exit 1; }
say fail an update
broken=$HOME/broken-update
cp -r "$UPDATE" "$broken"
printf x >> "$(ls "$broken"/*.tar.001)"
if sh "$broken/install.sh" --prefix "$HOME/apps/local-rag" 2> /dev/null; then echo "a broken update was installed" >&2; exit 1; fi
rm -rf "$broken"
[ "$(current)" = "$second" ] || { echo "a failed update changed the version" >&2; exit 1; }
"$rag" search "office in Oslo" --library "$HOME/library" > /dev/null
say roll back
"$rag" bundle rollback
[ "$(current)" = "$first" ] || { echo "the first version is not in use" >&2; exit 1; }
"$rag" search "office in Oslo" --library "$HOME/library" > /dev/null
say uninstall
"$rag" bundle uninstall
[ ! -e "$HOME/apps/local-rag" ] || { echo "uninstall left something:" >&2; find "$HOME/apps" >&2; exit 1; }
[ -e "$HOME/library/library.sqlite3" ] || { echo "uninstall touched the library" >&2; exit 1; }
say compare the disk before and after
rm -rf "$HOME/documents" "$HOME/library" "$HOME/answer.json"
rmdir "$HOME/apps"
find "$HOME" | sort > "$TMPDIR/after"
cmp "$TMPDIR/before" "$TMPDIR/after" || { cat "$TMPDIR/after" >&2; exit 1; }
END
cp scripts/airgap/tamper.py scripts/airgap/kill.py "$work"

crossed=$(seconds)
echo "== on the other side, as $("${user[@]}" id -u 2>/dev/null || id -u)${apart:+, in a network namespace of its own}"
(cd "$work/home" && "${apart[@]}" "${user[@]}" env -i LOCAL_RAG_KEEP_WARM=0 HOME="$work/home" TMPDIR="$work/tmp" PATH="$work/path" LANG=C.UTF-8 \
    BUNDLE="$work/bundle" UPDATE="$work/update" VERSION="$version" KEYS="$work" TAMPER="$work/tamper.py" \
    KILL="$work/kill.py" "$work/path/sh" "$work/way.sh")
ended=$(seconds)
echo "Everything worked. Seconds: packing $((packed - started)), the update $((crossed - packed)), the other side $((ended - crossed))."
