"""Forget what the history quotes of documents that the library no longer holds, or that are erased."""

from collections.abc import Collection

from local_rag.index.protocol import Indexes, content_key
from local_rag.store.database import Store
from local_rag.store.history import History, IsGone, kept_history
from local_rag.store.questions import forget_questions


def forget_missing(store: Store, indexes: Indexes, history: History) -> int:
    """Delete every turn that quotes a document of which the library holds neither the content nor the path.

    Cached answers made with another index than the live one are deleted too. Return the number of turns.
    """
    live = indexes.live()
    return history.forget_documents(_missing(store), made_with=content_key(live.manifest) if live else "")


def forget_missing_in_file(store: Store, indexes: Indexes) -> None:
    """Do this to the history file, if there is one."""
    with kept_history(store.folder) as history:
        if history:
            forget_missing(store, indexes, history)


def count_missing(store: Store) -> int:
    """Return how many turns of the history file quote a document that the library no longer holds."""
    with kept_history(store.folder) as history:
        return history.count_quoting(_missing(store)) if history else 0


def _missing(store: Store) -> IsGone:
    return lambda sha256, path: bool(sha256) and not store.holds(sha256, path)


def forget_documents(store: Store, paths: Collection[str], hashes: Collection[str]) -> None:
    """Forget every turn and recorded question about documents with these paths or contents, and all cached answers.

    Of a content that another live document has too, only what is about the given paths is forgotten.
    """

    def is_gone(sha256: str, path: str) -> bool:
        return path in paths or (sha256 in hashes and not store.holds("", path))

    with kept_history(store.folder) as history:
        if history:
            history.forget_documents(is_gone, erased=True)
    forget_questions(store.folder, is_gone)
