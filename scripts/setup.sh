#!/usr/bin/env bash
# Create .venv with everything that local-rag needs, in the versions of constraints.txt. A second run does nothing.
#   scripts/setup.sh [--torch|--dev|--core] [--wheel FILE] [--pull PROFILE] [--gpu none|auto|vulkan|cuda|metal|rocm]
# --torch adds sentence-transformers with torch, which only model folders without an ONNX file need; --dev adds it, the
# tools for tests and the packages of a cluster. --core has the tools for tests but no llama.cpp, so it needs no compiler;
# it cannot answer questions. --slim is the default, and undoes the others. --wheel installs the llama.cpp that
# scripts/build_wheel.sh has built on a machine with a compiler; --gpu compiles it for a GPU, and `auto` keeps that only
# if it is faster here. --pull downloads the models of a profile meanwhile. Later runs keep what was chosen. PYTHON names
# the interpreter.
set -euo pipefail
cd "$(dirname "$0")/.."

gpu=$(cat .venv/.gpu 2>/dev/null || echo none)
mode=$(cat .venv/.mode 2>/dev/null || echo slim)
[ "$mode" != default ] || mode=torch # as an earlier version called it
wheel= chosen= pull=
while [ $# -gt 0 ]; do
    case $1 in
        --torch | --dev | --slim | --core)
            [ -z "$chosen" ] || { echo "Choose one of --torch, --dev, --slim and --core." >&2; exit 2; }
            chosen=yes mode=${1#--} ;;
        --pull)
            pull=${2-}
            [ "$pull" ] || { echo "--pull needs a profile, such as --pull starter." >&2; exit 2; }
            shift ;;
        --wheel)
            case ${2-} in
                *llama_cpp_python-*.whl) wheel=$2 ;;
                *) echo "--wheel needs a file such as llama_cpp_python-0.3.36-py3-none-linux_x86_64.whl; scripts/build_wheel.sh builds it." >&2; exit 2 ;;
            esac
            [ -f "$wheel" ] || { echo "$wheel does not exist; scripts/build_wheel.sh builds it on a machine with a compiler." >&2; exit 1; }
            shift ;;
        --gpu)
            gpu=${2-}
            [ $# -lt 2 ] || shift
            [ "$gpu" ] || gpu=--gpu ;;
        *) echo "'$*' is no GPU; use scripts/setup.sh --gpu auto, vulkan, cuda, metal, rocm or none." >&2; exit 2 ;;
    esac
    shift
done
case $gpu in
    none | auto) option= tool=c++ ;;
    vulkan) option=-DGGML_VULKAN=ON tool=glslc ;;
    cuda) option=-DGGML_CUDA=ON tool=nvcc ;;
    metal) option=-DGGML_METAL=ON tool=xcrun ;;
    rocm) option=-DGGML_HIP=ON tool=hipcc ;;
    *) echo "'$gpu' is no GPU; use scripts/setup.sh --gpu auto, vulkan, cuda, metal, rocm or none." >&2; exit 2 ;;
esac
[ -z "$wheel" ] || [ "$gpu" = none ] || { echo "The wheel is for the processor; leave out --wheel or --gpu $gpu." >&2; exit 2; }

say_next() {
    [ -z "${LOCAL_RAG_CHOOSES-}" ] || return 0 # the run that chooses a build says it once
    local next=".venv/bin/local-rag models pull starter"
    [ -z "$pull" ] || next=".venv/bin/local-rag index FOLDER"
    [ "$mode" != core ] || next='.venv/bin/python -m pytest -m "not slow and not rest and not integration"'
    echo "local-rag is set up in .venv (--$mode). Next: $next" >&2
}

