"""Answer a question that counts or lists over all documents, not over a sample of them.

Words are looked up in the keyword index, which names each document that may have them, and then counted in the text of
these documents. For a meaning, every passage is scored by the reranker.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from local_rag.errors import QuestionError
from local_rag.files import is_utf8
from local_rag.index.keyword_index import keyword_tokens
from local_rag.index.protocol import Allowed, Index
from local_rag.records import EVERYTHING, Filters, Found, FoundPlace, Passage, Progress, StoredChunk
from local_rag.retrieval.filters import document_filter
from local_rag.retrieval.marking import best_sentence
from local_rag.retrieval.occurrences import best_line, line_span, occurrences, pattern_of, tokens_of
from local_rag.retrieval.question_kinds import FindQuestion, Phrase
from local_rag.retrieval.search import Searcher, found_passage
from local_rag.store.database import Store
from local_rag.store.finding import NamedDocument, chunk_at, chunk_ids_of, documents_of, named_documents

OnProgress = Callable[[Progress], None]
_ROUND = 32  # passages that are scored between two reports of progress
_BEGINNING = 160  # characters of a document that are shown if it lacks what was looked for


@dataclass(frozen=True, slots=True)
class Scope:
    """The documents to examine, by path, and what is to be said of the choice."""

    documents: list[NamedDocument]
    said: str = ""
    notes: tuple[str, ...] = ()

    @property
    def ids(self) -> set[int]:
        """Return their ids."""
        return {one.id for one in self.documents}

    def allowed(self, index: Index, store: Store) -> Allowed:
        """Return their chunks, in the form that the index accepts."""
        return (index.passages() or store).chunks_of(self.ids)


def find_words(question: str, asked: FindQuestion, index: Index, store: Store, filters: Filters = EVERYTHING) -> Found:
    """Find the documents that contain the phrases of a question; no model takes part."""
    scope = scope_of(question, asked, index, store, filters)
    patterns = [pattern_of(phrase) for phrase in asked.phrases]
    allowed, rows = scope.allowed(index, store), len(index.chunk_ids())
    holders = [scope.ids & _holders(phrase, index, store, allowed, rows) for phrase in asked.phrases]
    chosen = set.intersection(*holders) if asked.every else set.union(*holders)
    places, total = list[FoundPlace](), 0
    for document in scope.documents:
        text = store.document_text(document.id) if document.id in chosen else ""
        of_each = [occurrences(text, [pattern]) for pattern in patterns] if text else []
        has = bool(of_each) and (all(of_each) if asked.every else any(of_each))
        if asked.negated:
            if not has and (place := _beginning(store, document)):
                places.append(place)
            continue
        if not has:
            continue
        found = occurrences(text, patterns) if len(patterns) > 1 else of_each[0]
        total += len(found)
        by_line = [[one for one in found if one.line == line] for line in dict.fromkeys(one.line for one in found)]
        for group in [found] if asked.kind != "list" or asked.by_document else by_line:
            first, _ = best_line(group)
            if place := _place(store, document.id, text, line_span(text, first.start, first.end), len(group)):
                places.append(place)
    return Found(
        question,
        asked.kind,
        said_of_words(asked) + scope.said,
        total if not (asked.by_document or asked.negated) else len(places),
        tuple(places),
        complete=not scope.notes,
        by_document=asked.by_document or asked.negated,
        notes=scope.notes,
    )


def find_meaning(
    question: str,
    asked: FindQuestion,
    searcher: Searcher,
    store: Store,
    filters: Filters = EVERYTHING,
    *,
    most: int = 0,
    progress: OnProgress = lambda _progress: None,
    stop: Callable[[], bool] = lambda: False,
) -> Found:
    """Find the documents with a passage about the subject of a question: score all passages, or the `most` closest.

    `stop` is called before each round of passages; once it returns true, what was found until then is the result.
    The searcher must have a reranker whose scale is known.
    """
    bound = searcher.relevant_from
    scope = scope_of(question, asked, searcher.index, store, filters)
    waiting = list(chunk_ids_of(store, scope.ids))
    total = len(waiting)
    ranked = searcher.closest(asked.subject, total, scope.allowed(searcher.index, store)) if waiting else []
    position = {chunk: place for place, chunk in enumerate(ranked)}
    waiting.sort(key=lambda chunk: position.get(chunk, total))
    waiting = waiting[:most] if most else waiting
    best, counts, done = dict[int, tuple[float, StoredChunk]](), dict[int, int](), 0
    passages = list[tuple[float, StoredChunk]]()
    for done in range(0, len(waiting), _ROUND):
        if stop():
            break
        progress(Progress("find", done, len(waiting)))
        stored = list(store.chunks_by_id(waiting[done : done + _ROUND]).values())
        for chunk, score in zip(stored, searcher.scores(asked.subject, stored), strict=True):
            if score < bound:
                continue
            passages.append((score, chunk))
            counts[chunk.document_id] = counts.get(chunk.document_id, 0) + 1
            if chunk.document_id not in best or score > best[chunk.document_id][0]:
                best[chunk.document_id] = (score, chunk)
    else:
        done = len(waiting)
    progress(Progress("find", done, len(waiting)))
    shown = passages if asked.kind == "list" and not asked.by_document else list(best.values())
    shown.sort(key=lambda one: (-one[0], one[1].path, one[1].chunk.position))
    places = [
        FoundPlace(_best_of(chunk, score, asked.subject), counts[chunk.document_id] if asked.by_document else 1)
        for score, chunk in shown
    ]
    notes = scope.notes
    if done < total:
        notes = (*notes, f"Only the {done:,} closest of {total:,} passages were examined.")
    count = len(best) if asked.by_document else len(passages)
    said = f'are about "{asked.subject}", by the scores of the reranker'
    return Found(question, asked.kind, said + scope.said, count, tuple(places), not notes, asked.by_document, notes)


def said_of_words(asked: FindQuestion) -> str:
    """Say which documents count."""
    names = [f'"{one.text}"' for one in asked.phrases]
    listed = (" and " if asked.every else " or ").join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    words = "word" if len(names) == 1 and len(asked.phrases[0].text.split()) == 1 else "words"
    exact = all(one.exact for one in asked.phrases)
    how = " exactly as written" if exact else " or inflected forms of it" if words == "word" else ", also inflected"
    return f"{'do not contain' if asked.negated else 'contain'} the {words} {listed}{how}"


def scope_of(question: str, asked: FindQuestion, index: Index, store: Store, filters: Filters) -> Scope:
    """Return the documents of the index that pass the filters and are of the sort that is asked for."""
    if not is_utf8(question):
        raise QuestionError("The question is not UTF-8; set the terminal to UTF-8 and type it again.")
    indexed = set(index.documents()[0].tolist())
    passes = document_filter(filters, store.roots())
    passing = {facts.id for facts in store.facts() if passes(facts)}
    waiting = len((passing & set(store.live_ids())) - indexed)
    documents = named_documents(store, indexed & passing)
    notes = (f"{waiting:,} documents are not indexed yet; run `local-rag index`.",) if waiting else ()
    if not asked.sort:
        return Scope(documents, notes=notes)
    below = [f"{root}/" for root in store.roots()]
    of_sort, name = _of_sort(documents, asked.sort, below)
    if not of_sort:
        return Scope(
            documents, f'; no document is named "{asked.sort}", so all {len(documents):,} were examined', notes
        )
    return Scope(of_sort, f', of {len(of_sort):,} named "{name}"', notes)


def _of_sort(documents: Sequence[NamedDocument], sort: str, below: Sequence[str]) -> tuple[list[NamedDocument], str]:
    """Return the documents whose path, title or tags have all words of a sort, or else all words but the noun."""
    names = dict[int, set[str]]()
    for one in documents:
        path = next((one.path.removeprefix(root) for root in below if one.path.startswith(root)), one.path)
        names[one.id] = set(keyword_tokens(" ".join((path.replace("_", " "), one.title, *one.tags))))
    words = sort.split()
    for some in (words, words[:-1]):
        wanted = set(keyword_tokens(" ".join(some)))
        if wanted and (found := [one for one in documents if wanted <= names[one.id]]):
            return found, " ".join(some)
    return [], sort


def _holders(phrase: Phrase, index: Index, store: Store, allowed: Allowed, rows: int) -> set[int]:
    """Return the documents that have each word of a phrase in one of the `rows` of the index: all that may have it."""
    found = list[set[int]]()
    for tokens in tokens_of(phrase):
        ranked = (index.keywords([token], rows, allowed, documents=True) for token in sorted(tokens))
        found.append(documents_of(store, [chunk for one in ranked for chunk, _ in one]))
    return (
        set.intersection(*found) if found else {facts.id for facts in store.facts()}
    )  # words that the index leaves out


def _place(store: Store, document: int, text: str, span: tuple[int, int], count: int) -> FoundPlace | None:
    """Return a span of a document as a place."""
    stored = chunk_at(store, document, span[0])
    return FoundPlace(_cut(stored, text, span), count) if stored else None


def _cut(stored: StoredChunk, text: str, span: tuple[int, int], score: float = 0.0) -> Passage:
    """Return a span of a document's text as a passage of the chunk that it lies in."""
    start, end = span
    line = stored.chunk.line
    if line is not None:
        line += text.count("\n", stored.chunk.start, start)
    whole = replace(found_passage(stored, score, ()), terms="", sentence="", table_header="")
    return replace(whole, text=text[start:end], start=start, end=end, line=line, end_line=line)


def _beginning(store: Store, document: NamedDocument) -> FoundPlace | None:
    text = store.document_beginning(document.id, _BEGINNING)
    return _place(store, document.id, text, line_span(text, 0, 0), 0)


def _best_of(stored: StoredChunk, score: float, subject: str) -> Passage:
    """Return the sentence of a chunk that fits a subject best, else its first line."""
    chunk = stored.chunk
    start, end = best_sentence(chunk.text, frozenset(keyword_tokens(subject)))
    start, end = line_span(chunk.text, start, end)
    passage = _cut(replace(stored, chunk=replace(chunk, start=0)), chunk.text, (start, end), score)
    return replace(passage, start=chunk.start + start, end=chunk.start + end)
