"""Prompts share a beginning of what was read only where a model can cut what it remembers; others share all of it."""

import random
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from local_rag import Library
from local_rag.errors import ModelError
from local_rag.llama.engine import EngineSettings, SharedPrefixEngine
from local_rag.llama.generator import Request, common_prefix
from local_rag.llama.model import LlamaModel
from local_rag.store.database import Store
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY
from tests.support.tiny_models import WINDOW, KeepingState, Kind, save_model

REFUSAL = (
    r"recurrent state that prompts cannot share, so it can answer but not write contexts; name .*--context-model`\.$"
)


@pytest.fixture(params=get_args(KeepingState))
def forgetful(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return save_model(tmp_path / f"{request.param}.gguf", request.param)


def test_index_refuses_it_for_contexts_in_one_sentence(
    forgetful: Path, documents: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RAG_CONTEXT_MINUTES", "9")
    done = run("index", "documents", "--profile", "tiny", "--context-model", str(forgetful), "--contexts")
    assert done.exit_code == 1
    assert re.fullmatch(f"Error: .*{REFUSAL}", done.stderr.splitlines()[-1])
    with closing(Store(Path(".local-rag").resolve())) as store:
        written = "SELECT count(*) FROM contexts WHERE kind IN ('model', 'dropped')"
        assert store.connection.execute(written).fetchone() == (0,)


def test_it_answers(forgetful: Path, documents: Path) -> None:
    with Library(
        "lib", profile="tiny", context="headings", answer_model=str(forgetful), parts=EMBEDS_QUICKLY
    ) as library:
        library.index([documents])
        first = library.ask("When does the boat leave the harbour?")
        assert first.outcome in {"answered", "quoted", "refused"}
        assert library.ask("When does the boat leave the harbour?").text == first.text


def test_a_part_of_what_was_read_is_refused(forgetful: Path) -> None:
    with LlamaModel(forgetful) as model:
        engine = SharedPrefixEngine(model, context_tokens=512, settings=EngineSettings(sequences=2, batch_tokens=64))
        with pytest.raises(ModelError, match=REFUSAL):
            list(engine.complete([Request("", list(range(3, 99)), [5], 3, cut=40)]))
        assert len(list(engine.complete([Request("", list(range(3, 99)), [5], 3)]))) == 1, "and it goes on"
        engine.close()


def test_a_state_is_read_on_from_and_never_from_its_middle(forgetful: Path) -> None:
    """Prefixes that go on from one before, that leave it in the middle, and that repeat it."""
    text = [1, *(3 + number % 250 for number in range(0, 900, 7))]
    prefixes = [text[:60], text[:100], [*text[:40], *range(50, 90)], text[:60], text]
    with LlamaModel(forgetful) as model:
        engine = SharedPrefixEngine(model, context_tokens=1024, settings=EngineSettings(sequences=4, batch_tokens=64))
        for prefix in prefixes:
            alone = SharedPrefixEngine(model, context_tokens=512, settings=EngineSettings(sequences=1, batch_tokens=64))
            wanted = alone.log_probabilities(prefix, [7, 8, 9])
            assert np.abs(engine.log_probabilities(prefix, [7, 8, 9]) - wanted).max() < 0.05
            alone.close()
        assert engine.counts.reused >= 60, "the second prefix goes on from the first"
        engine.close()


def jobs(seed: int) -> Iterator[Request]:
    """Draw documents, of which some begin alike, and for each some requests behind a beginning of it."""
    draw = random.Random(seed)
    documents = [[1, *(draw.randrange(3, 259) for _ in range(draw.randrange(50, 300)))] for _ in range(4)]
    documents += [documents[0][:60] + documents[1], documents[2][:100] + documents[3][:50]]
    for number, document in enumerate(documents):
        cuts = sorted(draw.randrange(WINDOW, len(document)) for _ in range(draw.randrange(1, 9)))
        for chunk, cut in enumerate(cuts):
            suffix = [draw.randrange(3, 259) for _ in range(draw.randrange(3, 30))]
            yield Request(f"{number} {chunk}", document, suffix, draw.randrange(3, 40), cut=cut)


@pytest.mark.parametrize("kind", ["llama", "gemma2"])
@pytest.mark.parametrize(("seed", "cells"), [(1, 450), (2, 900)])
def test_sharing_changes_no_token_whatever_the_model_attends_to(
    kind: Kind, seed: int, cells: int, tmp_path: Path
) -> None:
    with LlamaModel(save_model(tmp_path / f"{kind}.gguf", kind)) as model:
        engine = SharedPrefixEngine(model, context_tokens=cells, settings=EngineSettings(sequences=4, batch_tokens=64))
        together = {key: tokens for key, tokens, _ in engine.complete(jobs(seed))}
        engine.close()
        for job in jobs(seed):
            alone = SharedPrefixEngine(model, context_tokens=512, settings=EngineSettings(sequences=1, batch_tokens=64))
            short = Request(job.key, job.prefix[: job.start], job.suffix, job.max_tokens)
            ((_, tokens, _),) = alone.complete([short])
            same = common_prefix(tokens, together[job.key])
            if same < len(tokens):  # batches of other shapes round differently, so a near-tie may fall the other way
                chances = alone.log_probabilities(short.prefix, [*short.suffix, *tokens[:same]])
                assert abs(chances[tokens[same]] - chances[together[job.key][same]]) < 0.02
            alone.close()


def test_a_batch_has_room_for_an_output_of_each_sequence(tmp_path: Path) -> None:
    with LlamaModel(save_model(tmp_path / "gemma2.gguf", "gemma2")) as model:
        engine = SharedPrefixEngine(model, context_tokens=512, settings=EngineSettings(sequences=32, batch_tokens=8))
        wanted = [Request(str(number), list(range(3, 99)), [5 + number], 3, cut=40) for number in range(40)]
        assert len(list(engine.complete(wanted))) == len(wanted)
        engine.close()
