#!/usr/bin/env bash
# Create .venv with everything that local-rag needs, in the versions of constraints.txt. A second run does nothing.
# PYTHON names the interpreter to use (3.11 or later).
# --gpu vulkan|cuda|metal|rocm compiles llama.cpp for a GPU, --gpu none for the processor alone; later runs keep that.
set -euo pipefail
cd "$(dirname "$0")/.."

gpu=$(cat .venv/.gpu 2>/dev/null || echo none)
if [ "${1:-}" = --gpu ] && [ $# = 2 ]; then gpu=$2; elif [ $# -gt 0 ]; then gpu="$*"; fi
case $gpu in
    none) option= tool=c++ ;;
    vulkan) option=-DGGML_VULKAN=ON tool=glslc ;;
    cuda) option=-DGGML_CUDA=ON tool=nvcc ;;
    metal) option=-DGGML_METAL=ON tool=xcrun ;;
    rocm) option=-DGGML_HIP=ON tool=hipcc ;;
    *) echo "'$gpu' is no GPU; use scripts/setup.sh --gpu vulkan, cuda, metal, rocm or none." >&2; exit 2 ;;
esac

stamp=.venv/.set-up
wanted=$( (cat pyproject.toml constraints.txt scripts/setup.sh; echo "$gpu") | cksum)
if [ "$(cat $stamp 2>/dev/null)" = "$wanted" ]; then exit 0; fi

python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "local-rag needs Python 3.11 or later, and '$python' is older or missing; name one with PYTHON=/path/to/python3.11." >&2
    exit 1
fi
if ! command -v c++ >/dev/null; then
    echo "There is no C++ compiler to compile llama.cpp; install one (Debian: apt-get install g++)." >&2
    exit 1
fi

if ! command -v $tool >/dev/null; then
    echo "There is no $tool, which llama.cpp needs to be compiled for $gpu; install it (Debian: see docs/models.md)." >&2
    exit 1
fi

# llama.cpp for this processor, without its AMX kernels: a native build with them crashes in the first decode
# (ggml-org/llama.cpp#20824), and naming the instruction sets one by one leaves them out.
llama_arguments() {
    # Without the image models and tools of llama.cpp.
    echo "-DLLAVA_BUILD=OFF $option"
    if [ "$(uname -s)-$(uname -m)" != Linux-x86_64 ]; then return; fi
    local flags=" $(grep -m1 '^flags' /proc/cpuinfo | cut -d: -f2) "
    has() { for flag in "$@"; do [[ $flags == *" $flag "* ]] || { echo OFF; return; }; done; echo ON; }
    echo "-DGGML_NATIVE=OFF"
    echo "-DGGML_SSE42=$(has sse4_2) -DGGML_AVX=$(has avx) -DGGML_F16C=$(has f16c) -DGGML_FMA=$(has fma)"
    echo "-DGGML_BMI2=$(has bmi2) -DGGML_AVX2=$(has avx2)"
    echo "-DGGML_AVX512=$(has avx512f avx512cd avx512vl avx512dq avx512bw)"
    echo "-DGGML_AVX512_VBMI=$(has avx512_vbmi2 avx512vbmi) -DGGML_AVX512_VNNI=$(has avx512_vnni)"
    echo "-DGGML_AVX512_BF16=$(has avx512_bf16)"
}

echo "Setting up .venv (about five minutes, mostly to compile llama.cpp) ..." >&2
[ -x .venv/bin/python ] || "$python" -m venv .venv
pip() { .venv/bin/python -m pip --disable-pip-version-check "$@"; }
build=$(mktemp -d)
compiler=
trap '[ -z "$compiler" ] || kill "$compiler" 2>/dev/null || true; rm -rf "$build"' EXIT
# Without a stamp of this GPU, what is installed was compiled for another one.
if [ "$(cat .venv/.gpu 2>/dev/null || echo none)" != "$gpu" ] || ! .venv/bin/python -c 'import llama_cpp' 2>/dev/null; then
    # Compile while everything else is downloaded, without pip's cache, whose wheel may have other arguments.
    CMAKE_ARGS="$(llama_arguments | tr '\n' ' ')" pip wheel --quiet --no-cache-dir --no-deps \
        --constraint constraints.txt --wheel-dir "$build" llama-cpp-python &
    compiler=$!
fi
# Install the pinned torch first: another version, required by a later package, would bring gigabytes of CUDA.
pip install --quiet --constraint constraints.txt torch
.venv/bin/python - > "$build/others.txt" <<'END'
import tomllib
project = tomllib.load(open("pyproject.toml", "rb"))["project"]
wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
print(*(name for name in wanted if name != "llama-cpp-python"), sep="\n")
END
pip install --quiet --constraint constraints.txt --requirement "$build/others.txt"
if [ "$compiler" ]; then
    wait "$compiler"
    compiler=
    pip install --quiet --force-reinstall --no-deps "$build"/llama_cpp_python-*.whl
    pip install --quiet --constraint constraints.txt "$build"/llama_cpp_python-*.whl
    echo "$gpu" > .venv/.gpu
fi
pip install --quiet --constraint constraints.txt --editable '.[dev]'
# These packages are large and only the tests of clusters need them, so a failure is not an error.
if ! pip install --quiet --constraint constraints.txt --editable '.[cluster-test]' 2> "$build/cluster.txt"; then
    echo "Ray and Qdrant are not installed, so the tests of clusters are skipped: $(tail -n 1 "$build/cluster.txt")" >&2
fi
echo "$wanted" > $stamp
