"""What filters let a person see of a library's documents; the rest is as if it were not there."""

from collections.abc import Collection, Iterable
from pathlib import Path

from local_rag.errors import MissingError
from local_rag.records import DocumentFacts, Filters
from local_rag.retrieval.filters import document_filter
from local_rag.store.database import Store

GONE = "This document is no longer in the library; search again."


def visible_ids(store: Store, filters: Filters, documents: Collection[int] | None = None) -> set[int] | None:
    """Return the ids of the documents, or of those among these, that pass the filters; None without filters."""
    if not filters:
        return None
    passes = document_filter(filters, store.roots())
    return {facts.id for facts in store.facts(documents) if passes(facts)}


def require_visible(store: Store, filters: Filters, document: int) -> None:
    """Raise MissingError for a document that does not pass, as for one that is not there."""
    visible = visible_ids(store, filters, [document])
    if visible is not None and document not in visible:
        raise MissingError(GONE)


def visible_paths(store: Store, filters: Filters, paths: Iterable[str]) -> list[str]:
    """Return the paths that pass by themselves: of a file that was not read, neither tags nor a date are known."""
    passes = document_filter(filters, store.roots())
    return [path for path in paths if passes(DocumentFacts(0, path, 0, "", ()))]


def visible_roots(store: Store, filters: Filters, paths: Collection[str]) -> list[Path]:
    """Return the roots that hold one of the paths; all of them without filters."""
    roots = store.roots()
    if not filters:
        return roots
    return [root for root in roots if any(path == str(root) or path.startswith(f"{root}/") for path in paths)]
