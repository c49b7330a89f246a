#!/usr/bin/env bash
# Make .venv with everything local-rag needs, at the versions in constraints.txt. Run again, it does nothing.
# PYTHON names the interpreter to use (3.11 or later).
set -euo pipefail
cd "$(dirname "$0")/.."

stamp=.venv/.set-up
wanted=$(cat pyproject.toml constraints.txt scripts/setup.sh | cksum)
if [ "$(cat $stamp 2>/dev/null)" = "$wanted" ]; then exit 0; fi

python=${PYTHON:-python3}
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo "local-rag needs Python 3.11 or later and '$python' is not; name one with PYTHON=/path/to/python3.11." >&2
    exit 1
fi
if ! command -v c++ >/dev/null; then
    echo "llama.cpp is compiled here and there is no C++ compiler; install one (Debian: apt-get install g++)." >&2
    exit 1
fi

# llama.cpp for this processor, without its AMX kernels: a native build with them crashes in the first decode
# (ggml-org/llama.cpp#20824), and naming the instruction sets one by one leaves them out.
llama_arguments() {
    # Neither the image models nor llama.cpp's own tools are needed.
    echo "-DLLAVA_BUILD=OFF"
    if [ "$(uname -s)-$(uname -m)" != Linux-x86_64 ]; then return; fi
    local flags=" $(grep -m1 '^flags' /proc/cpuinfo | cut -d: -f2) "
    has() { for flag in "$@"; do [[ $flags == *" $flag "* ]] || { echo OFF; return; }; done; echo ON; }
    echo "-DGGML_NATIVE=OFF"
    echo "-DGGML_SSE42=$(has sse4_2) -DGGML_AVX=$(has avx) -DGGML_F16C=$(has f16c) -DGGML_FMA=$(has fma)"
    echo "-DGGML_BMI2=$(has bmi2) -DGGML_AVX2=$(has avx2)"
    echo "-DGGML_AVX512=$(has avx512f avx512cd avx512vl avx512dq avx512bw)"
    echo "-DGGML_AVX512_VBMI=$(has avx512_vbmi2 avx512vbmi) -DGGML_AVX512_VNNI=$(has avx512_vnni)"
}

echo "Setting up .venv (about five minutes, most of them compiling llama.cpp) ..." >&2
[ -x .venv/bin/python ] || "$python" -m venv .venv
pip() { .venv/bin/python -m pip --disable-pip-version-check "$@"; }
# The pinned torch first: any other version, asked for by a later package, would bring gigabytes of CUDA.
pip install --quiet --constraint constraints.txt torch
if ! .venv/bin/python -c 'import llama_cpp' 2>/dev/null; then
    # No cache: pip's cached wheel may have been compiled with other arguments.
    CMAKE_ARGS="$(llama_arguments | tr '\n' ' ')" \
        pip install --quiet --no-cache-dir --constraint constraints.txt llama-cpp-python
fi
pip install --quiet --constraint constraints.txt --editable '.[dev]'
echo "$wanted" > $stamp
