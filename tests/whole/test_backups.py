"""A store put back from a backup, beside an index that was made from a later version of it, or the other way round."""

import shutil
from functools import partial
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.errors import LibraryError
from local_rag.index.generations import Generations
from local_rag.store.database import Store
from local_rag.store.published import made_from, note_publish
from tests.fakes import EMBEDS_QUICKLY

STORE, INDEX = ("library.sqlite3", "library.sqlite3-wal"), ("CURRENT", "generations", "segments")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A library of one document, later changed twice; its first and last versions lie in `first` and `last`."""
    folder, documents = tmp_path / "lib", tmp_path / "documents"
    documents.mkdir()
    with Library(folder, parts=EMBEDS_QUICKLY, profile="tiny", context="headings") as library:
        for word in ("boats", "goats", "moats"):
            (documents / "a.md").write_text(f"# {word}\n\nAll about {word} of the island, {word} and nothing else.\n")
            (documents / f"{word}.md").write_text(f"# More\n\nAnd one more page about {word}.\n")
            library.index([documents])
            if word != "goats":
                library.close()
                shutil.copytree(folder, tmp_path / {"boats": "first", "moats": "last"}[word])
    return folder


def put_back(folder: Path, copy: str, names: tuple[str, ...]) -> None:
    for name in names:
        for path in (folder / name, folder.parent / copy / name):
            if path.parent == folder:
                shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            elif path.exists():
                shutil.copytree(path, folder / name) if path.is_dir() else shutil.copy2(path, folder / name)


@pytest.mark.parametrize("names", [STORE, INDEX])
def test_a_part_of_a_backup_is_refused_until_index_publishes_what_is_stored(
    folder: Path, names: tuple[str, ...]
) -> None:
    put_back(folder, "first", names)
    with Library(folder, parts=EMBEDS_QUICKLY) as library:
        for search in (partial(library.search, "moats"), partial(library.retrieval.search_keywords, "moats", top=5)):
            with pytest.raises(LibraryError, match=r"was a backup put back\?\); run `local-rag index`"):
                search()
        with pytest.raises(LibraryError, match="was a backup put back"):
            library.remove([folder.parent / "documents" / "a.md"])
        assert any("not the version" in stale.reason for stale in library.status().stale)
        library.index()
        assert not library.status().stale
        found = library.search("moats island", top=20)
        assert {passage.title for passage in found} == {"moats", "More"}
        assert "All about moats" in found[0].text


def test_a_whole_backup_is_a_library(folder: Path) -> None:
    put_back(folder, "first", STORE)
    put_back(folder, "first", INDEX)
    with Library(folder, parts=EMBEDS_QUICKLY) as library:
        assert "All about boats" in library.search("boats island")[0].text


def test_the_live_index_is_known_until_it_is_replaced_however_often_that_fails(folder: Path) -> None:
    live = Generations(folder).live()
    assert live is not None
    store = Store(folder, write=True)
    for number in range(3):
        note_publish(store, Generations(folder), {"content": f"killed before the switch {number}"})
        assert made_from(store, live)
    store.close()
