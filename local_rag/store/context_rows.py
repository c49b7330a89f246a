"""The contexts of chunks: what code says of a document's chunks, and the sentences that a model writes about them.

Code compares a document with the others and stores what sets it apart. Of each chunk it says in what context it stands,
and how much it needs a sentence. Both the comparison and the sentences have plans, which name everything that they
depend on apart from the document. The sentences of one plan are never mixed with those of another: the keys of another
plan are forgotten before the first one is written.
"""

from collections.abc import Callable, Sequence

from local_rag.passage_records import ContextKind
from local_rag.store.database import Store, StoredDocument, content_key_of
from local_rag.store.schema import crc32

# The chunks of planned documents that lack a sentence. In the order of the keys, which is that of the contexts too, and
# without a look at the chunks themselves, because a library has a sentence for each chunk.
_LACKING = (
    "lacking AS MATERIALIZED (SELECT id FROM chunks INDEXED BY chunks_by_sentence WHERE sentence_key IS NOT NULL AND "
    "NOT EXISTS (SELECT 1 FROM contexts WHERE contexts.key = sentence_key))"
)
_DISTINCTION = "SELECT distinction FROM documents JOIN distinctions USING (content_key)"


def documents_to_compare(store: Store, plan: str) -> list[StoredDocument]:
    """Return the live documents that were never compared, except those whose contexts this plan made without it."""
    return store.select_documents(
        "live AND context_plan <> ? AND NOT EXISTS "
        "(SELECT 1 FROM distinctions WHERE content_key = documents.content_key)",
        plan,
    )


def put_distinction(store: Store, document_id: int, distinction: str) -> None:
    """Store what sets a document, and others of the same content, apart, as JSON."""
    store.connection.execute(
        "INSERT OR REPLACE INTO distinctions SELECT content_key, ?2, ?3 FROM documents WHERE id = ?1",
        (document_id, distinction, crc32(distinction)),
    )


def stored_distinction(store: Store, document_id: int) -> str:
    """Return what sets a document apart, as JSON; empty if it was not compared."""
    return "".join(store.column(f"{_DISTINCTION} WHERE id = ?", document_id))


def earlier_distinction(store: Store, document: StoredDocument) -> str:
    """Return the distinction of the last superseded document at the same path; empty if the store has none."""
    return "".join(store.column(f"{_DISTINCTION} WHERE path = ? AND NOT live ORDER BY id DESC LIMIT 1", document.path))


def set_apart(store: Store, audience: Callable[[int], str]) -> None:
    """Let documents be set apart for each audience by itself.

    Of a document with another audience than before nothing is known: it is embedded without contexts, compared and
    situated again.
    """
    rows = store.connection.execute("SELECT id, content_key, sha256, split_key, title FROM documents").fetchall()
    keys = ((row[0], row[1], content_key_of(row[2], row[3], row[4], audience(row[0]))) for row in rows)
    changed = [(document, key) for document, known, key in keys if key != known]
    if not changed:
        return
    with store.transaction():
        update = "UPDATE documents SET content_key = ?2, context_plan = '', sentence_plan = '' WHERE id = ?1"
        store.connection.executemany(update, changed)
        for forgotten in (
            "UPDATE chunks SET context_key = NULL, need = NULL, sentence_key = NULL WHERE document_id = ?1",
            "UPDATE embedding_plans SET plan = '' WHERE document_id = ?1",
            "DELETE FROM mean_vectors WHERE document_id = ?1",
        ):
            store.connection.executemany(forgotten, [(document,) for document, _ in changed])
        drop_unused_distinctions(store)


def drop_unused_distinctions(store: Store) -> None:
    """Delete what set documents apart that are gone; a salvaged store has some."""
    store.connection.execute("DELETE FROM distinctions WHERE content_key NOT IN (SELECT content_key FROM documents)")


def forget_distinctions(store: Store) -> None:
    """Forget what sets documents apart, so all are compared again and their contexts planned again."""
    with store.transaction():
        store.connection.execute("DELETE FROM distinctions")
        store.connection.execute("UPDATE documents SET context_plan = '' WHERE live")


