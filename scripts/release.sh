#!/usr/bin/env bash
# Build what a release uploads for this platform: docs/release.md says what is run where.
#   scripts/release.sh [--llama FILE] [FOLDER]   into FOLDER (default: dist/release), which must not exist
# The files: the wheel of local-rag, that of llama.cpp with kernels for all processors of this architecture, the pinned
# versions, a note and SHA256SUMS. Compiling takes ten minutes or more; --llama takes a wheel that is there already.
# On Linux it is compiled with zig for glibc 2.28 (GLIBC names another; `pip install ziglang`).
set -euo pipefail
cd "$(dirname "$0")/.."
llama= folder=dist/release
while [ $# -gt 0 ]; do
    case $1 in
        --llama)
            llama=${2-}
            [ -f "$llama" ] || { echo "--llama needs a file of scripts/build_wheel.sh." >&2; exit 2; }
            shift ;;
        -*) echo "usage: scripts/release.sh [--llama FILE] [FOLDER]" >&2; exit 2 ;;
        *) folder=$1 ;;
    esac
    shift
done
[ ! -e "$folder" ] || { echo "$folder exists; remove it or name another folder." >&2; exit 1; }
[ -z "$(git status --porcelain --untracked-files=no)" ] || { echo "The checkout has changes; commit them first." >&2; exit 1; }
python=${PYTHON:-}
[ "$python" ] || { [ -x .venv/bin/python ] && python=.venv/bin/python || python=python3; }

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
if [ "$llama" ]; then
    cp "$llama" "$made"
else
    [ "$(uname -s)" != Linux ] || export GLIBC=${GLIBC:-2.28}
    PYTHON=$python scripts/build_wheel.sh "$made" >&2
fi
PYTHONPATH=$PWD "$python" -P - "$made" "${GLIBC:-}" "$(git rev-parse HEAD)" <<'END'
import hashlib, shutil, sys
from pathlib import Path
from local_rag.bundle import wheels
from local_rag.bundle.archive import BundleError

folder, glibc, commit = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
try:
    program = wheels.program_wheel(folder)
except BundleError as error:
    sys.exit(f"Error: {error}")
(llama,) = folder.glob("llama_cpp_python-*.whl")
kernels = ", ".join(wheels.variants(llama))
if not kernels:
    print(f"{llama.name} was compiled for one processor: try it, but do not upload it.", file=sys.stderr)
shutil.copy("constraints.txt", folder)
(folder / "NOTE.md").write_text(f"""\
# local-rag {program.name.split("-")[1]}

Commit {commit}. {llama.name} has kernels for {kernels or "one processor only"}{f" and needs glibc {glibc}" if glibc else ""}.

Check the files with `sha256sum --check SHA256SUMS` (macOS: `shasum -a 256 --check SHA256SUMS`). In their folder, this
installs local-rag without a compiler:

    pipx install --pip-args "--find-links . --only-binary llama-cpp-python --constraint constraints.txt" "local-rag[serve]"
""")
files = sorted(path for path in folder.iterdir())
sums = "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)
(folder / "SHA256SUMS").write_text(sums)
END
mkdir -p "$(dirname "$folder")"
chmod 755 "$made"
mv "$made" "$folder"
echo "Ready to upload: $folder" >&2
cat "$folder/SHA256SUMS"
