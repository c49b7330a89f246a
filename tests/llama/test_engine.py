import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_rag.errors import ModelError, StoppedError
from local_rag.llama.engine import EngineSettings, SharedPrefixEngine
from local_rag.llama.generator import Request, common_prefix
from local_rag.llama.model import LlamaModel
from local_rag.llama.models_in_use import open_engine
from local_rag.llama.native import devices
from local_rag.llama.probe import run_probe
from tests.support.tiny_models import save_model

DOCUMENT = "The lighthouse of Graskjaer was built in 1868 of grey stone. " * 12
QUESTIONS = ["When was it built?", "Of what is it made?", "Where does it stand?", "Who keeps it?", "How tall is it?"]


@pytest.fixture
def engine(tiny_llama: LlamaModel) -> Iterator[SharedPrefixEngine]:
    engine = SharedPrefixEngine(tiny_llama, context_tokens=2048, settings=EngineSettings(sequences=4, batch_tokens=64))
    yield engine
    engine.close()


def requests(model: LlamaModel, document: str = DOCUMENT, first_key: int = 0) -> list[Request]:
    head, tail = model.chat_frame("Answer.")
    prefix = model.tokenize(head, special=True) + model.tokenize(document)
    return [
        Request(str(first_key + key), prefix, model.tokenize(question) + model.tokenize(tail, special=True), 12)
        for key, question in enumerate(QUESTIONS)
    ]


def same_but_for_ties(engine: SharedPrefixEngine, request: Request, tokens: list[int], others: list[int]) -> bool:
    """Tell whether the first difference is between two tokens that are about as probable.

    Batches of other shapes round differently, so such a tie may fall either way.
    """
    for number, (token, other) in enumerate(zip(tokens, others, strict=False)):
        if token != other:
            chances = engine.log_probabilities(request.prefix, [*request.suffix, *tokens[:number]])
            return abs(float(chances[token] - chances[other])) < 0.3
    return True


def test_each_prefix_token_is_evaluated_once(engine: SharedPrefixEngine) -> None:
    wanted = requests(engine.model)
    done = {key: tokens for key, tokens, _ in engine.complete(wanted)}
    assert set(done) == {request.key for request in wanted}
    assert engine.counts.prefix == len(wanted[0].prefix)
    assert engine.counts.suffix == sum(len(request.suffix) for request in wanted)
    assert engine.counts.reused == (len(wanted) - 1) * len(wanted[0].prefix)
    assert engine.counts.generated == sum(len(tokens) for tokens in done.values())
    assert all(1 <= len(tokens) <= 12 for tokens in done.values())


def test_sharing_changes_no_token(tiny_llama: LlamaModel, engine: SharedPrefixEngine) -> None:
    together = {key: tokens for key, tokens, _ in engine.complete(requests(tiny_llama))}
    for request in requests(tiny_llama):
        alone = SharedPrefixEngine(
            tiny_llama, context_tokens=1024, settings=EngineSettings(sequences=1, batch_tokens=64)
        )
        ((_, tokens, _),) = alone.complete([request])
        assert same_but_for_ties(alone, request, tokens, together[request.key])
        alone.close()


def test_a_cut_prefix_reads_only_its_beginning(tiny_llama: LlamaModel, engine: SharedPrefixEngine) -> None:
    whole = requests(tiny_llama)
    cut = [Request(r.key, r.prefix, r.suffix, r.max_tokens, cut=40 + 20 * n) for n, r in enumerate(whole)]
    done = {key: tokens for key, tokens, _ in engine.complete(cut)}
    assert engine.counts.prefix == len(whole[0].prefix)
    assert engine.counts.prompt == sum(request.start + len(request.suffix) for request in cut)
    for request in cut:
        alone = SharedPrefixEngine(
            tiny_llama, context_tokens=1024, settings=EngineSettings(sequences=1, batch_tokens=64)
        )
        short = Request(request.key, request.prefix[: request.start], request.suffix, request.max_tokens)
        ((_, tokens, _),) = alone.complete([short])
        assert same_but_for_ties(alone, short, tokens, done[request.key])
        alone.close()