def documents_without_a_plan(store: Store, plan: str) -> list[StoredDocument]:
    """Return live documents whose contexts are not planned under this plan yet."""
    return store.select_documents("id IN (SELECT id FROM documents WHERE live AND context_plan <> ?)", plan)


def has_context(store: Store, key: str) -> bool:
    """Say whether the context with a key is stored."""
    return bool(store.column("SELECT 1 FROM contexts WHERE key = ?", key))


def plan_code_contexts(
    store: Store, document_id: int, plan: str, keys: Sequence[tuple[int, str, float | None]]
) -> None:
    """Record what code says of the rows of a document, as (chunk id, context key, need of a sentence)."""
    with store.transaction():
        situated = _is_situated(store, document_id)
        changed = store.connection.executemany(
            "UPDATE chunks SET context_key = ?2, need = ?3 WHERE id = ?1 AND (context_key IS NOT ?2 OR need IS NOT ?3)",
            keys,
        ).rowcount
        if changed > 0 and (situated or _is_situated(store, document_id)):  # it was embedded without these contexts
            store.connection.execute("UPDATE embedding_plans SET plan = '' WHERE document_id = ?", (document_id,))
        store.connection.execute("UPDATE documents SET context_plan = ? WHERE id = ?", (plan, document_id))


def _is_situated(store: Store, document_id: int) -> bool:
    """Say whether a document wants contexts that are not known to be empty."""
    query = (
        "SELECT 1 FROM chunks LEFT JOIN contexts ON contexts.key = context_key "
        "WHERE document_id = ? AND context_key IS NOT NULL AND contexts.text IS NOT '' LIMIT 1"
    )
    return bool(store.column(query, document_id))


def put_context(store: Store, key: str, text: str, kind: ContextKind) -> None:
    """Store a finished context; if it has changed, the documents that want it are to be embedded again."""
    if store.connection.execute("SELECT text, kind FROM contexts WHERE key = ?", (key,)).fetchone() == (text, kind):
        return
    with store.transaction():
        store.connection.execute(
            "INSERT OR REPLACE INTO contexts (key, text, kind, checksum) VALUES (?, ?, ?, ?)",
            (key, text, kind, crc32(kind, text)),
        )
        wanted = (
            "document_id IN (SELECT document_id FROM chunks WHERE context_key = ?1 "
            "UNION SELECT document_id FROM chunks WHERE sentence_key = ?1)"
        )
        store.connection.execute(f"UPDATE embedding_plans SET plan = '' WHERE plan <> '' AND {wanted}", (key,))  # noqa: S608


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
    query = (
        f"WITH {_LACKING} "  # noqa: S608
        "SELECT id, (SELECT max(need) FROM chunks WHERE document_id = documents.id AND need IS NOT NULL) AS greatest "
        "FROM documents WHERE live AND "
        "(sentence_plan <> ? OR id IN (SELECT document_id FROM lacking JOIN chunks USING (id))) "
        "ORDER BY coalesce(greatest, 0) DESC, path"
    )
    return [document for key in store.column(query, plan) if (document := store.document(key))]


def count_unwritten(store: Store, plan: str) -> int:
    """Count the chunks of live documents that lack a sentence."""
    query = (
        f"WITH {_LACKING} SELECT "  # noqa: S608
        "(SELECT count(*) FROM documents CROSS JOIN chunks ON documents.id = document_id "
        "WHERE live AND sentence_plan <> ?1 AND position >= 0) + "
        "(SELECT count(*) FROM lacking JOIN chunks USING (id) JOIN documents ON documents.id = document_id "
        "WHERE live AND sentence_plan = ?1)"
    )
    return int(store.value(query, plan))


def is_successor(store: Store, document: StoredDocument) -> bool:
    """Say whether a document replaces one that had sentences, or shares its content, so that some may be stored."""
    query = (
        "SELECT 1 FROM documents WHERE id <> ?1 AND sentence_plan <> '' AND content_key = "
        "(SELECT content_key FROM documents WHERE id = ?1) UNION ALL "
        "SELECT 1 FROM documents WHERE id <> ?1 AND sentence_plan <> '' AND path = ?2 AND NOT live LIMIT 1"
    )
    return bool(store.column(query, document.id, document.path))
