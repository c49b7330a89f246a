"""Which kernels are loaded where llama.cpp was built for many processors, and Ctrl-C while it runs."""

import os
import signal
import threading
from pathlib import Path, PosixPath

import pytest

from local_rag.errors import ModelError
from local_rag.llama.model import load_weights
from local_rag.llama.native import choose, find_variants, held_interrupt, load_variant, score
from local_rag.models.registry import resolve

SCORES = {"x64": 1, "haswell": 64, "icelake": 512, "sapphirerapids": 2048, "zen4": 0}


@pytest.fixture
def variants(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "bin").mkdir()
    for name in SCORES:
        (tmp_path / "bin" / f"libggml-cpu-{name}.so").touch()
    (tmp_path / "llama_cpp").mkdir()
    return find_variants(tmp_path / "llama_cpp")


def scored(path: Path) -> int:
    return SCORES[path.stem.removeprefix("libggml-cpu-")]


def test_the_best_without_amx_is_chosen(variants: dict[str, Path]) -> None:
    assert variants.keys() == SCORES.keys()
    assert choose(variants, scored=scored).name == "libggml-cpu-icelake.so"


def test_a_variant_without_avx512_can_be_forced(variants: dict[str, Path]) -> None:
    without = {"x64": 1, "haswell": 64, "icelake": 0, "sapphirerapids": 0, "zen4": 0}
    assert choose(variants, scored=lambda path: without[path.stem[12:]]).name == "libggml-cpu-haswell.so"
    assert choose(variants, "haswell", scored).name == "libggml-cpu-haswell.so"


def test_an_invalid_forced_variant_is_refused(variants: dict[str, Path]) -> None:
    with pytest.raises(ModelError, match="this build has only haswell, icelake"):
        choose(variants, "../evil", scored)
    with pytest.raises(ModelError, match="this processor does not support"):
        choose(variants, "zen4", scored)
    with pytest.raises(ModelError, match="no kernels for this processor"):
        choose(variants, scored=lambda _: 0)


def test_a_build_for_one_processor_has_none(tmp_path: Path) -> None:
    assert load_variant(tmp_path / "llama_cpp") == ""
    (tmp_path / "no.so").write_bytes(b"not a library")
    assert score(tmp_path / "no.so") == 0


class Pressing(PosixPath):
    """A path that presses Ctrl-C just after a loader has asked for its text."""

    def __str__(self) -> str:
        threading.Timer(0.005, os.kill, (os.getpid(), signal.SIGINT)).start()
        return super().__str__()


def test_loading_ends_with_an_interrupt_and_nothing_else(capfd: pytest.CaptureFixture[str]) -> None:
    weights = Pressing(resolve("smollm2-135m-instruct", "answer").path)
    load_weights(resolve("smollm2-135m-instruct", "answer").path)  # what is imported once is not interrupted
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        load_weights(weights)
    assert signal.getsignal(signal.SIGINT) is before
    assert capfd.readouterr() == ("", "")


def test_a_handler_that_does_not_interrupt_is_called_at_once_and_the_next_interrupt_is_held() -> None:
    done = list[str]()

    def handle(_number: int, _frame: object) -> None:
        signal.signal(signal.SIGINT, before)
        done.append("handled")

    def press(times: int) -> None:
        signal.signal(signal.SIGINT, handle)
        with held_interrupt():
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
                done.append("went on")

    before = signal.getsignal(signal.SIGINT)
    press(1)
    assert (done, signal.getsignal(signal.SIGINT)) == (["handled", "went on"], before)
    with pytest.raises(KeyboardInterrupt):
        press(2)
    assert (done[2:], signal.getsignal(signal.SIGINT)) == (["handled", "went on", "went on"], before)
