"""Published generations: chunk ids out, whole or not at all, and damage named."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from local_rag.errors import DamagedLibraryError
from local_rag.index.generations import Generation, Generations
from local_rag.index.protocol import Contents
from tests.fakes import contents_of

TEXTS = ("the tide rises", "tide and wind", "wind from the west", "tide tide tide", "a boat", "the boat and the tide")
IDS = (70, 12, 31, 9, 55, 8)


def unit_vectors(count: int = len(TEXTS)) -> np.ndarray:
    vectors = np.random.default_rng(5).normal(size=(count, 8)).astype(np.float32)
    normalised: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return normalised


def rows(count: int = len(TEXTS)) -> Contents:
    return contents_of(IDS[:count], [1, 1, 1, 2, 2, 3][:count], unit_vectors(count), TEXTS[:count])


def live(generations: Generations) -> Generation:
    generation = generations.live()
    assert isinstance(generation, Generation)
    generation.open()
    return generation


@pytest.fixture(scope="module")
def generation(tmp_path_factory: pytest.TempPathFactory) -> Generation:
    generations = Generations(tmp_path_factory.mktemp("library"))
    generations.publish(rows(), {"made": "today"})
    return live(generations)


@settings(deadline=None)
@given(
    st.sets(st.sampled_from([*IDS, 99])),
    st.integers(1, 9),
    st.lists(st.sampled_from(["tide", "wind", "boat", "west", "zebra"]), max_size=3),
    st.integers(0, 99),
)
def test_the_order_within_allowed_is_that_of_everything(
    generation: Generation, allowed: set[int], top: int, terms: list[str], seed: int
) -> None:
    vector = np.random.default_rng(seed).normal(size=8).astype(np.float32)
    for search in (partial(generation.dense, vector), partial(generation.keywords, terms)):
        wanted = [(chunk, score) for chunk, score in search(len(IDS)) if chunk in allowed][:top]
        found = search(top, allowed)
        assert [chunk for chunk, _ in found] == [chunk for chunk, _ in wanted]
        assert [score for _, score in found] == pytest.approx([score for _, score in wanted])


def test_a_publish_follows_the_one_before_which_stays_for_its_readers(tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    (tmp_path / "generations" / "000002.tmp").mkdir(parents=True)  # of a run that was killed
    names, stamps = [], set()
    for count in (1, 2, 3):
        generations.publish(rows(count), {})
        names.append(generations.live_name())
        stamps.add(generations.live_stamp())
        assert live(generations).chunk_ids() == list(IDS[:count])
        assert live(generations).stamp == generations.live_stamp()
    assert names == ["000001", "000002", "000003"]
    assert len(stamps) == 3
    assert sorted(path.name for path in (tmp_path / "generations").iterdir()) == names[1:]


def test_damage_is_named(tmp_path: Path) -> None:
    generations = Generations(tmp_path)
    generations.publish(rows(), {})
    folder = tmp_path / "segments" / "000001"
    ids, vectors, keywords = folder / "chunk_ids.npy", folder / "vectors.npy", folder / "keywords" / "blocks.npy"
    ids.unlink()
    vectors.write_bytes(vectors.read_bytes()[:-1])
    keywords.write_bytes(keywords.read_bytes()[:-1] + b"?")
    generation = generations.live()
    assert generation is not None
    problems = " ".join(generation.damage())
    assert f"{ids} is missing" in problems
    assert f"{vectors} has" in problems
    assert f"{keywords} has changed since it was written" in problems
    assert len(generation.damage()) == 3


@pytest.mark.parametrize("name", ["", "000009", "../000001", "nonsense"])
def test_a_pointer_to_nothing_is_damage(tmp_path: Path, name: str) -> None:
    Generations(tmp_path).publish(rows(), {})
    (tmp_path / "CURRENT").write_text(name)
    with pytest.raises(DamagedLibraryError, match=r"run `local-rag repair`") as caught:
        Generations(tmp_path).live()
    assert caught.value.reason == f"{tmp_path / 'CURRENT'} does not name an index (but {name!r})"


def test_a_changed_manifest_is_damage(tmp_path: Path) -> None:
    Generations(tmp_path).publish(rows(), {"chunks": 6})
    manifest = tmp_path / "generations" / "000001" / "manifest.json"
    for damage in (manifest.read_text().replace('"chunks": 6', '"chunks": 7'), "{", ""):
        manifest.write_text(damage)
        with pytest.raises(DamagedLibraryError, match="run `local-rag repair`"):
            Generations(tmp_path).live()


@pytest.mark.parametrize("name", ["\u00b2", "x", "-1"])
def test_a_folder_that_is_no_generation_is_none(tmp_path: Path, name: str) -> None:
    generations = Generations(tmp_path)
    generations.publish(rows(), {"made": "today"})
    (tmp_path / "generations" / name).mkdir()
    generations.publish(rows(3), {"made": "today"})
    assert live(generations).manifest["made"] == "today"
