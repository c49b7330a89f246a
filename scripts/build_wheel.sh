#!/usr/bin/env bash
# Build llama-cpp-python once, as a wheel with kernels for all processors of this architecture, so that machines without a
# compiler can install it: scripts/setup.sh --wheel FILE.
#   scripts/build_wheel.sh [FOLDER]   the wheel goes into FOLDER (default: dist)
# Takes ten minutes or more. GLIBC=2.28 compiles with zig for that version; else the wheel needs a glibc as new as this one.
# The same inputs give the same bytes on one kind of machine: see docs/air-gap.md.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# -le 1 ] && case ${1-} in -*) false ;; esac || { echo "usage: scripts/build_wheel.sh [FOLDER]" >&2; exit 2; }
python=${PYTHON:-}
[ -n "$python" ] || { [ -x .venv/bin/python ] && python=.venv/bin/python || python=python3; }
PYTHONPATH=$PWD exec "$python" -P - "${1:-dist}" "${GLIBC:-}" <<'END'
import shutil, sys, tempfile
from pathlib import Path
from local_rag.bundle import wheels
from local_rag.bundle.archive import BundleError

folder, glibc = Path(sys.argv[1]), sys.argv[2]
try:
    with tempfile.TemporaryDirectory() as temporary:
        compiler = wheels.zig_compiler(glibc, Path(temporary) / "zig") if glibc else {}
        built = wheels.build_llama(wheels.pins()[wheels.LLAMA], Path(temporary) / "built", compiler)
        folder.mkdir(parents=True, exist_ok=True)
        print(shutil.move(built, folder / built.name))
except BundleError as error:
    sys.exit(f"Error: {error}")
END
