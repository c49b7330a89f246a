"""The rows that stand for whole documents, which lie among the chunks."""

import json
from collections.abc import Iterable

from local_rag.records import Chunk
from local_rag.store.database import Store, StoredDocument


def documents_without_row(store: Store) -> list[StoredDocument]:
    """Return the live documents that have chunks and no row of their own."""
    found = store.connection.execute(
        "SELECT id, path, size, modified_ns, sha256, title, split_key FROM documents WHERE live AND id NOT IN "
        "(SELECT document_id FROM chunks WHERE kind = 'document') "
        "AND EXISTS (SELECT 1 FROM chunks WHERE document_id = documents.id) ORDER BY path"
    )
    return [StoredDocument(*row) for row in found]


def paths_of_document_rows(store: Store) -> dict[int, str]:
    """Return the path of the document that each such row stands for, superseded ones too."""
    query = "SELECT chunks.id, path FROM chunks JOIN documents ON documents.id = document_id "
    return dict(store.connection.execute(f"{query} WHERE chunks.kind = 'document'").fetchall())


def put_document_rows(store: Store, rows: Iterable[tuple[int, Chunk]]) -> None:
    """Store rows, each with the id of its document."""
    query = (
        "INSERT INTO chunks (document_id, position, start, end, text, headings, page, line, end_line, kind) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'document')"
    )
    with store.transaction():
        for document, row in rows:
            place = (
                row.position,
                row.start,
                row.end,
                row.text,
                json.dumps(row.headings),
                row.page,
                row.line,
                row.end_line,
            )
            store.connection.execute(query, (document, *place))
            store.connection.execute("UPDATE made SET plan = '' WHERE document_id = ?", (document,))