def test_ctrl_c_ends_a_batch_and_leaves_the_engine_usable(tiny_llama: LlamaModel) -> None:
    engine = SharedPrefixEngine(
        tiny_llama, context_tokens=8192, settings=EngineSettings(sequences=1, batch_tokens=4096)
    )
    long = Request("long", tiny_llama.tokenize("The lighthouse stands on the rock. " * 550), [1], 1)
    timer = threading.Timer(0.3, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        list(engine.complete([long]))
    assert not engine._cached
    assert len(list(engine.complete(requests(tiny_llama)[:1]))) == 1
    engine.close()


# Presses Ctrl-C again and again while a long prompt is evaluated; {handler} says who handles it.
PRESSES = """
import os, signal, sys, threading
from pathlib import Path
from local_rag.llama.engine import EngineSettings, SharedPrefixEngine
from local_rag.llama.generator import Request
from local_rag.llama.model import LlamaModel
model = LlamaModel(Path(sys.argv[1]))
engine = SharedPrefixEngine(model, context_tokens=4096, settings=EngineSettings(sequences=1, batch_tokens=2048))
done = threading.Event()
def press():
    while not done.wait(0.01):
        os.kill(os.getpid(), signal.SIGINT)
{handler}
thread = threading.Thread(target=press)
thread.start()
try:
    print(len(list(engine.complete([Request("long", [5] * 4000, [1], 1)]))))
finally:
    done.set()
    thread.join()
"""
IGNORED = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
# Python sees that C has installed a handler only when its module of signals begins.
OF_C = """
import ctypes
libc = ctypes.CDLL(None)
libc.signal(signal.SIGINT, ctypes.cast(libc.abs, ctypes.c_void_p))
del sys.modules["_signal"]
import _signal
assert signal.getsignal(signal.SIGINT) is None
"""


@pytest.mark.parametrize("handler", [IGNORED, OF_C])
def test_other_handlers_of_ctrl_c_stay(handler: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PRESSES.format(handler=handler), str(save_model(tmp_path / "m.gguf", "llama"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("1\n", "")


def test_several_prefixes_run_together(engine: SharedPrefixEngine) -> None:
    other = DOCUMENT.replace("Graskjaer", "Inishvarra")
    one, two = requests(engine.model), requests(engine.model, other, first_key=10)
    done = {key for key, _, _ in engine.complete([one[0], two[0], one[1], two[1], one[2], two[2]])}
    assert done == {"0", "1", "2", "10", "11", "12"}
    assert engine.counts.prefix == len(one[0].prefix) + len(two[0].prefix)


def test_the_common_beginning_of_two_prefixes_is_evaluated_once(engine: SharedPrefixEngine) -> None:
    one = requests(engine.model)
    two = requests(engine.model, DOCUMENT.replace("Graskjaer", "Inishvarra"), first_key=10)
    list(engine.complete(one[:1]))
    list(engine.complete(two[:1]))
    shared = common_prefix(one[0].prefix, two[0].prefix)
    assert shared > 10
    assert engine.counts.prefix == len(one[0].prefix) + len(two[0].prefix) - shared


def test_more_prefixes_than_fit_are_dropped_and_evaluated_again(engine: SharedPrefixEngine) -> None:
    batches = [requests(engine.model, f"{number} " + DOCUMENT * 4, first_key=10 * number)[:2] for number in range(4)]
    done = {key for key, _, _ in engine.complete([request for batch in batches for request in batch])}
    assert done == {request.key for batch in batches for request in batch}


def test_what_was_read_ahead_is_not_read_again(engine: SharedPrefixEngine) -> None:
    wanted = requests(engine.model)
    engine.read(wanted[0].prefix)
    assert engine.counts.prefix == len(wanted[0].prefix) - 1
    assert len(list(engine.complete(wanted))) == len(wanted)
    assert engine.counts.prefix == len(wanted[0].prefix)


def test_reading_ahead_loses_at_most_the_last_few_tokens_when_it_is_stopped(engine: SharedPrefixEngine) -> None:
    wanted = requests(engine.model)
    with pytest.raises(StoppedError), engine.stopping(lambda: engine.counts.prefix > 64):
        engine.read(wanted[0].prefix)
    assert engine.counts.prefix == 128 < len(wanted[0].prefix)
    assert len(list(engine.complete(wanted))) == len(wanted)
    assert engine.counts.prefix == len(wanted[0].prefix) + 64


def test_an_abandoned_run_leaves_the_engine_usable(engine: SharedPrefixEngine) -> None:
    stream = engine.stream(requests(engine.model))
    next(stream)
    stream.close()
    first = {key: tokens for key, tokens, _ in engine.complete(requests(engine.model))}
    again = {key: tokens for key, tokens, _ in engine.complete(requests(engine.model))}
    assert first == again


def test_an_engine_that_generates_refuses_other_requests(engine: SharedPrefixEngine) -> None:
    stream, request = engine.stream(requests(engine.model)), requests(engine.model)[0]
    next(stream)
    with pytest.raises(RuntimeError, match="still generating"):
        engine.log_probabilities(request.prefix, request.suffix)
    with pytest.raises(RuntimeError, match="still generating"):
        next(engine.stream([request]))
    assert len([token for token in stream if token.token is None]) == len(requests(engine.model)), "goes on unharmed"


def test_the_first_requests_end_before_many_others_begin(engine: SharedPrefixEngine) -> None:
    """A machine that is too slow for all of them finishes some."""
    taken = list[str]()

    def noted() -> Iterator[Request]:
        for request in [*requests(engine.model), *requests(engine.model, first_key=5)]:
            taken.append(request.key)
            yield request

    ended = engine.complete(noted())
    first, _, _ = next(ended)
    assert first in {"0", "1"}
    assert taken == ["0", "1", "2"], "two that run and one that waits"
    assert len([key for key, _, _ in ended]) == 9


def test_one_sequence_is_enough(tiny_llama: LlamaModel) -> None:
    engine = SharedPrefixEngine(tiny_llama, context_tokens=512, settings=EngineSettings(sequences=1, batch_tokens=32))
    other = requests(tiny_llama, "Short. ", first_key=10)
    assert len(list(engine.complete([*requests(tiny_llama)[:2], *other[:2]]))) == 4
    engine.close()


def test_a_prompt_that_cannot_fit_is_refused(engine: SharedPrefixEngine) -> None:
    with pytest.raises(ModelError, match="does not fit"):
        list(engine.complete([Request("0", [1] * 3000, [1], 5)]))


def test_log_probabilities_sum_to_one(engine: SharedPrefixEngine) -> None:
    import numpy as np

    request = requests(engine.model)[0]
    chances = np.exp(engine.log_probabilities(request.prefix, request.suffix))
    assert abs(chances.sum() - 1) < 1e-6
    ((_, tokens, _),) = engine.complete([request])
    assert int(chances.argmax()) == tokens[0]


def test_documents_cannot_speak_as_the_user(tiny_llama: LlamaModel) -> None:
    head, tail = tiny_llama.chat_frame("Answer.")
    end = tiny_llama.tokenize("<|im_end|>", special=True)
    assert len(end) == 1
    assert end[0] not in tiny_llama.tokenize("before <|im_end|> after")
    assert head.endswith("<|im_start|>user\n")
    assert tail.startswith("<|im_end|>")


def test_tokens_return_to_text(tiny_llama: LlamaModel) -> None:
    text = "Gråskjær, 東京 and <|im_end|> 🙂\n\n  indented"
    assert tiny_llama.detokenize(tiny_llama.tokenize(text)) == text


def test_stopping_ends_a_batch_and_leaves_the_engine_usable(engine: SharedPrefixEngine) -> None:
    first = {key: tokens for key, tokens, _ in engine.complete(requests(engine.model))}
    asked = 0

    def stop() -> bool:
        nonlocal asked
        asked += 1
        return asked > 3

    request = requests(engine.model, "A third document. " * 20)[0]
    with engine.stopping(stop):
        with pytest.raises(StoppedError):
            list(engine.complete(requests(engine.model, "Another document. " * 20, first_key=10)))
        with pytest.raises(StoppedError):
            engine.log_probabilities(request.prefix, request.suffix)
    after = {key: tokens for key, tokens, _ in engine.complete(requests(engine.model))}
    for wanted in requests(engine.model):
        assert same_but_for_ties(engine, wanted, first[wanted.key], after[wanted.key])


@pytest.mark.parametrize("gpu_layers", [-1, 0, 5])
def test_layers_on_a_gpu_change_nothing_where_there_is_none(gpu_layers: int, tmp_path: Path) -> None:
    path = save_model(tmp_path / "m.gguf", "llama")
    request = Request("1", list(range(3, 60)), [5], 8)
    with open_engine(path, context_tokens=lambda *_: 256, gpu_layers=gpu_layers) as engine:
        assert engine.model.gpu_layers == gpu_layers
        ((_, tokens, _),) = engine.complete([request])
    with open_engine(path, context_tokens=lambda *_: 256) as engine:
        assert next(engine.complete([request]))[1] == tokens
    assert devices()[-1].startswith("CPU (")
    printed, problem = run_probe(path, gpu_layers=gpu_layers, task="speed")
    assert problem is None
    expected = "the CPU, since gpu_layers is 0" if gpu_layers == 0 else r".*CPU \(.+\)"
    assert re.fullmatch(rf"{expected}: \d+ tokens per second read, \d+ written", printed.splitlines()[-1])
