"""Tiny random models of today's families: what prompts share changes nothing, and thoughts are no part of an answer."""

import math
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from local_rag.errors import StoppedError
from local_rag.llama.engine import EngineSettings, SharedPrefixEngine
from local_rag.llama.generator import Request, common_prefix
from local_rag.llama.model import LlamaModel
from tests.support.tiny_models import Attending, KeepingState, Kind, save_model

KINDS: tuple[Kind, ...] = (*get_args(Attending), *get_args(KeepingState))
PROMPT = "The boat leaves the harbour at seven and carries twelve people; it returns at nine."
SPARE = 32


@pytest.fixture(params=KINDS)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LlamaModel]:
    with LlamaModel(save_model(tmp_path / f"{request.param}.gguf", request.param)) as loaded:
        yield loaded


def engine_of(model: LlamaModel, sequences: int = 4) -> SharedPrefixEngine:
    settings = EngineSettings(sequences=sequences, batch_tokens=64, threads=1)
    return SharedPrefixEngine(model, context_tokens=1024, settings=settings)


def requests(model: LlamaModel) -> list[Request]:
    head, tail = model.chat_frame("Answer from the sources.")
    prefix = [*model.tokenize(head, special=True), *model.tokenize(PROMPT)]
    ends = ("When?", "How many people?", "Where to, and when does it return?")
    suffixes = [[*model.tokenize(end), *model.tokenize(tail, special=True)] for end in ends]
    return [Request(end, prefix, suffix, 12) for end, suffix in zip(ends, suffixes, strict=True)]


def test_a_shared_prefix_changes_no_token(model: LlamaModel) -> None:
    with closing(engine_of(model)) as engine:
        together = {key: tokens for key, tokens, _ in engine.complete(requests(model))}
        assert engine.counts.reused > 0
    for request in requests(model):
        with closing(engine_of(model, sequences=1)) as engine:
            ((_, alone, _),) = engine.complete([request])
            shared = together[request.key]
            if (same := common_prefix(alone, shared)) < len(alone):  # a near-tie in a batch of another shape
                likely = engine.log_probabilities(request.prefix, [*request.suffix, *alone[:same]])
                assert abs(likely[alone[same]] - likely[shared[same]]) < 0.02


def test_odds_are_those_of_the_next_token(model: LlamaModel) -> None:
    request = requests(model)[0]
    with closing(engine_of(model)) as engine:
        likely = engine.log_probabilities(request.prefix, request.suffix)
        ((_, tokens, _),) = engine.complete([request])
        again = engine.log_probabilities(request.prefix, request.suffix)
    assert math.isclose(np.exp(likely).sum(), 1, abs_tol=1e-6)
    if tokens:
        assert int(likely.argmax()) == tokens[0]
    assert int(again.argmax()) == int(likely.argmax())


def test_generating_can_be_stopped(model: LlamaModel) -> None:
    with closing(engine_of(model)) as engine:
        with engine.stopping(lambda: True), pytest.raises(StoppedError):
            list(engine.complete(requests(model)))
        assert len(list(engine.complete(requests(model)))) == 3  # and it goes on with the next


def thinking(folder: Path) -> tuple[Path, tuple[int, int]]:
    """Save a model that begins its answer to the first request with a thought; return the tokens that mark one."""
    with LlamaModel(save_model(folder / "plain.gguf", "qwen3", spare=SPARE)) as plain, closing(engine_of(plain)) as one:
        request = requests(plain)[0]
        first = int(one.log_probabilities(request.prefix, request.suffix).argmax())
        spare = range(plain.vocabulary_size - SPARE, plain.vocabulary_size)
    assert first in spare
    marks = first, next(token for token in spare if token != first)
    return save_model(folder / "thinking.gguf", "qwen3", spare=SPARE, thoughts=marks), marks


def test_a_thought_is_ended_at_once_and_never_counted(tmp_path: Path) -> None:
    path, marks = thinking(tmp_path)
    with LlamaModel(path) as model, closing(engine_of(model)) as engine:
        assert tuple(token for token in model.thought if token in marks) == marks
        request = requests(model)[0]
        ((_, tokens, _),) = engine.complete([request])
        generated = engine.counts.generated
        after = Request("", request.prefix, [*request.suffix, *model.thought], 12)
        assert tokens == next(engine.complete([after]))[1]  # it says what it would say after an empty thought
        assert 0 < len(tokens) <= 12
        assert generated == len(tokens)
        assert int(engine.log_probabilities(request.prefix, request.suffix).argmax()) == tokens[0]


def test_a_vocabulary_without_marks_has_no_thoughts(tmp_path: Path) -> None:
    with LlamaModel(save_model(tmp_path / "m.gguf", "llama")) as model:
        assert model.thought == ()


QWEN3 = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}{% endfor %}{% if add_generation_prompt %}"
    "<|assistant|>\n{% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n\n{% endif %}"
    "{% endif %}"
)
GRANITE = QWEN3.replace("enable_thinking is defined and enable_thinking is false", "not thinking")
DEEPSEEK = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}{% endfor %}{% if add_generation_prompt %}"
    "<|assistant|><think>\n{% endif %}"
)
HARMONY = (
    "{% for message in messages %}<|start|>{{ message.role }}<|message|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)


@pytest.mark.parametrize(
    ("template", "end"),
    [
        (QWEN3, "<|assistant|>\n<think>\n\n</think>\n\n"),
        (GRANITE, "<|assistant|>\n<think>\n\n</think>\n\n"),
        (DEEPSEEK, "<|assistant|><think>\n\n</think>\n\n"),
        (HARMONY, "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ],
)
def test_templates_are_told_not_to_think(template: str, end: str, tmp_path: Path) -> None:
    with LlamaModel(save_model(tmp_path / "m.gguf", "llama", template=template), vocabulary_only=True) as model:
        assert model.chat_frame("Be brief.")[1] == end


@pytest.mark.parametrize("add_bos", [True, False, None])
@pytest.mark.parametrize("template", [QWEN3, "{{ bos_token }}" + QWEN3])
def test_the_vocabulary_says_whether_a_text_begins_with_bos(
    add_bos: bool | None, template: str, tmp_path: Path
) -> None:
    path = save_model(tmp_path / "m.gguf", "llama", template=template, add_bos=add_bos)
    with LlamaModel(path, vocabulary_only=True) as model:
        tokens = model.tokenize(model.chat_frame("Be brief.")[0], special=True)
    wanted = 0 if add_bos is False and "bos_token" not in template else 1
    assert tokens[:2].count(1) == wanted  # SentencePiece vocabularies ask for it unless they say otherwise


@pytest.mark.parametrize("text", ["The boat", " The boat", "\nThe boat", "\n\n", "=", "x", "boat ", "é\n", "", "x=\n"])
def test_a_sentencepiece_vocabulary_puts_no_space_between_the_parts_of_a_prompt(text: str, tmp_path: Path) -> None:
    plain, spaced = (save_model(tmp_path / f"{space}.gguf", "llama", space_prefix=space) for space in (False, True))
    with LlamaModel(plain, vocabulary_only=True) as without, LlamaModel(spaced, vocabulary_only=True) as model:
        assert model.detokenize(model._raw_tokens("x", special=False)) == " x"
        assert model.tokenize(text) == without.tokenize(text)
        assert model.detokenize(model.tokenize(text)) == text
        marked = f"</s>{text}"
        assert model.tokenize(marked, special=True)[0] == 2
