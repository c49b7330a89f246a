import json
from pathlib import Path

import pytest

from local_rag.errors import ModelError
from local_rag.maintenance.recommend import Offer, _is_other, choose, describe, offers_of, speaks_other_languages
from local_rag.models.registry import load_registry
from tests.conftest import Run

GB = 1000**3
REGISTRY = load_registry()
ENGLISH = "The boat leaves the harbour at seven, and it is not known when it will be back from the islands. " * 5
GERMAN = "Das Boot verlässt den Hafen um sieben Uhr, und niemand weiß, wann es von den Inseln zurückkehrt. " * 5
RUSSIAN = "Лодка выходит из гавани в семь часов."


def offers(*, cores: int = 8, hub: bool = True, here: tuple[str, ...] = ()) -> list[Offer]:
    return offers_of(REGISTRY, cores=cores, hub=hub, here=here)


@pytest.mark.parametrize(
    ("memory", "cores", "multilingual", "profile"),
    [
        (3, 8, False, "light"),
        (4, 8, False, "starter"),
        (8, 8, False, "small"),
        (32, 16, False, "laptop"),
        (32, 16, True, "starter-multilingual"),
        (1, 2, False, "starter"),  # too small for all: the smallest that answers
    ],
)
def test_the_largest_profile_that_fits_is_chosen(memory: float, cores: int, multilingual: bool, profile: str) -> None:
    chosen = choose(offers(cores=cores), memory=int(memory * GB), multilingual=multilingual)
    assert chosen.profile == profile


def test_reranking_many_passages_is_part_of_what_an_answer_takes() -> None:
    found = {offer.profile: offer.seconds for offer in offers(cores=2)}
    assert 30 < found["card"] - found["small"] < 60, "150 passages take bge-reranker-base 38 seconds: docs/speed.md"


def test_two_cores_get_a_model_that_answers_in_half_a_minute() -> None:
    chosen = choose(offers(cores=2), memory=64 * GB, multilingual=False)
    assert chosen.seconds <= 30
    slow = next(offer for offer in offers(cores=2) if offer.profile == "laptop")
    assert slow.seconds > 30


def test_without_the_hub_only_what_is_here_or_on_the_index_is_chosen() -> None:
    assert choose(offers(hub=False), memory=32 * GB, multilingual=False).profile == "starter"
    assert choose(offers(hub=False), memory=32 * GB, multilingual=True).profile == "starter-multilingual"
    here = tuple(REGISTRY.profiles["small"].values())
    assert choose(offers(hub=False, here=here), memory=32 * GB, multilingual=False).profile == "small"
    missing = next(offer for offer in offers(hub=False) if offer.profile == "laptop")
    assert "no source here has llama-3.2-3b-instruct" in describe(missing)


def test_what_was_not_tried_is_said() -> None:
    found = {offer.profile: describe(offer) for offer in offers()}
    assert "not tried here" in found["small"]
    assert "not tried here" not in found["starter"]
    assert "starter-multilingual (several languages" in found["starter-multilingual"]


def test_a_named_profile_is_described(run: Run) -> None:
    assert choose(offers(), memory=GB, multilingual=False, only="laptop").profile == "laptop"
    with pytest.raises(ModelError, match="There is no profile 'nonsense'"):
        choose(offers(), memory=GB, multilingual=False, only="nonsense")


@pytest.mark.parametrize(
    ("text", "other"), [(ENGLISH, False), (GERMAN, True), (RUSSIAN, True), ("short", None), ("", None)]
)
def test_languages_are_told_by_their_commonest_words(text: str, other: bool | None) -> None:
    assert _is_other(text) is other


def test_the_documents_decide_about_the_language(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text(ENGLISH)
    assert not speaks_other_languages(Path(".local-rag"))
    assert run("index", "docs", "--profile", "tiny", "--context", "headings").exit_code == 0
    assert not speaks_other_languages(Path(".local-rag"))
    (tmp_path / "docs/b.md").write_text(GERMAN)
    assert run("index", "docs", "--profile", "tiny", "--context", "headings").exit_code == 0
    assert speaks_other_languages(Path(".local-rag"))
    found = json.loads(run("models", "recommend", "--json").stdout)
    assert found["multilingual"] is True
    said = run("models", "recommend").stdout
    assert "documents in also other languages than English" in said or "also other languages" in said
    assert f"local-rag index --profile {found['recommended']['profile']}" in said
    assert "bge rerankers can lower" in said
