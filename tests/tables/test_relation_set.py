"""What cannot be held is left out alone, and no more rows are in memory than the limit."""

import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from local_rag.asking import Filters
from local_rag.errors import QuestionError
from local_rag.reading.read import read
from local_rag.reading.relations import relations_of
from local_rag.store.database import Store
from local_rag.store.relation_rows import put_relations
from local_rag.tables import relation_set as module
from local_rag.tables.answer import answer_from_rows
from local_rag.tables.relation_set import HeldRows, LeftOutError, RelationSet, relation_set

FILES = {
    "odd.csv": "Name,Load\na,1\nb,2\nc,3\n",
    "orders.csv": "Client,Price\nDora,10\nEmil,20\nFritz,30\n",
    "loads.csv": "Odd,Load\na,1\nb,2\nc,3\n",
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path, create=True)) as opened:
        for name, text in FILES.items():
            path = tmp_path / name
            path.write_text(text)
            document = read(path)
            key = opened.put_document(document, (), size=0, modified_ns=0, sha256=name, split_key="")
            put_relations(opened, [(key, relations_of(document))])
        yield opened


def open_set(store: Store) -> RelationSet:
    @contextmanager
    def open_store() -> Iterator[Store]:
        yield store

    return relation_set(store, None, open_store)


def spoil(store: Store, name: str, rows: bytes) -> None:
    """Put other rows in the place of those of a table."""
    identifier = store.value("SELECT id FROM documents WHERE path LIKE ?", f"%/{name}")
    store.connection.execute("UPDATE relation_blocks SET data = ? WHERE document_id = ?", (rows, identifier))


@pytest.mark.parametrize(
    "rows",
    [
        b"no rows",
        zlib.compress(b'[[1, 0, "a", 1], [1, 0, "b", 2]]'),
        zlib.compress(b'[[1, 0, "a"]]'),
        zlib.compress(b"{"),
    ],
)
def test_a_table_that_cannot_be_held_is_left_out_with_a_note(store: Store, rows: bytes) -> None:
    spoil(store, "odd.csv", rows)
    with closing(open_set(store)) as tables:
        found = tables.answered(lambda: answer_from_rows("What is the highest Load?", tables))
        assert found is not None
        assert found.table is not None
        assert found.table.value == 3
        assert [one.table for one in tables.named] == ["loads", "orders"]
        assert tables.left_out["odd"].startswith(
            "The table odd (odd.csv, A2:B4) is left out, because it cannot be held: "
        )
        assert tables.query("SELECT count(*) FROM orders /* odd */").rows == [(3,)]
        assert tables.query("SELECT Odd FROM loads").rows == [("a",), ("b",), ("c",)]
        with pytest.raises(QuestionError, match=r"The table odd .* is left out"):
            tables.query("SELECT * FROM odd")
        with pytest.raises(LeftOutError):
            tables.hold(["odd"])


def test_damage_of_the_file_is_no_table_that_is_left_out(store: Store) -> None:
    store.connection.execute("DROP TABLE relation_blocks")
    with closing(open_set(store)) as tables, pytest.raises(sqlite3.OperationalError):
        tables.hold(["odd"])


def test_no_more_rows_are_held_than_the_limit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 7)
    with closing(open_set(store)) as tables:
        with pytest.raises(QuestionError, match="more than 7 rows together"):
            tables.query("SELECT 1 /* odd orders loads */")
        for first, second in (("odd", "orders"), ("orders", "loads"), ("loads", "odd")):
            tables.query(f"SELECT 1 FROM {first}, {second}")
            assert tables.rows == 6
        monkeypatch.setattr(module, "MOST_ROWS", 2)
        tables.close()
        with pytest.raises(LeftOutError, match="more than 2 rows"):
            tables.hold(["odd"])


def test_all_kept_sets_together_hold_no_more_than_the_limit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 7)
    kept, sets = HeldRows(), [open_set(store) for _ in range(4)]
    for number, one in enumerate(sets):
        one.hold(["odd"])
        kept.keep({(Filters(), Filters(within=(str(number),))): one})
        assert sum(known.rows for known in sets) <= 7
    assert sets[-1].rows == 3, "who asked last finds the tables again"
    kept.close()
    assert not any(one.rows for one in sets)


def test_a_query_that_ends_its_process_does_not_end_the_set(store: Store) -> None:
    with closing(open_set(store)) as tables:
        doubling = "".join(f", t{n} AS (SELECT a.x FROM t{n - 1} a, t{n - 1} b)" for n in range(1, 26))
        with pytest.raises(QuestionError, match="took"):
            tables.query(f"WITH t0 AS (SELECT 1 AS x){doubling} SELECT x FROM t25, odd LIMIT 1")
        assert tables.query("SELECT max(Load) FROM odd").rows == [(3,)]
