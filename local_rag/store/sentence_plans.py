"""The sentences that a model writes about chunks: under which keys, and which of them are written.

A document is planned under a plan, which names the model and everything else that its sentences depend on; its chunks
then have the keys of their sentences. The sentences of one plan are never mixed with those of another: the keys of
another plan are forgotten before the first one is written.
"""

from collections.abc import Sequence

from local_rag.store.database import Store, StoredDocument

# The chunks of planned documents that lack a sentence. In the order of the keys, which is that of the contexts too, and
# without a look at the chunks themselves, because a library has a sentence for each chunk.
_LACKING = (
    "lacking AS MATERIALIZED (SELECT id FROM chunks INDEXED BY chunks_by_sentence WHERE sentence_key IS NOT NULL AND "
    "NOT EXISTS (SELECT 1 FROM contexts WHERE contexts.key = sentence_key))"
)


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


def documents_to_write(store: Store, plan: str) -> list[StoredDocument]:
    """Return the live documents that lack sentences, those with the chunks in the greatest need first."""
    rows = store.connection.execute(
        f"WITH {_LACKING} "  # noqa: S608
        "SELECT id, (SELECT max(need) FROM chunks WHERE document_id = documents.id AND need IS NOT NULL) AS greatest "
        "FROM documents WHERE live AND "
        "(sentence_plan <> ? OR id IN (SELECT document_id FROM lacking JOIN chunks USING (id))) "
        "ORDER BY coalesce(greatest, 0) DESC, path",
        (plan,),
    ).fetchall()
    return [document for key, _ in rows if (document := store.document(key))]


def count_unwritten(store: Store, plan: str) -> int:
    """Count the chunks of live documents that lack a sentence."""
    row = store.connection.execute(
        f"WITH {_LACKING} SELECT "  # noqa: S608
        "(SELECT count(*) FROM documents CROSS JOIN chunks ON documents.id = document_id "
        "WHERE live AND sentence_plan <> ?1 AND position >= 0) + "
        "(SELECT count(*) FROM lacking JOIN chunks USING (id) JOIN documents ON documents.id = document_id "
        "WHERE live AND sentence_plan = ?1)",
        (plan,),
    ).fetchone()
    return int(row[0])


def is_successor(store: Store, document: StoredDocument) -> bool:
    """Say whether a document replaces one that had sentences, or shares its content, so that some may be stored."""
    row = store.connection.execute(
        "SELECT 1 FROM documents WHERE id <> ?1 AND sentence_plan <> '' AND content_key = "
        "(SELECT content_key FROM documents WHERE id = ?1) UNION ALL "
        "SELECT 1 FROM documents WHERE id <> ?1 AND sentence_plan <> '' AND path = ?2 AND NOT live LIMIT 1",
        (document.id, document.path),
    ).fetchone()
    return row is not None
