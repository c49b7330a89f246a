"""The pace of a model: what it learns from the work, and what that makes of a time."""

from dataclasses import replace
from pathlib import Path
from time import sleep

import pytest

from local_rag.answering.pace import Pace, pace_of
from local_rag.llama.generator import Counts
from local_rag.models.registry import resolve


def test_the_tokens_that_fit_into_a_time_take_no_longer() -> None:
    pace = Pace({"read": 80.0, "written": 20.0})
    for seconds in (0.5, 3.0, 10.0):
        tokens = pace.tokens_in(seconds)
        assert tokens < 0 or pace.seconds_for(tokens) <= seconds < pace.seconds_for(tokens + 2)
    assert pace.tokens_in(0.1) < 0


def test_reading_and_writing_are_learnt_apart() -> None:
    kept, counts = list[dict[str, float]](), Counts()
    pace = Pace(None, kept.append)
    slow = pace.rates
    with pace.measuring(counts):
        counts.prefix += 200
        sleep(0.05)
    assert 1000 < pace.rates.read <= 4000
    assert pace.rates.written == slow.written
    with pace.measuring(counts):
        counts.generated += 10
        sleep(0.05)
    assert 50 < pace.rates.written <= 200
    assert kept[-1] == {"read": pace.rates.read, "written": pace.rates.written}
    with pace.measuring(counts):
        counts.prefix += 3  # says nothing
    assert len(kept) == 2


def test_a_pace_is_stored_with_the_file_of_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = tmp_path / "model.gguf"
    weights.touch()
    model = replace(resolve("smollm2-135m-instruct", "answer"), path=weights)
    monkeypatch.setenv("LOCAL_RAG_MODELS", str(tmp_path))
    counts, pace = Counts(), pace_of(model)
    with pace.measuring(counts):
        counts.prefix += 100
    assert pace_of(model).rates == pace.rates
    assert pace_of(replace(model, path=tmp_path / "elsewhere")).rates != pace.rates
    assert Pace({"tokens": 5}).rates == Pace().rates, "stored by another version"