# Set up for the processor, then for the GPU whose toolchain is here; keep the build that answers sooner.
choose_build() {
    local kind=none one profile=${pull:-starter} kept seconds rates gpu_seconds gpu_rates
    for one in metal:xcrun cuda:nvcc rocm:hipcc vulkan:glslc; do
        ! command -v "${one#*:}" >/dev/null || { kind=${one%:*}; break; }
    done
    if [ $kind = none ] || [ "$mode" = core ]; then
        echo "There is no toolchain of a GPU (nvcc, hipcc, glslc or xcrun); setting up for the processor." >&2
        exec "$0" --"$mode" --gpu none ${pull:+--pull "$pull"}
    fi
    export LOCAL_RAG_CHOOSES=yes
    "$0" --"$mode" --gpu none --pull "$profile"
    measure() { # an answer of 1,000 tokens read and 100 written: its seconds and, after a space, the rates
        { .venv/bin/local-rag doctor --profile "$profile" || true; } | awk '
            match($0, /[0-9]+ tokens per second read, [0-9]+ written/) {
                rates = substr($0, RSTART, RLENGTH); split(rates, word, " "); measured = 1
                seconds += 1000 / (word[1] + 0.1) + 100 / (word[6] + 0.1)
            }
            END { if (measured) print seconds, rates }'
    }
    read -r seconds rates <<< "$(measure)" || true
    if [ -z "$seconds" ]; then
        echo "local-rag doctor could not measure the models of $profile, so the build for the processor stays." >&2
        return
    fi
    kept=$(mktemp -d)
    trap 'rm -rf "$kept"' RETURN
    .venv/bin/python -c 'import sys; from pathlib import Path; from local_rag.bundle.wheels import wheel_of_installed
wheel_of_installed("llama-cpp-python", Path(sys.argv[1]))' "$kept"
    if "$0" --gpu "$kind"; then
        read -r gpu_seconds gpu_rates <<< "$(measure)" || true
        echo "Processor: $rates. $kind: ${gpu_rates:-no model could be measured}." >&2
        # A tenth is more than two measurements of one build differ by.
        if [ "$gpu_seconds" ] && awk "BEGIN { exit !($gpu_seconds < 0.9 * $seconds) }"; then
            echo "The build for $kind is faster and stays." >&2
            return
        fi
    fi
    echo "The build for $kind is no gain, so the build for the processor stays." >&2
    "$0" --gpu none --wheel "$kept"/*.whl
}
if [ "$gpu" = auto ]; then
    choose_build
    unset LOCAL_RAG_CHOOSES
    pull=${pull:-starter}
    say_next
    exit
fi

stamp=.venv/.set-up
wanted=$( (cat pyproject.toml constraints.txt requirements.lock scripts/setup.sh; echo "$gpu $mode") | cksum)
if [ -z "$wheel" ] && [ "$(cat $stamp 2>/dev/null)" = "$wanted" ]; then
    [ -z "$pull" ] || .venv/bin/local-rag models pull "$pull"
    say_next
    exit 0
fi

# What the pinned packages are built for, asked before anything is downloaded.
python=${PYTHON:-python3}
if ! problem=$("$python" - 2>/dev/null <<'END'
import os, platform, sys
version = "%d.%d.%d" % sys.version_info[:3]
try:
    libc = os.confstr("CS_GNU_LIBC_VERSION")
except (AttributeError, OSError, ValueError):
    libc = ""
glibc = tuple(int(one) for one in (libc or "").rpartition(" ")[2].split(".") if one.isdigit())
mac = [int(one) for one in platform.mac_ver()[0].split(".") if one.isdigit()]
if sys.version_info < (3, 11, 5):
    print("local-rag needs Python 3.11.5 or later, and this one is %s; name one with PYTHON=/path/to/python3.12." % version)
elif sys.maxsize < 2**32:
    print("local-rag needs a Python of 64 bits; name one with PYTHON=/path/to/python3.12.")
elif sys.platform.startswith("linux") and not glibc:
    print("local-rag needs Linux with glibc 2.28 or later; for this C library (musl) its packages have no wheels.")
elif sys.platform.startswith("linux") and glibc < (2, 28):
    print("local-rag needs glibc 2.28 or later, and this machine has %s; use a newer system or a container." % libc)
elif sys.platform == "darwin" and (platform.machine() != "arm64" or mac < [14]):
    print("local-rag needs macOS 14 or later on Apple silicon, because its packages have no wheels for other Macs.")
elif sys.platform not in ("linux", "darwin"):
    print("local-rag runs on Linux and macOS; on Windows use WSL.")
END
); then
    problem="local-rag needs Python 3.11.5 or later, and '$python' is older or missing; name one with PYTHON=/path/to/python3.12."
fi
[ -z "$problem" ] || { echo "$problem" >&2; exit 1; }

has_llama() { .venv/bin/python -c 'import llama_cpp' 2>/dev/null; }
compiles=
# Without a stamp of this GPU, what is installed was compiled for another one.
if [ "$mode" != core ] && [ -z "$wheel" ] && { [ "$(cat .venv/.gpu 2>/dev/null || echo none)" != "$gpu" ] || ! has_llama; }; then
    compiles=yes
    if ! command -v c++ >/dev/null; then
        echo "There is no C++ compiler to compile llama.cpp; install one (Debian: apt-get install g++), or run" \
            "scripts/build_wheel.sh on a machine that has one and pass its file with --wheel." >&2
        exit 1
    fi
    if ! command -v $tool >/dev/null; then
        echo "There is no $tool, which llama.cpp needs to be compiled for $gpu; install it (Debian: see docs/models.md)." >&2
        exit 1
    fi
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

if [ "$compiles" ]; then about="3 to 10 minutes, to compile llama.cpp and to download"; else about="a minute"; fi
echo "Setting up .venv ($about) ..." >&2
[ -x .venv/bin/python ] || "$python" -m venv .venv
rm -f $stamp
pip() { .venv/bin/python -m pip --disable-pip-version-check "$@"; }
# Python compiles the modules that are used when they are first used, which are few.
install() { pip install --quiet --no-compile "$@"; }
build=$(mktemp -d)
compiler= puller=
trap '[ -z "$compiler$puller" ] || kill $compiler $puller 2>/dev/null || true; rm -rf "$build"' EXIT
# The locked packages of this mode; those of llama.cpp and of a file given with --wheel are installed below.
.venv/bin/python - "$mode" "$build" <<'END'
import re, sys
from pathlib import Path
mode, build = sys.argv[1], Path(sys.argv[2])
sections = {"slim": {"slim"}, "torch": {"slim", "torch"}, "core": {"slim", "dev"}, "dev": {"slim", "torch", "dev"}}
wanted, entries = sections[mode], {"llama": [], "others": []}
section = ""
for entry in re.split(r"\n(?=\S)", Path("requirements.lock").read_text()):
    if entry.startswith("# section: "):
        section = entry.split()[2]
    elif entry and not entry.startswith("#") and section in wanted:
        entries["llama" if entry.startswith("llama-cpp-python==") else "others"].append(entry)
for name, lines in entries.items():
    (build / f"{name}.txt").write_text("\n".join(lines) + "\n")
END
if [ "$compiles" ]; then
    # Compile while everything else is downloaded, without pip's cache, whose wheel may have other arguments. Half of the
    # time would go into a library for llama.cpp's own programs; its build file sets this switch itself, hence the include.
    # Of its own files, only those that prepare a batch or handle text are worth the time that -O3 takes. CMake compiles
    # the others in groups, unless they have options of their own, so that the exceptions are named.
    cat > "$build/llama.cmake" <<'END'
set(LLAMA_BUILD_COMMON OFF)
function(compile_sooner)
    target_compile_options(llama PRIVATE -O1)
    get_target_property(folder llama SOURCE_DIR)
    get_target_property(sources llama SOURCES)
    list(FILTER sources INCLUDE REGEX "^(llama-(batch|context|grammar|graph|kv-cache|memory|sampler|vocab)|unicode)[a-z0-9-]*.cpp$")
    list(TRANSFORM sources PREPEND ${folder}/)
    set_source_files_properties(${sources} TARGET_DIRECTORY llama PROPERTIES COMPILE_OPTIONS -O3)
endfunction()
cmake_language(DEFER CALL compile_sooner)
END
    SKBUILD_CMAKE_DEFINE="CMAKE_PROJECT_llama_cpp_INCLUDE=$build/llama.cmake" \
        CMAKE_ARGS="$(llama_arguments | tr '\n' ' ')" pip wheel --quiet --no-cache-dir --no-deps --require-hashes \
        --wheel-dir "$build" --requirement "$build/llama.txt" &
    compiler=$!
fi
install --no-deps --require-hashes --requirement "$build/others.txt"
install --no-deps --editable .
if [ "$pull" ]; then
    .venv/bin/local-rag models pull "$pull" &
    puller=$!
fi
# torch has one build for each kind of processor, so it is pinned but has no single hash.
case $mode in torch | dev) install --constraint constraints.txt torch ;; esac
if [ "$compiler" ]; then
    wait "$compiler"
    compiler=
    wheel=$(echo "$build"/llama_cpp_python-*.whl)
fi
if [ "$wheel" ]; then
    install --force-reinstall --no-deps "$wheel"
    has_llama || { echo "$wheel is installed but cannot be loaded here; build one on this kind of machine." >&2; exit 1; }
    echo "$gpu" > .venv/.gpu
fi
extras=serve,bundle,code
case $mode in torch | dev) extras=$extras,sentence-transformers ;; esac
[ "$mode" != dev ] || extras=$extras,dev
# What a lock that is older than the pins lacks.
if [ "$mode" != core ] && ! .venv/bin/python - "$extras" 2>/dev/null <<'END'
import re, subprocess, sys
from importlib.metadata import requires, version
from packaging.requirements import Requirement
normal = lambda name: re.sub("[-_.]+", "-", name).lower()
pins = {normal(name): pin for name, _, pin in (line.strip().partition("==") for line in open("constraints.txt"))}
for line in requires("local-rag"):
    wanted = Requirement(line)
    if not wanted.marker or any(wanted.marker.evaluate({"extra": extra}) for extra in sys.argv[1].split(",")):
        assert version(wanted.name) == pins[normal(wanted.name)]
subprocess.run([sys.executable, "-m", "pip", "check"], stdout=subprocess.DEVNULL, check=True)
END
then
    install --constraint constraints.txt --editable ".[$extras]"
fi
# These packages are large and only the tests of clusters need them, so a failure is not an error.
if [ "$mode" = dev ] && ! install --constraint constraints.txt --editable '.[cluster-test]' 2> "$build/cluster.txt"; then
    echo "Ray and Qdrant are not installed, so the tests of clusters are skipped: $(tail -n 1 "$build/cluster.txt")" >&2
fi
if [ "$puller" ]; then
    wait "$puller"
    puller=
fi
echo "$mode" > .venv/.mode
echo "$wanted" > $stamp
say_next
