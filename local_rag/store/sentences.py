"""The sentences that a model writes about chunks: which rows want one, under which key, and which are written.

Code decides which chunks need a sentence (`chunks.need`). A document is planned under a plan, which names the model and
everything else that its sentences depend on; its rows then have the keys of their sentences. The sentences of one plan
are never mixed with those of another: the keys of another plan are forgotten before the first one is written.
"""

from collections.abc import Sequence

from local_rag.store.database import Store, StoredDocument

_MISSING = "live AND (sentence_plan <> ? OR NOT EXISTS (SELECT 1 FROM contexts WHERE contexts.key = sentence_key))"
# CROSS JOIN fixes the order: few chunks need a sentence, and they have an index of their own.
_ROWS = {
    True: f"FROM documents CROSS JOIN chunks ON documents.id = document_id WHERE {_MISSING}",
    False: "FROM chunks INDEXED BY chunks_in_need CROSS JOIN documents ON documents.id = document_id "
    f"WHERE need IS NOT NULL AND {_MISSING}",
}


def plan_sentences(store: Store, document_id: int, plan: str, keys: Sequence[tuple[int, str]]) -> None:
    """Record which rows of a document want a sentence, as (chunk id, key); the other rows want none."""
    connection, wanted = store.connection, dict(keys)
    with store.transaction():
        rows = connection.execute(
            "SELECT id, sentence_key FROM chunks WHERE document_id = ?", (document_id,)
        ).fetchall()
        changed = [(row, wanted.get(row)) for row, key in rows if key != wanted.get(row)]
        connection.executemany("UPDATE chunks SET sentence_key = ?2 WHERE id = ?1", changed)
        if changed:  # the document was embedded without these sentences
            connection.execute("UPDATE embedding_plans SET plan = '' WHERE document_id = ?", (document_id,))
        connection.execute("UPDATE documents SET sentence_plan = ? WHERE id = ?", (plan, document_id))


def forget_other_sentences(store: Store, plan: str) -> None:
    """Forget the sentences of other plans; their texts stay in the cache until `clean`."""
    query = "SELECT id FROM documents WHERE live AND sentence_plan NOT IN ('', ?)"
    with store.transaction():
        for (document,) in store.connection.execute(query, (plan,)).fetchall():
            plan_sentences(store, document, "", ())


def documents_to_write(store: Store, plan: str, *, every: bool) -> list[tuple[StoredDocument, float]]:
    """Return the live documents that lack sentences, with the greatest need of a chunk that lacks one, highest first.

    With `every`, all rows are to have one, also those that do not need it.
    """
    rows = store.connection.execute(
        f"SELECT documents.id, max(coalesce(need, 0)) AS greatest {_ROWS[every]} "
        "GROUP BY documents.id ORDER BY greatest DESC, path",
        (plan,),
    ).fetchall()
    found = ((store.document(key), need) for key, need in rows)
    return [(document, need) for document, need in found if document]


def count_unwritten(store: Store, plan: str, *, every: bool) -> int:
    """Count the rows of live documents that lack a sentence."""
    return int(store.connection.execute(f"SELECT count(*) {_ROWS[every]}", (plan,)).fetchone()[0])


def is_successor(store: Store, document: StoredDocument) -> bool:
    """Say whether a document replaces one that had sentences, or shares its content, so that some may be stored."""
    row = store.connection.execute(
        "SELECT 1 FROM documents WHERE id <> ?1 AND sentence_plan <> '' AND content_key = "
        "(SELECT content_key FROM documents WHERE id = ?1) UNION ALL "
        "SELECT 1 FROM documents WHERE id <> ?1 AND sentence_plan <> '' AND path = ?2 AND NOT live LIMIT 1",
        (document.id, document.path),
    ).fetchone()
    return row is not None


def unplanned_documents(store: Store, plan: str) -> list[StoredDocument]:
    """Return the live documents whose sentences are not planned under this plan."""
    query = "SELECT id FROM documents WHERE live AND sentence_plan <> ? ORDER BY path"
    return [document for (key,) in store.connection.execute(query, (plan,)) if (document := store.document(key))]


def has_sentences(store: Store) -> bool:
    """Say whether any sentence is stored."""
    return store.connection.execute("SELECT 1 FROM contexts WHERE kind = 'model' LIMIT 1").fetchone() is not None


def needs_of(store: Store, document_id: int) -> dict[int, float]:
    """Return the rows of a document that need a sentence, each with how much."""
    query = "SELECT id, need FROM chunks WHERE document_id = ? AND need IS NOT NULL"
    return dict(store.connection.execute(query, (document_id,)).fetchall())
