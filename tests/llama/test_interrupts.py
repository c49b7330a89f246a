"""Ctrl-C while llama.cpp loads a model: it calls functions of ours, where an exception would be printed and lost."""

import os
import signal
import threading
from pathlib import PosixPath

import pytest

from local_rag.llama.model import load_weights
from local_rag.models.registry import resolve


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
