"""Compare documents with the others of a library: which of their chunks can be mistaken, and what sets them apart.

A document is compared once, with those that are there then. What was said of it is kept with it, and goes with its
content when its file is moved, and with its file as long as all of it still stands there.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache

from local_rag.index.keyword_index import keyword_tokens
from local_rag.index.protocol import Index
from local_rag.indexing.distinction import APART, TUNING, Terms, Told, distinguishing, needs, opening_of, terms_of
from local_rag.keys import key_of
from local_rag.records import Chunk
from local_rag.store.database import Store, StoredDocument

_NEAREST = 16  # chunks that are looked at for each chunk
_COUNTED = 3  # of them for which a document counts as alike
_LIKE_DOCUMENTS = 16  # with which terms are compared, those with the most near chunks first
_OTHER_DOCUMENTS = 48  # and from all over the library, which show how rare a term is
_REMEMBERED = 256  # documents whose terms are kept while others are compared

APART_PLAN = key_of("plan", APART)  # of contexts that no model writes


def compare(store: Store, index: Index, documents: Sequence[StoredDocument]) -> Iterator[tuple[StoredDocument, Told]]:
    """Compare documents, all of them in a published index; keep what is said of each, and yield it."""
    index.open()
    live = store.documents()
    by_id = {document.id: document for document in live}

    @lru_cache(maxsize=_REMEMBERED)
    def terms(document_id: int) -> Terms:
        return terms_of(by_id[document_id].title, store.document_text(document_id))

    for document in documents:
        chunks = [stored.chunk for stored in store.chunks(document.id)]
        said, same = store.earlier_distinction(document)
        told = Told.from_json(said)
        if not same:
            likenesses, alike = _look_round(store, index, document)
            if not told.holds_for(document.title, store.document_text(document.id)):
                near = [one for one in alike if one in by_id][:_LIKE_DOCUMENTS]
                spread = [one for one in live[:: len(live) // _OTHER_DOCUMENTS + 1] if one.sha256 != document.sha256]
                others = [terms(one.id) for one in spread if one.id not in near]
                found = distinguishing(terms(document.id), [terms(one) for one in near], others)
                told = Told(tuple(found), _opening(store, document) if found else "")
            told = Told(told.terms, told.opening, needs(chunks, document.title, told.terms, likenesses))
        store.put_distinction(document.id, told.as_json())
        yield document, told


def _look_round(store: Store, index: Index, document: StoredDocument) -> tuple[list[float], list[int]]:
    """Return how like each chunk its likest one of another document is, and those documents, the likest first.

    The likeness is the cosine, or the share of words in common where that is more: vectors in the index lean to the
    contexts that other documents have already.
    """
    likenesses, alike = list[float](), Counter[int]()
    for stored, vector in zip(list(store.chunks(document.id)), store.vectors_of(document.id), strict=True):
        nearest = index.dense(vector, _NEAREST) if vector is not None else []
        owners = store.owners_of([chunk for chunk, _ in nearest])
        # A copy of the same document is not what it can be mistaken for.
        others = {
            chunk: score
            for chunk, score in nearest
            if chunk in owners and owners[chunk][0] != document.id and owners[chunk][1] != document.sha256
        }
        words = set(keyword_tokens(stored.chunk.text))
        for chunk, other in store.chunks_by_id(list(others)[:_COUNTED]).items():
            others[chunk] = max(others[chunk], shared_words(words, set(keyword_tokens(other.chunk.text))))
        likenesses.append(max(others.values(), default=0.0))
        alike.update(owners[chunk][0] for chunk in list(others)[:_COUNTED] if others[chunk] >= TUNING.alike)
    return likenesses, [owner for owner, _ in alike.most_common()]


def shared_words(one: Collection[str], other: Collection[str]) -> float:
    """Return the share of words that two sets have in common, by Dice."""
    return 2 * len({*one} & {*other}) / max(1, len(one) + len(other))


def _opening(store: Store, document: StoredDocument) -> str:
    """Return how a document begins; the first lines of code are licences and imports, which say nothing."""
    return "" if store.document_kind(document.id) == "code" else opening_of(store.document_text(document.id))


def situate(store: Store, document: StoredDocument) -> int:
    """Give the chunks of a compared document that need one their context, without a model; return how many do."""
    told = Told.from_json(store.distinction(document.id))
    says = told.says
    keys = []
    for stored in store.rows(document.id):
        said = says if stored.kind == "chunk" and stored.chunk.position in told.needed else ""
        keys.append((stored.id, apart_key(said)))
    for said in {says, ""} if told.needed else {""}:
        store.put_context(apart_key(said), said, "apart" if said else "unneeded")
    store.plan_contexts(document.id, APART_PLAN, keys)
    return len(told.needed)


def most_needed_first(store: Store, documents: Sequence[StoredDocument]) -> list[StoredDocument]:
    """Order documents by how much their chunks need contexts; those that do not keep their order."""
    need = {one.id: sum(Told.from_json(store.distinction(one.id)).needed.values()) for one in documents}
    return sorted(documents, key=lambda one: -need[one.id])


def apart_key(says: str) -> str:
    """Return the key of a context that no model writes, made of all that it is."""
    return key_of(APART, says)


def told_to(store: Store, document: StoredDocument, chunks: Sequence[Chunk]) -> list[str]:
    """Return for each chunk what stands before the sentence that a model writes, empty for most."""
    told = Told.from_json(store.distinction(document.id))
    return [told.says if chunk.position in told.needed else "" for chunk in chunks]
