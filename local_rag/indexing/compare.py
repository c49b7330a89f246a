"""Compare documents with the others of a library: what sets them apart, and which of their chunks can be mistaken.

A document is compared once, with the documents that the library holds then. Its distinction is stored with it. A moved
file keeps it, and so does a changed file that still contains all of it.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np

from local_rag.indexing.distinction import (
    APART,
    TUNING,
    Distinction,
    Terms,
    context_needs,
    distinguishing_terms,
    needs,
    opening_of,
    terms_of,
)
from local_rag.indexing.similar import Audiences, Near, SimilarChunks
from local_rag.keys import key_of
from local_rag.store.context_rows import (
    earlier_distinction,
    plan_code_contexts,
    put_context,
    put_distinction,
    stored_distinction,
)
from local_rag.store.database import Store, StoredDocument

_SIMILAR_DOCUMENTS = 16  # to compare terms with, those with the most near chunks first
_OTHER_DOCUMENTS = 48  # from the whole library, to find how rare a term is
# Bytes of the terms of documents that are kept in memory, as numbers and spelled: 2 kB and 5 kB of most documents.
_NUMBERS_KEPT, _TERMS_KEPT = 1 << 27, 1 << 26
_TOGETHER = 64  # documents that are compared in one matrix product and one commit

T = TypeVar("T")

APART_PLAN = key_of("plan", APART)  # of contexts that are made without a model


class _KnownTerms:
    """The terms of a library's documents, each read once: those asked for last are kept, up to a size."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._numbers = _Kept[np.ndarray](_NUMBERS_KEPT)
        self._waiting = _Kept[Terms](_TERMS_KEPT)  # documents that are not compared yet

    def of(self, document: StoredDocument) -> Terms:
        """Return the terms of a document, which is asked for once."""
        found = self._waiting.pop(document.id) or self._read(document)
        self._numbers.put(document.id, found.numbers, found.numbers.nbytes)
        return found

    def numbers(self, document: StoredDocument) -> np.ndarray:
        """Return the numbers of the terms of a document."""
        found = self._numbers.get(document.id)
        if found is None:
            terms = self._read(document)
            found = terms.numbers
            self._numbers.put(document.id, found, found.nbytes)
            self._waiting.put(document.id, terms, len(terms.spellings) + terms.weights.nbytes)
        return found

    def _read(self, document: StoredDocument) -> Terms:
        return terms_of(document.title, self._store.document_text(document.id))


class _Kept(Generic[T]):
    """Values by document, those asked for last, up to a size in bytes."""

    def __init__(self, most: int) -> None:
        self._most, self._bytes = most, 0
        self._values = OrderedDict[int, tuple[T, int]]()

    def get(self, document: int) -> T | None:
        """Return a value, which is kept longer now."""
        if document not in self._values:
            return None
        self._values.move_to_end(document)
        return self._values[document][0]

    def pop(self, document: int) -> T | None:
        """Return a value and forget it."""
        value, size = self._values.pop(document, (None, 0))
        self._bytes -= size
        return value

    def put(self, document: int, value: T, size: int) -> None:
        """Keep a value, and forget others."""
        self.pop(document)
        self._values[document] = value, size
        self._bytes += size
        while self._bytes > self._most:
            self._bytes -= self._values.popitem(last=False)[1][1]


def compare(store: Store, embedder: str, documents: Sequence[StoredDocument], audiences: Audiences) -> Iterator[int]:
    """Compare embedded documents and store the distinction of each; yield how many are done after each commit."""
    chunks, everywhere = SimilarChunks(store, embedder, audiences), store.live_ids()
    spreads = dict[str, list[StoredDocument]]()  # documents from everywhere, by the audience that sees them
    terms = _KnownTerms(store)
    for start in range(0, len(documents), _TOGETHER):
        some = documents[start : start + _TOGETHER]
        with store.transaction():
            for document, near in zip(some, chunks.of(some), strict=True):
                if stored_distinction(store, document.id):  # a copy of it was compared
                    continue
                distinction = Distinction.from_json(earlier_distinction(store, document))
                if not distinction.holds_for(document.title, store.document_text(document.id)):
                    alike = [one for key in _most_similar(near) if (one := store.document(key))]
                    if (audience := audiences.key(document.id)) not in spreads:
                        spreads[audience] = _spread(store, audiences.seen_with(document.id, everywhere))
                    spread = spreads[audience]
                    others = [one for one in spread if one.sha256 != document.sha256 and one not in alike]
                    distinction = _distinction(store, document, alike, others, terms)
                chunks_of = [stored.chunk for stored in store.chunks(document.id)] if distinction.terms else []
                closest = [
                    max((other.similarity for other in near.get(chunk.position, ())), default=0.0)
                    for chunk in chunks_of
                ]
                needed = context_needs(chunks_of, document.title, distinction.terms, closest)
                put_distinction(store, document.id, replace(distinction, needed=needed).as_json())
        yield start + len(some)


def _spread(store: Store, documents: Sequence[int]) -> list[StoredDocument]:
    step = len(documents) // _OTHER_DOCUMENTS + 1
    return [found for one in documents[::step] if (found := store.document(one))]


def _most_similar(near: Mapping[int, Sequence[Near]]) -> list[int]:
    """Return the documents with the most chunks that a document's chunks can be mistaken for."""
    counts = Counter(
        one.document for position in sorted(near) for one in near[position] if one.similarity >= TUNING.alike
    )
    return [document for document, _ in counts.most_common(_SIMILAR_DOCUMENTS)]


def _distinction(
    store: Store,
    document: StoredDocument,
    alike: Sequence[StoredDocument],
    others: Sequence[StoredDocument],
    terms: _KnownTerms,
) -> Distinction:
    if not alike:
        return Distinction()
    own = terms.of(document)
    found = distinguishing_terms(own, list(map(terms.numbers, alike)), list(map(terms.numbers, others)))
    return Distinction(tuple(found), _opening(store, document) if found else "")


def _opening(store: Store, document: StoredDocument) -> str:
    """Return the opening of a document; empty for code, which begins with licences and imports."""
    return "" if store.document_kind(document.id) == "code" else opening_of(store.document_text(document.id))


def situate(store: Store, documents: Sequence[StoredDocument]) -> int:
    """Say of the chunks of compared documents what code can say, and which need a sentence; return of how many."""
    count = 0
    for start in range(0, len(documents), _TOGETHER):
        with store.transaction():
            count += sum(_situate(store, document) for document in documents[start : start + _TOGETHER])
    return count


def _situate(store: Store, document: StoredDocument) -> int:
    distinction = Distinction.from_json(stored_distinction(store, document.id))
    code = store.document_kind(document.id) == "code"
    need = needs({} if code else store.chunk_texts(document.id), distinction)
    keys = []
    for row, position in store.positions(document.id):
        context = distinction.context if position in distinction.needed else ""
        keys.append((row, apart_key(context), need.get(position)))
    for context in {distinction.context, ""} if distinction.needed else {""}:
        put_context(store, apart_key(context), context, "terms" if context else "unneeded")
    plan_code_contexts(store, document.id, APART_PLAN, keys)
    return len(distinction.needed)


def apart_key(context: str) -> str:
    """Return the key of a context that is made without a model."""
    return key_of(APART, context)
