"""What differs between the documents that are there and those that are stored."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.document_records import Document
from local_rag.files import FileStamp, stamp_of
from local_rag.indexing.changes import Changes, ScannedFile, compare_documents, compare_folders
from local_rag.store.database import Store, StoredDocument


def stored(path: str, content: str = "text", *, modified_ns: int = 1, split_key: str = "k") -> StoredDocument:
    stamp = FileStamp(len(content), modified_ns, modified_ns, 7)
    return StoredDocument(0, path, stamp, f"sha256 of {content}", path, split_key)


def found(path: str, content: str = "text", *, modified_ns: int = 1, split_key: str = "k") -> ScannedFile:
    stamp = FileStamp(len(content), modified_ns, modified_ns, 7)
    return ScannedFile(path, stamp, split_key, lambda: f"sha256 of {content}")


def unreadable(path: str) -> ScannedFile:
    def fail() -> str:
        raise OSError("vanished")

    return found(path, modified_ns=2)._replace(sha256=fail)


def compare(before: Sequence[StoredDocument], now: Sequence[ScannedFile], *, may_be_gone: bool = True) -> Changes:
    return compare_documents({one.path: one for one in before}, now, lambda _document: may_be_gone)


def paths(documents: Iterable[ScannedFile]) -> list[str]:
    return [one.path for one in documents]


def test_what_nobody_knows_is_new() -> None:
    changes = compare([], [found("a")])
    assert changes == Changes(new=changes.new)
    assert paths(changes.new) == ["a"]


def test_size_and_time_tell_what_is_unchanged_without_hashing() -> None:
    assert compare([stored("a")], [unreadable("a")._replace(stamp=stored("a").stamp)]) == Changes(unchanged=1)


def test_another_content_is_changed() -> None:
    changes = compare([stored("a")], [found("a", "next", modified_ns=2)])
    assert changes == Changes(changed=changes.changed)
    assert paths(changes.changed) == ["a"]


def test_another_time_alone_is_touched_and_unchanged() -> None:
    before, now = stored("a"), found("a", modified_ns=2)
    assert compare([before], [now]) == Changes(touched=((before, now),), unchanged=1)


@pytest.mark.parametrize("modified_ns", [1, 2])
def test_the_same_content_split_otherwise_is_resplit(modified_ns: int) -> None:
    now = found("a", modified_ns=modified_ns, split_key="other")
    assert compare([stored("a")], [now]) == Changes(resplit=(now,))


def test_what_cannot_be_hashed_is_changed_so_that_reading_says_why() -> None:
    now = unreadable("a")
    assert compare([stored("a")], [now]) == Changes(changed=(now,))


def test_what_is_not_found_is_gone_if_it_may_be() -> None:
    assert compare([stored("a")], []) == Changes(gone=(stored("a"),))
    assert compare([stored("a")], [], may_be_gone=False) == Changes()


def test_the_content_of_what_is_gone_has_moved() -> None:
    now = found("b", modified_ns=9)
    assert compare([stored("a")], [now]) == Changes(moved={now: stored("a")}, gone=(stored("a"),))
    other = found("b", "tent")
    assert compare([stored("a")], [other]) == Changes(new=(other,), gone=(stored("a"),)), "of the same size only"


def test_a_document_that_is_gone_has_moved_to_one_place_only() -> None:
    changes = compare([stored("a.md")], [found("copy 1.md"), found("copy 2.md")])
    assert (paths(changes.moved), paths(changes.new)) == (["copy 1.md"], ["copy 2.md"])
    changes = compare([stored("a.md"), stored("b.md")], [found("copy 1.md"), found("copy 2.md")])
    assert (paths(changes.moved), paths(changes.new)) == (["copy 1.md", "copy 2.md"], [])


def test_a_copy_of_what_is_still_there_has_not_moved() -> None:
    changes = compare([stored("a")], [found("a"), found("b")])
    assert (paths(changes.moved), paths(changes.new), changes.unchanged) == ([], ["b"], 1)


def test_a_new_document_that_cannot_be_hashed_is_new() -> None:
    changes = compare([stored("a")], [unreadable("b")])
    assert (paths(changes.moved), paths(changes.new)) == ([], ["b"])


def test_a_document_out_of_reach_stays_unless_its_content_has_moved() -> None:
    before = {one.path: one for one in (stored("a"), stored("b", "text of b"))}
    now = found("c")
    changes = compare_documents(before, [now], lambda _document: False, lambda _document: True)
    assert changes == Changes(moved={now: stored("a")}, gone=(stored("a"),))
    assert compare_documents(before, [], lambda _document: False, lambda _document: True) == Changes()


def test_what_must_be_read_is_in_the_order_of_the_paths() -> None:
    before = [stored("b"), stored("c"), stored("gone", "moves")]
    now = [found("d/e", "moves"), found("c", split_key="other"), found("b", "more", modified_ns=2), found("a-new")]
    changes = compare(before, now)
    assert paths(changes.to_read) == ["a-new", "b", "c", "d/e"]
    assert [len(kind) for kind in (changes.new, changes.changed, changes.resplit, changes.moved)] == [1, 1, 1, 1]


NAMES, CONTENTS, TIMES, KEYS = (st.sampled_from(values) for values in ("abcdef", ("one", "two", "three"), (1, 2), "kl"))


@given(
    st.dictionaries(NAMES, st.tuples(CONTENTS, TIMES, KEYS)),
    st.dictionaries(NAMES, st.tuples(CONTENTS | st.none(), TIMES, KEYS)),
    st.dictionaries(NAMES, st.sampled_from(["stays", "out of reach"])),
)
def test_every_document_is_counted_once(
    before: dict[str, tuple[str, int, str]], now: dict[str, tuple[str | None, int, str]], places: dict[str, str]
) -> None:
    known = {name: stored(name, text, modified_ns=time, split_key=key) for name, (text, time, key) in before.items()}
    files = [
        unreadable(name) if text is None else found(name, text, modified_ns=time, split_key=key)
        for name, (text, time, key) in now.items()
    ]
    changes = compare_documents(
        known,
        files,
        lambda document: document.path not in places,
        lambda document: places.get(document.path) == "out of reach",
    )
    read = paths((*changes.new, *changes.changed, *changes.resplit, *changes.moved))
    assert len(read) == len(set(read))
    assert set(read) <= now.keys()
    assert len(read) + changes.unchanged == len(now)
    assert sorted(read) == sorted(paths(changes.to_read))
    assert len(changes.touched) <= changes.unchanged
    assert set(paths((*changes.new, *changes.moved))) == now.keys() - before.keys()
    gone = [one.path for one in changes.gone]
    assert len(gone) == len(set(gone))
    moved = {one.path for one in changes.moved.values()}
    assert len(moved) == len(changes.moved) <= len(gone)
    assert set(gone) == (before.keys() - now.keys() - places.keys()) | moved


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    library = tmp_path / "documents" / "library"  # below what is indexed, and no part of it
    library.mkdir(parents=True)
    with closing(Store(library, create=True)) as store:
        yield store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    for name in ("a.md", "below/b.md", "clip.mp4"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    return folder


def put(store: Store, path: Path, *, split_key: str = "k", content: str = "") -> None:
    """Store a document as it is, or one that is not there any more."""
    data = path.read_bytes() if path.exists() else content.encode()
    stamp = stamp_of(path.stat(), 0) if path.exists() else FileStamp(len(data))
    sha256 = hashlib.sha256(data).hexdigest()
    store.put_documents([(Document(path, path.name, "text", "text"), [], (stamp, sha256, split_key))])


def test_folders_are_compared_with_the_store(folder: Path, store: Store) -> None:
    for path in (folder / "a.md", folder / "below/gone.md", folder.parent / "elsewhere.md"):
        put(store, path)
    changes, skipped, *_ = compare_folders(store, [folder, folder / "never-there"], "k")
    assert paths(changes.new) == [str(folder / "below/b.md")]
    assert [one.path for one in changes.gone] == [str(folder / "below/gone.md")], "elsewhere is not asked about"
    assert changes.unchanged == 1
    assert [one.path.name for one in skipped] == ["clip.mp4"]
    store.remove([], [], [folder / "below"])
    changes, *_ = compare_folders(store, [folder], "k")
    assert changes.new == (), "it was removed from the library"


def test_documents_of_a_root_that_is_out_of_reach_stay_unless_they_are_found_elsewhere(
    folder: Path, store: Store
) -> None:
    unmounted = folder.parent / "unmounted"
    put(store, unmounted / "a.md")
    put(store, unmounted / "b.md", content=(folder / "a.md").read_text())
    changes, _, roots, *_ = compare_folders(store, [folder, unmounted], "k")
    assert roots.unreachable == {unmounted}
    assert [(now.path, before.path) for now, before in changes.moved.items()] == [
        (str(folder / "a.md"), str(unmounted / "b.md"))
    ]
    assert [one.path for one in changes.gone] == [str(unmounted / "b.md")]


def test_without_a_split_key_each_is_split_as_it_was(folder: Path, store: Store) -> None:
    put(store, folder / "a.md", split_key="one")
    put(store, folder / "below/b.md", split_key="other")
    changes = compare_folders(store, [folder], None).changes
    assert (changes.unchanged, changes.to_read) == (2, ())
    assert len(compare_folders(store, [folder], "one").changes.resplit) == 1


def test_large_files_are_read_after_all_others() -> None:
    log, mailbox = found("a/log"), found("b/mailbox")
    large = [log._replace(stamp=FileStamp(9 << 20, 1, 1, 7)), mailbox._replace(stamp=FileStamp(2 << 20, 1, 1, 7))]
    assert paths(compare([], [*large, found("c"), found("b/a", "longer text")]).to_read) == [
        "b/a",
        "c",
        "b/mailbox",
        "a/log",
    ]
