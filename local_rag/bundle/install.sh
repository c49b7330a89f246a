#!/bin/sh
# Install the bundle in this file's folder: sh install.sh [--prefix DIR] [--key PUBLIC_KEY] [--json]
# Needs no root, compiler, network or package index. LOCAL_RAG_PYTHON is the path of the Python to use.
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
wanted=@PYTHON@
archive=@ARCHIVE@
sum=@SHA256@ # of that archive: this file is in the signed list, so what runs below is what was signed

fits() {
    "$1" -I -c 'import sys; sys.exit("%d.%d" % sys.version_info[:2] != sys.argv[1] or sys.maxsize < 2**32)' \
        "$wanted" 2>/dev/null
}

if [ -n "$archive" ]; then
    # The interpreter is in the archive, and it will run before install.py can check who signed it: check that here.
    key= required= name=
    for argument in "$@"; do
        case $name$argument in
            --key=*) key=${argument#--key=} ;;
            --key:*) key=$argument ;;
            --require-signature) required=yes ;;
        esac
        name=
        [ "$argument" != --key ] || name=--key:
    done
    if [ -n "$key$required" ]; then
        [ -n "$key" ] || { echo "--require-signature needs --key PUBLIC_KEY." >&2; exit 1; }
        signers=$(mktemp "${TMPDIR:-/tmp}/local-rag-signers.XXXXXX")
        sed -e '/^[[:space:]]*$/d' -e '/^#/d' -e 's/^/signer /' -- "$key" > "$signers"
        ssh-keygen -Y verify -f "$signers" -I signer -n local-rag-bundle -s "$here/SHA256SUMS.sig" \
            < "$here/SHA256SUMS" > /dev/null 2>&1 && good=yes || good=
        rm -f "$signers"
        if [ -z "$good" ]; then
            echo "The bundle is not signed with the key in $key, or no ssh-keygen of OpenSSH 8.1 or later can tell." >&2
            exit 1
        fi
    fi
    # Unpack the interpreter to run the installer, which checks everything else.
    temporary=$(mktemp -d "${TMPDIR:-/tmp}/local-rag-install.XXXXXX")
    trap 'rm -rf "$temporary"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    (cd "$here" && sha256sum -c --quiet SHA256SUMS) >&2 || {
        echo "The bundle is damaged; copy the files listed above again." >&2
        exit 1
    }
    cat "$here"/*.tar.[0-9][0-9][0-9] | tar -xOf - "$archive" > "$temporary/python.archive" 2>/dev/null || :
    echo "$sum  $temporary/python.archive" | sha256sum -c --quiet >&2 || {
        echo "The interpreter in the bundle is damaged; copy the bundle again." >&2
        exit 1
    }
    mkdir "$temporary/python"
    tar -xf "$temporary/python.archive" -C "$temporary/python"
    rm "$temporary/python.archive"
    for python in "$temporary"/python/bin/python"$wanted" "$temporary"/python/*/bin/python"$wanted"; do
        if [ -x "$python" ] && fits "$python"; then
            "$python" -I -B "$here/install.py" "$@"
            exit
        fi
    done
    echo "The Python $wanted in the bundle does not run on this machine; pack the bundle with another one." >&2
    exit 1
fi

for python in "${LOCAL_RAG_PYTHON:-}" "python$wanted" python3 python "/usr/local/bin/python$wanted" "/usr/bin/python$wanted"; do
    if [ -n "$python" ] && command -v "$python" >/dev/null 2>&1 && fits "$python"; then
        exec "$python" -I -B "$here/install.py" "$@"
    fi
done
case " $* " in *" --json "*)
    printf '{"ok": false, "kind": "platform", "message": "Python %s is required but was not found"}\n' "$wanted" ;;
esac
echo "Python $wanted is required but was not found; install it or set LOCAL_RAG_PYTHON=/path/to/python$wanted." >&2
exit 1
