"""List the documents of a library: state, dates, size, and what each is about."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Literal

import numpy as np

from local_rag.asking import Filters
from local_rag.index.protocol import Indexes
from local_rag.indexing.changes import file_state
from local_rag.indexing.roots import Roots
from local_rag.retrieval.filters import document_filter
from local_rag.store.database import Store, StoredDocument

# `waiting`: read, but not in the live index yet; `changed`: the file has changed since it was read.
State = Literal["indexed", "waiting", "changed", "missing", "unreachable"]


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document; `modified` is the time of its file when it was read, `date` its own date, None if it has none.

    `about` consists of the document's first sentences and its parts.
    """

    path: str
    title: str
    about: str
    state: State
    size: int
    modified: str
    date: str | None
    url: str | None
    author: str | None
    tags: tuple[str, ...] | None
    chunks: int


def list_documents(
    store: Store, indexes: Indexes, filters: Filters, *, after: str = "", most: int | None = None
) -> list[ListedDocument]:
    """Return the live documents that pass the filters, by path: at most `most`, with paths after `after`."""
    documents = store.documents_after(after)
    if filters:
        passes = document_filter(filters, store.roots())
        chosen = {facts.id for facts in store.facts() if passes(facts)}
        documents = (document for document in documents if document.id in chosen)
    known, live = {document.path: document for document in islice(documents, most)}, indexes.live()
    states = _states(known, Roots(store, store.roots(), known))
    indexed = set(np.intersect1d(live.documents()[0], [one.id for one in known.values()]).tolist()) if live else set()
    listed = []
    for document in known.values():
        first, chunks = store.first_row(document.id), store.count_chunks(document.id)
        whole, said = first if first and first.kind == "document" else None, first.provenance if first else None
        state = states.get(document.path) or ("indexed" if document.id in indexed or not chunks else "waiting")
        listed.append(
            ListedDocument(
                path=document.path,
                title=document.title,
                about=whole.chunk.text if whole else "",
                state=state,
                size=document.size,
                modified=datetime.fromtimestamp(document.modified_ns // 10**9).isoformat(sep=" "),
                date=(said and said.date) or None,
                url=(said and said.url) or None,
                author=(said and said.author) or None,
                tags=(said and said.tags) or None,
                chunks=chunks,
            )
        )
    return listed


def _states(documents: Mapping[str, StoredDocument], roots: Roots) -> dict[str, State]:
    """Return the state of each document whose file is no longer as it was read."""
    states: dict[str, State] = {}
    for path, document in documents.items():
        if roots.is_out_of_reach(document):
            states[path] = "unreachable"
        elif (state := file_state(document)) != "same":
            states[path] = state
    return states
