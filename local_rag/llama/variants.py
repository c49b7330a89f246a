"""Choose the kernels for this processor if llama.cpp was built for several, with one library per processor type.

llama-cpp-python loads none by itself (abetlen/llama-cpp-python#2069). llama.cpp would choose AMX on processors that
have it, but those kernels crash in the first decode (ggml-org/llama.cpp#20824), so variants with AMX are skipped.
"""

import ctypes
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from local_rag.errors import ModelError

FORCED = "LOCAL_RAG_CPU_VARIANT"
_WITH_AMX = frozenset({"sapphirerapids", "graniterapids"})


def find_variants(package: Path) -> dict[str, Path]:
    """Return the variants of a build by name; they are installed beside the package or in it."""
    folders = (package.parent / "bin", package / "lib", package.parent / "lib")
    found = [path for folder in folders for path in sorted(folder.glob("libggml-cpu-*.so"))]
    return {re.sub(r"^libggml-cpu-|\.so$", "", path.name): path for path in reversed(found)}


def score(path: Path) -> int:
    """Ask a variant how well it suits this processor; 0 if the processor lacks an instruction it needs."""
    try:
        library = ctypes.CDLL(str(path))
        return int(library.ggml_backend_score())
    except (OSError, AttributeError):
        return 0


def choose(
    variants: dict[str, Path], forced: str = "", scored: Callable[[Path], int] = score, avoid: Sequence[str] = ()
) -> Path:
    """Return the variant to load: the forced one, else the best without AMX."""
    if forced:
        if forced not in variants:
            raise ModelError(f"{FORCED} is {forced!r}, but this build has only {', '.join(sorted(variants))}.")
        if not scored(variants[forced]):
            raise ModelError(f"{FORCED} is {forced!r}, which this processor does not support; choose another variant.")
        return variants[forced]
    scores = {name: scored(path) for name, path in variants.items() if name not in {*_WITH_AMX, *avoid}}
    best = max(scores, key=lambda name: (scores[name], name), default="")
    if not best or not scores[best]:
        raise ModelError("llama.cpp has no kernels for this processor; build it here with `scripts/setup.sh`.")
    return variants[best]


def load_variant(package: Path) -> str:
    """Load the variant for this processor before the first model; return its name, empty for a build without one."""
    if not (variants := find_variants(package)):
        return ""
    chosen = choose(variants, os.environ.get(FORCED, ""))
    # Load the copy that libllama.so is linked to: the wheel holds copies instead of links, each with its own backends.
    ggml = ctypes.CDLL(str(package / "lib" / "libggml.so.0"))
    ggml.ggml_backend_load.restype = ctypes.c_void_p
    if not ggml.ggml_backend_load(str(chosen).encode()):
        raise ModelError(f"llama.cpp cannot load {chosen}; install local-rag again.")
    return next(name for name, path in variants.items() if path == chosen)
