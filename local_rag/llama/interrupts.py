"""Ctrl-C while llama.cpp runs, which calls functions of ours: raised in one of them, it would be printed and lost."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager


@contextmanager
def held_interrupt() -> Iterator[Sequence[int]]:
    """Hold Ctrl-C until the end; yield a sequence that is not empty once it was pressed."""
    handler, held = signal.getsignal(signal.SIGINT), list[int]()
    # Leave SIGINT alone if it is ignored or handled outside Python. Python sets handlers only in its main thread.
    replaced = callable(handler) and threading.current_thread() is threading.main_thread()
    if replaced:
        signal.signal(signal.SIGINT, lambda number, _frame: held.append(number))
    try:
        yield held
    finally:
        if replaced:
            signal.signal(signal.SIGINT, handler)
    if held:
        raise KeyboardInterrupt
