"""Load llama.cpp, with its kernels for this processor, and hold Ctrl-C while it runs.

If llama.cpp was built for several processors, there is one library for each. llama-cpp-python loads none by itself
(abetlen/llama-cpp-python#2069). llama.cpp would choose AMX on processors that have it, but those kernels crash in the
first decode (ggml-org/llama.cpp#20824), so variants with AMX are skipped.
"""

import ctypes
import importlib.util
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any

from local_rag.errors import ModelError

ALL_LAYERS = -1  # on a GPU, if llama.cpp was built for one
FORCED = "LOCAL_RAG_CPU_VARIANT"
_WITH_AMX = frozenset({"sapphirerapids", "graniterapids"})
_log_callback: Any = None
_native_messages: list[str] = []


def native() -> Any:
    """Return llama.cpp's low-level binding; its log is kept for error messages instead of printed."""
    global _log_callback  # noqa: PLW0603  llama.cpp has one log, and ctypes needs the callback to stay alive
    # How often waiting threads spin before they sleep. By default they practically never sleep, which makes everything
    # several times slower as soon as another program needs a core.
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    from llama_cpp import llama_cpp

    if _log_callback is None:

        def keep(_level: int, text: bytes, _data: Any) -> None:
            _native_messages.append(text.decode("utf-8", "replace").strip())
            del _native_messages[:-20]

        _log_callback = llama_cpp.llama_log_callback(keep)
        llama_cpp.llama_log_set(_log_callback, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        load_variant(Path(llama_cpp.__file__).parent)
    return llama_cpp


def last_error() -> str:
    """Return the last error in the log of llama.cpp, or ""."""
    return next((text for text in reversed(_native_messages) if "error" in text), "")


def devices() -> list[str]:
    """Return the names of what llama.cpp can compute with: the CPU, and each GPU that it was built for."""
    library = native()._lib
    library.ggml_backend_dev_count.restype = ctypes.c_size_t
    for name in ("get", "name", "description"):
        getattr(library, f"ggml_backend_dev_{name}").restype = ctypes.c_void_p if name == "get" else ctypes.c_char_p
    found = [
        ctypes.c_void_p(library.ggml_backend_dev_get(number)) for number in range(library.ggml_backend_dev_count())
    ]
    names = [(library.ggml_backend_dev_name(one), library.ggml_backend_dev_description(one)) for one in found]
    return [f"{name.decode('utf-8', 'replace')} ({about.decode('utf-8', 'replace')})" for name, about in names]


def llama_build() -> str:
    """Identify the build of llama.cpp by its version and its files, without loading it."""
    spec = importlib.util.find_spec("llama_cpp")
    package = Path(spec.origin).parent if spec and spec.origin else Path()
    libraries = [*sorted(package.glob("lib/*")), *find_variants(package).values()]
    files = [(file.name, status.st_size, status.st_mtime_ns) for file in libraries if (status := file.stat())]
    return repr([version("llama-cpp-python"), files, *filter(None, [os.environ.get(FORCED)])])


def build_with(gpu_layers: int) -> str:
    """Identify the build of llama.cpp together with the layers that it runs on a GPU."""
    return llama_build() if gpu_layers == ALL_LAYERS else f"{llama_build()} {gpu_layers}"


@contextmanager
def held_interrupt() -> Iterator[Sequence[int]]:
    """Hold the interrupt by Ctrl-C until the end; yield a sequence that is not empty once there is one.

    A handler that does not interrupt is called at once.
    """
    handler, held = signal.getsignal(signal.SIGINT), list[int]()

    def hold(number: int, frame: FrameType | None) -> None:
        nonlocal handler
        try:
            if callable(handler):
                handler(number, frame)
        except KeyboardInterrupt:
            held.append(number)
        if signal.getsignal(number) is not hold:  # it has chosen what the next one does
            handler = signal.signal(number, hold)

    # Leave SIGINT alone if it is ignored or handled outside Python. Python sets handlers only in its main thread.
    replaced = callable(handler) and threading.current_thread() is threading.main_thread()
    if replaced:
        signal.signal(signal.SIGINT, hold)
    try:
        yield held
    finally:
        if replaced:
            signal.signal(signal.SIGINT, handler)
    if held:
        raise KeyboardInterrupt


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


def choose(variants: dict[str, Path], forced: str = "", scored: Callable[[Path], int] = score) -> Path:
    """Return the variant to load: the forced one, else the best without AMX."""
    if forced:
        if forced not in variants:
            raise ModelError(f"{FORCED} is {forced!r}, but this build has only {', '.join(sorted(variants))}.")
        if not scored(variants[forced]):
            raise ModelError(f"{FORCED} is {forced!r}, which this processor does not support; choose another variant.")
        return variants[forced]
    scores = {name: scored(path) for name, path in variants.items() if name not in _WITH_AMX}
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
