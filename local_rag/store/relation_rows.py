"""The tables of documents as typed rows, in a library's SQLite file: kept and erased with their documents."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from local_rag.document_records import Column, Relation
from local_rag.store.database import Store

_PLAIN = re.compile(r"[ -~]+")


@dataclass(frozen=True, slots=True)
class StoredRelation:
    """A relation without its rows, and the document that it is in."""

    id: int
    document_id: int
    path: str
    title: str
    name: str
    sheet: str
    cells: str
    page: int | None
    columns: tuple[Column, ...]
    rows: int
    totals: int
    words: frozenset[str]
    remarks: tuple[str, ...] = ()
    page_label: str = ""


def put_relations(store: Store, of_documents: Iterable[tuple[int, Sequence[Relation]]]) -> None:
    """Store the relations of new documents, each with the id of its document."""
    run = store.connection.execute
    with store.transaction():
        for document, relations in of_documents:
            for one in relations:
                described = {"columns": [astuple(column) for column in one.columns], "remarks": one.remarks}
                columns = json.dumps(described, ensure_ascii=False)
                cursor = run(
                    "INSERT INTO relations (document_id, name, sheet, cells, page, columns, rows, totals, words) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        document, one.name, one.sheet, one.cells, one.page, columns, one.rows, one.totals,
                        " ".join(one.words),
                    ),
                )  # fmt: skip
                rows = [(document, cursor.lastrowid, at, block) for at, block in enumerate(one.blocks)]
                store.connection.executemany("INSERT INTO relation_blocks VALUES (?, ?, ?, ?)", rows)


def relations(store: Store) -> list[StoredRelation]:
    """Return the relations of all live documents that are seen, by path."""
    rows = store.connection.execute(
        "SELECT relations.id, document_id, path, title, name, sheet, cells, page, columns, rows, totals, words, "
        "coalesce(label, '') FROM relations JOIN documents ON documents.id = document_id "
        "LEFT JOIN page_labels USING (document_id, page) WHERE live ORDER BY path, relations.id"
    )
    return [_relation(row) for row in rows]


def paths_of_tables(store: Store) -> list[str]:
    """Return the paths of the live documents that hold relations."""
    query = "SELECT DISTINCT path FROM relations JOIN documents ON documents.id = document_id WHERE live"
    return store.column(query)


def _relation(row: Sequence[Any]) -> StoredRelation:
    described = json.loads(row[8])
    if isinstance(described, list):  # columns alone, as libraries of before have them
        described = {"columns": described, "remarks": []}
    columns = tuple(map(_column, described["columns"]))
    key, document, path, title, name, sheet, cells, page = row[:8]
    words = frozenset(row[11].split(" "))
    return StoredRelation(
        key, document, path, title, name, sheet, cells, page, columns, row[9], row[10], words,
        tuple(described["remarks"]), row[12],
    )  # fmt: skip


def _column(described: Sequence[Any]) -> Column:
    name, kind, unit, mixed, uncomputed, *remarks = described
    return Column(name, kind, unit, mixed, uncomputed, tuple(*remarks))


def is_in_a_text(store: Store, words: Sequence[str], apart: Sequence[str] = ()) -> bool:
    """Return whether a word of a text begins with one of these, in a document that is seen and not `apart`."""
    query = (
        "SELECT documents.path, text FROM document_texts JOIN documents ON documents.id = document_id "
        "WHERE live AND instr(lower(text), ?)"
    )
    for word in words:
        plain = max(_PLAIN.findall(word.lower()) or [""], key=len)  # SQLite lowers only the letters of ASCII
        for path, text in store.connection.execute(query, (plain,)):
            if path not in apart and _has_beginning(text.casefold(), word.casefold()):
                return True
    return False


def _has_beginning(text: str, word: str) -> bool:
    at = text.find(word)
    while at > 0 and text[at - 1].isalnum():
        at = text.find(word, at + 1)
    return at >= 0


def relations_stamp(store: Store) -> object:
    """Return a value that changes with the relations that a store shows."""
    query = (
        "SELECT count(*), total(relations.id), max(relations.id) "
        "FROM relations JOIN documents ON documents.id = document_id WHERE live"
    )
    return tuple(store.connection.execute(query).fetchone()), store.version()


def relation_blocks(store: Store, relation: int) -> Iterator[bytes]:
    """Yield the rows of a relation, totals too, as they are stored: in blocks, each compressed JSON."""
    query = "SELECT data FROM relation_blocks WHERE relation_id = ? ORDER BY position"
    for (block,) in store.connection.execute(query, (relation,)):
        yield block
