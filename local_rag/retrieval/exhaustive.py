"""Answer a question that counts or lists over all documents, not over a sample of them.

Words are looked up in the keyword index, which names each document that may have them, and then counted in the text of
these documents. For a meaning, the vector of every passage is compared with that of the subject.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from operator import attrgetter

import numpy as np

from local_rag.answer_records import Found, FoundPlace
from local_rag.asking import Filters, first_day, last_day
from local_rag.index.protocol import Allowed, Index
from local_rag.passage_records import Passage, StoredChunk, found_passage
from local_rag.progress_records import Progress
from local_rag.retrieval.find_question import FindQuestion, Phrase
from local_rag.retrieval.occurrences import (
    best_line,
    foreign_forms,
    has_inflections,
    line_span,
    occurrences,
    patterns_in,
    tokens_of,
    without_struck_ones,
)
from local_rag.retrieval.question import Question
from local_rag.retrieval.searcher import Searcher
from local_rag.retrieval.version_families import Versions
from local_rag.store.database import NamedDocument, Store
from local_rag.text.dates import dates_in, find_dates
from local_rag.text.sentences import sentence_spans, unwrapped
from local_rag.text.struck import is_struck
from local_rag.text.tokens import keyword_tokens

OnProgress = Callable[[Progress], None]
_ROUND = 32  # passages that are read between two reports of progress
_NEAR = 0.2  # the least cosine of a passage that is read: no passage about a subject had less
_CLOSEST = 2  # sentences that count
_OF_BEST = 0.6  # the least share of the best passage's closeness: in documents of one field, all are close to a subject
_FORMS = 8  # inflected words that are named
# Before a time, these say that it is meant whole: "from 2023", "of March 2024".
_WITHIN = frozenset(
    {"from", "in", "of", "dated", "aus", "von", "vom", "im", "de", "du", "en", "del", "di", "uit", "van"}
)
_BEGINNING = 160  # characters of a document that are shown if it lacks what was looked for


@dataclass(frozen=True, slots=True)
class Scope:
    """The documents to examine, by path, of an index with so many `rows`, and what is to be said of the choice.

    `is_limited` says that a limit of the question left some out.
    """

    index: Index
    store: Store
    rows: int
    documents: list[NamedDocument]
    said: str = ""
    notes: tuple[str, ...] = ()
    is_limited: bool = False

    @property
    def ids(self) -> set[int]:
        """Return their ids."""
        return {one.id for one in self.documents}

    def allowed(self) -> Allowed:
        """Return their chunks, in the form that the index accepts."""
        return (self.index.passages() or self.store).chunks_of(self.ids)


def find_words(
    question: Question, asked: FindQuestion, scope: Scope, *, stop: Callable[[], bool] = lambda: False
) -> Found:
    """Find the documents that contain the phrases of a question; no model takes part.

    What a document shows as struck out it does not say any more: that is told, and does not count.
    `stop` is called before each document; once it returns true, what was found until then is the result.
    """
    store, allowed = scope.store, scope.allowed()
    holders = [_holders(phrase, scope, allowed) for phrase in asked.phrases]
    known = [one if one is not None else scope.ids for one in holders]
    chosen = (set.intersection if asked.every else set.union)(*known) | store.documents_with_cut_words()
    places, total, notes, forms = list[FoundPlace](), 0, scope.notes, dict[str, None]()
    struck = list[int]()  # occurrences in each document that has some
    for number, document in enumerate(scope.documents):
        if stop():
            notes = (*notes, f"Only the first {number:,} of {len(scope.documents):,} documents were read.")
            break
        text = store.document_text(document.id) if document.id in chosen else ""
        patterns = patterns_in(text, asked.phrases) if text else []
        shown = [occurrences(text, [pattern]) for pattern in patterns]
        of_each = [without_struck_ones(text, found) for found in shown]
        if lost := sum(map(len, shown)) - sum(map(len, of_each)):
            struck.append(lost)
        has = bool(of_each) and (all(of_each) if asked.every else any(of_each))
        if asked.negated:
            if not has and (place := _beginning(store, document)):
                places.append(place)
            continue
        if not has:
            continue
        found = without_struck_ones(text, occurrences(text, patterns)) if len(patterns) > 1 else of_each[0]
        total += len(found)
        forms |= dict.fromkeys(foreign_forms(text, found, asked.phrases))
        by_line = [[*line] for _, line in groupby(found, attrgetter("line"))]
        for group in [found] if asked.kind != "list" or asked.by_document else by_line:
            first = best_line(group)
            if place := _place(store, document.id, text, line_span(text, first.start, first.end), len(group)):
                places.append(place)
    counted: tuple[str, ...] = (f"Counted as inflected: {', '.join([*forms][:_FORMS])}.",) if forms else ()
    if struck:
        often = f"{sum(struck):,} struck-out occurrence{'s' * (sum(struck) > 1)}"
        counted += (f"Not counted: {often} in {len(struck):,} document{'s' * (len(struck) > 1)}.",)
    return Found(
        question.text,
        asked.kind,
        said_of_words(asked) + scope.said,
        total if not (asked.by_document or asked.negated) else len(places),
        tuple(places),
        complete=not notes,
        by_document=asked.by_document or asked.negated,
        notes=(*asked.notes, *notes, *counted),
    )


def find_names(question: Question, asked: FindQuestion, scope: Scope) -> Found | None:
    """Find the documents that are called what a question asks for, or pass its limits; None if it names none so."""
    named, said = scope.documents, "are in the library"
    if asked.sort:
        named, name = _of_sort(named, asked.sort, scope.store)
        said = f'have "{name}" in the name of their folder or file, their title or tags'
    if (not named and scope.documents) or not (asked.sort or scope.is_limited):
        return None
    places = tuple(place for one in named if (place := _beginning(scope.store, one)))
    notes = (*asked.notes, *scope.notes)
    return Found(question.text, asked.kind, said + scope.said, len(places), places, not scope.notes, notes=notes)


def find_meaning(
    question: Question,
    asked: FindQuestion,
    scope: Scope,
    searcher: Searcher,
    *,
    most: int = 0,
    progress: OnProgress = lambda _progress: None,
    stop: Callable[[], bool] = lambda: False,
) -> Found:
    """Find the documents with a passage about the subject of a question, by the vectors of the embedder.

    The vectors of all passages are compared with that of the subject. Those that are near are read sentence by
    sentence, or the `most` nearest of them. `stop` is called before each round; once it returns true, what was found
    until then is the result. The searcher must know from which closeness on a passage is about a subject.
    """
    bound = searcher.about_from
    assert bound is not None, "words are looked for where it is not known"
    vector, ranked = searcher.closeness(asked.subject, scope.rows, scope.allowed())
    near = [(chunk, cosine) for chunk, cosine in ranked if cosine >= _NEAR]
    waiting, found, done = near[:most] if most else near, list[_About](), 0
    while done < len(waiting) and not stop():
        progress(Progress("find", done, len(waiting)))
        part = waiting[done : done + _ROUND]
        stored = scope.store.chunks_by_id([chunk for chunk, _ in part])
        about = _about(searcher, vector, [(stored[chunk], cosine) for chunk, cosine in part if chunk in stored])
        found += [one for one in about if one.score >= bound]
        done += len(part)
    progress(Progress("find", done, len(waiting)))
    best = max((one.score for one in found), default=0.0)
    found = [one for one in found if one.score >= _OF_BEST * best]
    of_document: dict[int, list[_About]] = {}
    for one in sorted(found, key=lambda one: (-one.score, one.chunk.path, one.chunk.chunk.position)):
        of_document.setdefault(one.chunk.document_id, []).append(one)
    groups = of_document.values()
    if asked.negated:
        others = (_beginning(scope.store, one) for one in scope.documents if one.id not in of_document)
        places = tuple(filter(None, others))
    elif asked.by_document:
        places = tuple(FoundPlace(_sentence_of(group[0]), len(group)) for group in groups)
    else:
        places = tuple(FoundPlace(_sentence_of(one), 1) for group in groups for one in group)
    notes, complete = (*asked.notes, *scope.notes), not scope.notes and done == len(near)
    if done < len(near):
        notes = (*notes, f"Of {len(near):,} passages near the subject, only the {done:,} nearest were read.")
    said = f'are {"not " * asked.negated}about "{asked.subject}", by what their sentences mean'
    by_document = asked.by_document or asked.negated
    return Found(question.text, asked.kind, said + scope.said, len(places), places, complete, by_document, notes)


@dataclass(frozen=True, slots=True)
class _About:
    """How much a chunk is about a subject, and the span in its text of the sentence that is closest to it."""

    chunk: StoredChunk
    score: float
    span: tuple[int, int]


def _about(searcher: Searcher, vector: np.ndarray, near: Sequence[tuple[StoredChunk, float]]) -> list[_About]:
    """Compare the sentences of chunks, given with their own cosines, with the vector of a subject.

    A sentence that is struck out says nothing.
    """
    texts = [unwrapped(chunk.chunk.text) for chunk, _ in near]
    spans = [
        [(start, end) for start, end in [*sentence_spans(text)] or [(0, len(text))] if not is_struck(text[start:end])]
        for text in texts
    ]
    parts = [text[start:end] for text, of_text in zip(texts, spans, strict=True) for start, end in of_text]
    if not parts:
        return []
    cosines, done, about = searcher.embed(parts) @ vector, 0, list[_About]()
    for (chunk, cosine), of_text in zip(near, spans, strict=True):
        if not of_text:
            continue
        own = cosines[done : done + len(of_text)]
        done += len(of_text)
        best = np.argsort(-own, kind="stable")[:_CLOSEST]
        about.append(_About(chunk, cosine + float(own[best].mean()), of_text[int(best[0])]))
    return about


def said_of_words(asked: FindQuestion) -> str:
    """Say which documents count."""
    names = [f'"{one.text}"' for one in asked.phrases]
    listed = (" and " if asked.every else " or ").join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    words = "word" if len(names) == 1 and len(asked.phrases[0].text.split()) == 1 else "words"
    exact = not any(map(has_inflections, asked.phrases))
    how = " exactly as written" if exact else " or inflected forms of it" if words == "word" else ", also inflected"
    return f"{'do not contain' if asked.negated else 'contain'} the {words} {listed}{how}"


def scope_of(asked: FindQuestion, index: Index, store: Store, versions: Versions, filters: Filters) -> Scope:
    """Return the documents of the index that pass the filters and the limits of a question, and are of its sort.

    Where their names are asked for, they are documents of any sort. A limit that is plainly a time or a folder counts;
    that any other is passed over is said.
    """
    indexed = set(index.documents()[0].tolist())
    passing = versions.passing(filters)
    waiting = len((passing & set(store.live_ids())) - indexed)
    documents = store.named_documents(indexed & passing)
    notes = (f"{waiting:,} documents are not indexed yet; run `local-rag index`.",) if waiting else ()
    said, is_limited = "", False
    for limit in asked.limits:
        left, how = _within(limit, documents, store, versions)
        if left is None:
            notes = (*notes, f'"{limit}" was passed over: it names no folder and no time that documents have.')
        else:
            documents, said, is_limited = left, f"{said} and {how}", True
    if asked.sort and asked.rule != "names":
        of_sort, name = _of_sort(documents, asked.sort, store)
        if of_sort:
            documents, said = of_sort, f'{said}, of {len(of_sort):,} named "{name}"'
        else:
            said = f'{said}; no document is named "{asked.sort}", so all {len(documents):,} were examined'
    return Scope(index, store, max(1, len(index.chunk_ids())), documents, said, notes, is_limited)


def _within(
    limit: str, documents: Sequence[NamedDocument], store: Store, versions: Versions
) -> tuple[list[NamedDocument] | None, str]:
    """Return the documents within a limit, and how that is said; None if it is neither plainly a time nor a folder."""
    if period := _period(limit):
        passing = versions.passing(period)
        return [one for one in documents if one.id in passing], f"are dated {limit}"
    wanted = set(keyword_tokens(limit))
    below = [f"{root}/" for root in store.roots()]
    named = [(one, folder) for one in documents for folder in _folders(one, below) if folder and folder <= wanted]
    if not named:
        return None, ""
    most = max(len(folder) for _, folder in named)
    return [*{one.id: one for one, folder in named if len(folder) == most}.values()], f"lie in the folder of {limit}"


def _folders(document: NamedDocument, below: Sequence[str]) -> list[set[str]]:
    """Return the words of the name of each folder of a document, from the indexed one on."""
    root = next((root for root in below if document.path.startswith(root)), "")
    names = [root.rstrip("/").rpartition("/")[2], *document.path.removeprefix(root).split("/")[:-1]]
    return [set(keyword_tokens(name.replace("_", " "))) for name in names]


def _period(limit: str) -> Filters | None:
    """Return the time that a limit consists of, such as "from 2023"; None if it says more than that."""
    dates = [one for one in find_dates(limit) if one.year]
    days = [one.iso for one in dates] or [*dates_in(limit)]
    rest = limit
    for said in [limit[one.start : one.end] for one in dates] or days:
        rest = rest.replace(said, "", 1)
    if len(days) != 1 or not {word.lower() for word in re.findall(r"\w+", rest)} <= _WITHIN:
        return None
    try:
        return Filters(since=first_day(days[0]), before=last_day(days[0]) + timedelta(days=1))
    except (ValueError, OverflowError):  # no day of the calendar, such as 31 April
        return None


def _of_sort(documents: Sequence[NamedDocument], sort: str, store: Store) -> tuple[list[NamedDocument], str]:
    """Return the documents whose path, title or tags have all words of a sort, or else all words but the noun."""
    below = [f"{root}/" for root in store.roots()]
    names = {one.id: _words_of_names(one, below) for one in documents}
    words = sort.split()
    for some in (words, words[:-1]):
        wanted = _singular(" ".join(some))
        if wanted and (found := [one for one in documents if wanted <= names[one.id]]):
            return found, " ".join(some)
    return [], sort


def _words_of_names(document: NamedDocument, below: Sequence[str]) -> set[str]:
    root = next((root for root in below if document.path.startswith(root)), "")
    return _singular(" ".join([document.path.removeprefix(root), document.title, *document.tags]).replace("_", " "))


def _singular(text: str) -> set[str]:
    """Return the stems of a text; no stemmer knows the plural of an abbreviation such as "NDAs"."""
    return {token.rstrip("s") or token for token in keyword_tokens(text.lower())}


def _holders(phrase: Phrase, scope: Scope, allowed: Allowed) -> set[int] | None:
    """Return the documents that have each word of a phrase in one of the rows of the index; None if any may."""
    found = list[set[int]]()
    for tokens in tokens_of(phrase):
        ranked = (scope.index.keywords([token], scope.rows, allowed, documents=True) for token in sorted(tokens))
        found.append(scope.store.documents_of([chunk for one in ranked for chunk, _ in one]))
    return set.intersection(*found) if found else None  # words that the index leaves out


def _place(store: Store, document: int, text: str, span: tuple[int, int], count: int) -> FoundPlace | None:
    stored = store.chunk_at(document, span[0])
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


def _sentence_of(about: _About) -> Passage:
    chunk = about.chunk.chunk
    start, end = about.span
    passage = _cut(replace(about.chunk, chunk=replace(chunk, start=0)), chunk.text, (start, end), about.score)
    return replace(passage, start=chunk.start + start, end=chunk.start + end)
