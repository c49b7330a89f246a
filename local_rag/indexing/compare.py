"""Compare documents with the others of a library: what sets them apart, and which of their chunks can be mistaken.

A document is compared once, with the documents that the library holds then. Its distinction is stored with it. A moved
file keeps it, and so does a changed file that still contains all of it.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from pathlib import Path

from local_rag.index.keyword_index import keyword_tokens
from local_rag.index.protocol import Index
from local_rag.indexing.distinction import (
    APART,
    TUNING,
    Distinction,
    Terms,
    context_needs,
    distinguishing_terms,
    opening_of,
    terms_of,
)
from local_rag.keys import key_of
from local_rag.records import Chunk
from local_rag.store.database import Store, StoredDocument

_NEAREST = 16  # chunks to compare each chunk with
_COUNTED = 3  # of these, how many make their documents count as similar
_NAMED_DOCUMENTS = 3  # that a distinction names
_SIMILAR_DOCUMENTS = 16  # to compare terms with, those with the most near chunks first
_OTHER_DOCUMENTS = 48  # from the whole library, to find how rare a term is
_REMEMBERED = 256  # documents whose terms are kept in memory

APART_PLAN = key_of("plan", APART)  # of contexts that are made without a model


def compare(store: Store, index: Index, documents: Sequence[StoredDocument]) -> Iterator[None]:
    """Compare documents that are in a published index and store the distinction of each; yield after each."""
    index.open()
    live = store.documents()
    by_id = {document.id: document for document in live}

    @lru_cache(maxsize=_REMEMBERED)
    def terms(document_id: int) -> Terms:
        return terms_of(by_id[document_id].title, store.document_text(document_id))

    for document in documents:
        chunks = [stored.chunk for stored in store.chunks(document.id)]
        if not store.distinction(document.id):  # or a copy of it was compared
            distinction = Distinction.from_json(store.earlier_distinction(document))
            similarities, similar = _most_similar(store, index, document)
            if not distinction.holds_for(document.title, store.document_text(document.id)):
                near = [one for one in similar if one in by_id][:_SIMILAR_DOCUMENTS]
                spread = [one for one in live[:: len(live) // _OTHER_DOCUMENTS + 1] if one.sha256 != document.sha256]
                others = [terms(one.id) for one in spread if one.id not in near]
                found = distinguishing_terms(terms(document.id), [terms(one) for one in near], others)
                names = _names([by_id[one] for one in near], document.title)
                distinction = Distinction(tuple(found), _opening(store, document) if found else "", alike=names)
            needed = context_needs(chunks, document.title, distinction.terms, similarities)
            store.put_distinction(document.id, replace(distinction, needed=needed).as_json())
        yield


def _most_similar(store: Store, index: Index, document: StoredDocument) -> tuple[list[float], list[int]]:
    """Return, for each chunk, its highest similarity to a chunk of another document, and those documents by similarity.

    The similarity is the cosine, or the share of common words if that is higher: the vectors of other documents may be
    shifted by their contexts.
    """
    similarities, similar = list[float](), Counter[int]()
    for stored, vector in zip(list(store.chunks(document.id)), store.vectors_of(document.id), strict=True):
        nearest = index.dense(vector, _NEAREST) if vector is not None else []
        owners = store.owners_of([chunk for chunk, _ in nearest])
        # A chunk cannot be mistaken for its copy in an identical document.
        others = {
            chunk: score
            for chunk, score in nearest
            if chunk in owners and owners[chunk][0] != document.id and owners[chunk][1] != document.sha256
        }
        words = set(keyword_tokens(stored.chunk.text))
        for chunk, other in store.chunks_by_id(list(others)[:_COUNTED]).items():
            others[chunk] = max(others[chunk], shared_words(words, set(keyword_tokens(other.chunk.text))))
        similarities.append(max(others.values(), default=0.0))
        similar.update(owners[chunk][0] for chunk in list(others)[:_COUNTED] if others[chunk] >= TUNING.alike)
    return similarities, [owner for owner, _ in similar.most_common()]


def shared_words(one: Collection[str], other: Collection[str]) -> float:
    """Return the share of words that two sets have in common (Dice coefficient)."""
    return 2 * len({*one} & {*other}) / max(1, len(one) + len(other))


def _names(documents: Sequence[StoredDocument], title: str) -> tuple[str, ...]:
    """Return the names of the first few documents: their titles, or their files' names if their title is this one."""
    names = (one.title if one.title != title else Path(one.path).stem for one in documents)
    return tuple(islice(dict.fromkeys(names), _NAMED_DOCUMENTS))


def _opening(store: Store, document: StoredDocument) -> str:
    """Return the opening of a document; empty for code, which begins with licences and imports."""
    return "" if store.document_kind(document.id) == "code" else opening_of(store.document_text(document.id))


def situate(store: Store, document: StoredDocument) -> int:
    """Give the chunks of a compared document their contexts without a model; return how many chunks need one."""
    distinction = Distinction.from_json(store.distinction(document.id))
    keys = []
    for stored in store.rows(document.id):
        needs_it = stored.kind == "chunk" and stored.chunk.position in distinction.needed
        keys.append((stored.id, apart_key(distinction.context if needs_it else "")))
    for context in {distinction.context, ""} if distinction.needed else {""}:
        store.put_context(apart_key(context), context, "apart" if context else "unneeded")
    store.plan_contexts(document.id, APART_PLAN, keys)
    return len(distinction.needed)


def most_needed_first(store: Store, documents: Sequence[StoredDocument]) -> list[StoredDocument]:
    """Sort documents by how much their chunks need contexts; equal ones keep their order."""
    need = {one.id: sum(Distinction.from_json(store.distinction(one.id)).needed.values()) for one in documents}
    return sorted(documents, key=lambda one: -need[one.id])


def apart_key(context: str) -> str:
    """Return the key of a context that is made without a model."""
    return key_of(APART, context)


def distinctions_of(store: Store, document: StoredDocument, chunks: Sequence[Chunk]) -> list[str]:
    """Return, for each chunk, the text to put before the sentence that a model writes; empty for most."""
    distinction = Distinction.from_json(store.distinction(document.id))
    return [distinction.context if chunk.position in distinction.needed else "" for chunk in chunks]
