"""Opening a searcher: settings and models of the index, refusals, and whose passages are searched."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from local_rag.errors import ClusterError, DamagedLibraryError, LibraryError
from local_rag.index.protocol import Contents, PassageStore
from local_rag.model_records import InstalledModel
from local_rag.retrieval.filters import Sight
from local_rag.retrieval.live_searcher import LiveSearcher, OpenSearcher, settings_of
from local_rag.retrieval.question import Question
from local_rag.settings import SearchEngineSettings, Settings, resolve_settings
from local_rag.store.database import Store
from tests.fakes import FakeEmbedder, FakeIndex, FakeReader

SETTINGS = resolve_settings(Path("nowhere"), profile="tiny")


class FakePassages:
    """Passages that an index holds itself: none."""

    def chunks_by_id(self, ids: Sequence[int]) -> dict[int, Any]:
        return {}

    def version(self) -> int:
        return 1

    def roots(self) -> list[Path]:
        return []

    def facts(self, documents: object = None) -> list[Any]:
        return []

    def library_id(self) -> str:
        return ""

    def select(self, filters: object) -> None: ...

    def chunks_of(self, documents: object) -> list[int]:
        return []


class HoldingIndex(FakeIndex):
    """An index with a manifest, damage and passages of its own."""

    def __init__(self, passages: PassageStore | None = None, damage: Sequence[str] = (), **settings: Any) -> None:
        super().__init__([], [])
        self.manifest = {"fingerprint": {"context": "auto"}, "settings": settings}
        self._passages, self._damage, self.opened = passages, list(damage), 0

    def open(self) -> None:
        self.opened += 1

    def damage(self, *, hash_all: bool = True) -> list[str]:
        return [] if hash_all else self._damage

    def passages(self) -> PassageStore | None:  # type: ignore[override]
        return self._passages


class FakeIndexes:
    """Indexes of which one, or none, is live."""

    def __init__(self, live: HoldingIndex | None) -> None:
        self._live = live

    def live_name(self) -> str:
        return "1"

    def live_stamp(self) -> str:
        return "1"

    def live(self) -> HoldingIndex | None:
        return self._live

    def over(self, passages: PassageStore) -> "FakeIndexes":
        return self

    def publish(
        self, contents: Contents, manifest: Mapping[str, Any], *, rebuild: bool = False, replace: bool = False
    ) -> None: ...

    def expunge(self) -> None: ...

    def prune(self) -> None: ...

    def unused(self, *kept: str) -> list[Path]:
        return []

    def sizes(self) -> dict[str, int]:
        return {}


def opened(
    folder: Path, live: HoldingIndex | None, settings: Settings = SETTINGS, explicit: Sequence[str] = ()
) -> tuple[OpenSearcher, list[tuple[Settings, str]]]:
    """Open a searcher with fake models; return it and what was checked."""
    checked = list[tuple[Settings, str]]()

    def require_compatible(manifest: Mapping[str, Any], used: Settings, model: InstalledModel) -> None:
        assert manifest["fingerprint"] == {"context": "auto"}
        checked.append((used, model.name))

    searcher = LiveSearcher(
        folder,
        FakeIndexes(live),
        Sight(),
        require_compatible=require_compatible,
        load_embedder=FakeEmbedder,
        load_reader=lambda _model: FakeReader(lambda _question, _text: 0.0),
    )
    return searcher.open(settings, explicit), checked


def test_an_index_that_holds_its_passages_needs_no_store(tmp_path: Path) -> None:
    index = HoldingIndex(FakePassages())
    found, checked = opened(tmp_path / "missing", index)
    assert found.searcher.index is index
    assert index.opened == 1
    assert [name for _, name in checked] == ["all-minilm-l6-v2"]
    found.close()
    assert not (tmp_path / "missing").exists()


def test_other_passages_are_those_of_the_store_which_is_closed_with_the_searcher(tmp_path: Path) -> None:
    with closing(Store(tmp_path, create=True)):
        found, _ = opened(tmp_path, HoldingIndex())
        assert found.searcher.trace(Question("anything"), top=1).passages == []
        found.close()
    with pytest.raises(LibraryError):
        opened(tmp_path / "missing", HoldingIndex())


def test_settings_are_those_of_the_index_except_the_explicit_ones(tmp_path: Path) -> None:
    index = HoldingIndex(FakePassages(), context="headings", overlap=5)
    _, ((used, _),) = opened(tmp_path, index, explicit=["overlap"])
    assert (used.context, used.overlap) == ("headings", 0)
    manifest = {"settings": {"context": "headings", "overlap": 5, "passages": 3, "gone": 1}}
    settings = settings_of(manifest, SETTINGS, explicit={"overlap"})
    assert (settings.context, settings.overlap, settings.passages) == ("headings", 0, 20)
    assert settings_of({}, SETTINGS, explicit=()) == SETTINGS


def test_what_cannot_be_opened_is_refused_with_the_command_that_helps(tmp_path: Path) -> None:
    with pytest.raises(DamagedLibraryError, match="torn; run `local-rag repair`"):
        opened(tmp_path, HoldingIndex(damage=["torn"]))
    with pytest.raises(LibraryError, match="local-rag index PATH --library"):
        opened(tmp_path, None)
    engine = SETTINGS.model_copy(update={"search_engine": SearchEngineSettings(address="qdrant:http://127.0.0.1:1/x")})
    with pytest.raises(ClusterError, match="cluster copy"):
        opened(tmp_path, None, engine)
