"""Sum up documents in quotations: the sentences that carry them, dates, amounts, roles, obligations, open questions.

A sentence carries a document if its words recur there. Lines are chosen one after the other, each for the recurring
words that no line before has, so that ten lines say ten things (maximum coverage; Gillick and Favre, 2009).
"""

import heapq
import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from local_rag.digests.statements import DocumentText, Place, Statement, ordinary_words, readable, without_stop
from local_rag.errors import QuestionError
from local_rag.text.dates import find_dates
from local_rag.text.facts import normalize
from local_rag.text.languages import FUNCTION_WORDS, language_of
from local_rag.text.quantities import CURRENCIES, find_numbers
from local_rag.text.tokens import keyword_tokens

ListKind = Literal["timeline", "amounts", "roles", "obligations", "questions"]
LISTS: dict[ListKind, str] = {
    "timeline": "Dates",
    "amounts": "Amounts",
    "roles": "Names and roles",
    "obligations": "Obligations and deadlines",
    "questions": "Open questions",
}
DEFAULT_LINES, MOST_LINES = 10, 500
MOST_DOCUMENTS, MOST_CHARACTERS = 200, 2_000_000  # of a brief
_FEWEST_WORDS, _MOST_WORDS = 5, 60  # of a line that carries a document
_LISTED_WORDS = 3  # at least, of a line of a list
_WHOLE = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"'\u201d\u2019)*_\]]{0,4}\Z")  # a sentence
_LANGUAGE_CHARACTERS = 20_000  # of a document that tell its language

_ROLE = (
    r"(?:director|manager|head|officer|lead|leader|contact|chair(?:man|woman|person)?|president|secretary|treasurer|"
    r"coordinator|supervisor|owner|editor|author|engineer|administrator|representative|deputy|advisor|adviser|auditor|"
    r"lawyer|counsel|judge|professor|minister|commissioner|inspector|captain|chief|ceo|cfo|cto|partner|tenant|landlord|"
    r"supplier|customer|buyer|seller|employer|client|consultant|architect|speaker|host|responsible)"
)
_NAME = r"[^\W\d_a-z][^\W\d_]*+(?<=[a-z])(?:[ -][^\W\d_a-z][\w'.\u2019]*+){1,3}+"
_NAME_AND_ROLE = re.compile(
    rf"(?<![\w.])(?P<name>{_NAME})(?=(?:,| (?:is|was|as|signs|acts|serves|becomes)|:| ?\(| ?\|)"
    rf"[^.;\n]{{0,50}}?\b(?i:{_ROLE})s?\b)"
    rf"|\b(?i:{_ROLE})s?\b(?: (?:is|was)| ?[:,|(])? (?P<named>{_NAME})"
)
_OBLIGATION = re.compile(
    r"\b(?:must|shall|(?:is|are|be) (?:required|obliged|obligated|prohibited|forbidden|due)|ha(?:s|ve) to|"
    r"needs? to|may not|not (?:allowed|permitted)|deadline|no later than|at the latest|not later than|"
    r"mandatory|compulsory|within \S+ (?:hours?|days?|weeks?|months?))\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:tbd|tbc|to-?do|open (?:question|point|issue)s?|to be (?:decided|determined|confirmed|clarified|agreed|"
    r"defined)|not (?:yet )?(?:been )?(?:decided|clear|known|agreed)|undecided|unresolved|unclear|remains open|"
    r"still (?:open|missing))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a brief: a quotation with its place, and the date, amount or name for which it is listed."""

    place: Place
    value: str = ""


@dataclass(frozen=True, slots=True)
class Brief:
    """What documents say, in quotations: the `lines` that carry them in the order of the documents, and the lists."""

    documents: tuple[str, ...]
    titles: tuple[str, ...]
    lines: tuple[Line, ...]
    lists: dict[ListKind, tuple[Line, ...]]
    left_out: int = 0  # documents beyond the limits


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A statement that may become a line, by its number in the document, with the stems of its words."""

    number: int
    statement: Statement
    text: str
    stems: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Listed:
    """A line of a list, how much it says of what its document is about, and what orders it."""

    line: Line
    gain: float
    order: tuple[int, ...]


# What a finder says of a statement: the value for which it is listed, and what orders it; None if it is not listed.
_Found = tuple[str, tuple[int, ...]] | None


def require_lines(lines: int) -> None:
    """Raise QuestionError unless a brief may have so many lines."""
    if not 1 <= lines <= MOST_LINES:
        raise QuestionError(f"A brief has 1 to {MOST_LINES} lines, not {lines}.")


def write_brief(documents: Sequence[DocumentText], lines: int = DEFAULT_LINES) -> Brief:
    """Choose the lines of a brief by code; no model takes part. Of each document there is at least one line.

    Each of the lists has at most as many lines.
    """
    sizes = accumulate(len(one.text) for one in documents)
    taken = [
        one for one, size in zip(documents[:MOST_DOCUMENTS], sizes, strict=False) if size <= MOST_CHARACTERS
    ] or documents[:1]
    chosen, listed = list[Line](), dict[ListKind, list[_Listed]]()
    for document, share in zip(taken, _shares(taken, lines), strict=True):
        candidates = [*_candidates(document)]
        weights = _weights(candidates)
        for one in _carrying(candidates, weights, share):
            chosen.append(Line(document.place(one.statement.start, one.statement.end)))
        _find_lists(document, candidates, weights, listed)
    lists = {kind: _best(listed.get(kind, []), lines, by_value=kind == "timeline") for kind in LISTS}
    titles = tuple(one.title for one in taken)
    return Brief(tuple(one.path for one in taken), titles, tuple(chosen), lists, len(documents) - len(taken))


def _shares(documents: Sequence[DocumentText], lines: int) -> list[int]:
    """Return how many lines each document gets: at least one, the others by the length of its text."""
    whole, left = sum(len(one.text) for one in documents) or 1, max(0, lines - len(documents))
    exact = [left * len(one.text) / whole for one in documents]
    shares = [1 + int(one) for one in exact]
    most = sorted(range(len(exact)), key=lambda number: int(exact[number]) - exact[number])
    for number in most[: left - sum(map(int, exact))]:
        shares[number] += 1
    return shares


def _find_lists(
    document: DocumentText,
    candidates: Sequence[_Candidate],
    weights: Mapping[str, float],
    listed: dict[ListKind, list[_Listed]],
) -> None:
    """Add the statements of a document to the lists that they belong to."""
    ordinary = ordinary_words(document.text)
    different = {one.statement.words: one for one in reversed(candidates) if len(one.text.split()) >= _LISTED_WORDS}
    years = {date.start: date.year for date in find_dates(normalize(document.text)) if date.year}
    year = years[min(years)] if years else 0
    for number, one in enumerate(candidates):
        if different.get(one.statement.words) is not one:
            continue
        following = candidates[number + 1] if number + 1 < len(candidates) else None
        kinds: dict[ListKind, _Found] = {
            "timeline": _dated(one, year),
            "amounts": _amount(one),
            "roles": _role(one, ordinary),
            "obligations": _obligation(one),
            "questions": _open_question(one, following),
        }
        for kind, found in kinds.items():
            if found is not None:
                value, order = found
                place = document.place(one.statement.start, one.statement.end)
                listed.setdefault(kind, []).append(_Listed(Line(place, value), _gain(one, weights, ()), order))


def _best(listed: Sequence[_Listed], most: int, *, by_value: bool) -> tuple[Line, ...]:
    """Return the lines of a list that say most of what their documents are about, by their order or as they stand."""
    best = {id(one) for one in heapq.nlargest(most, listed, key=lambda one: one.gain)}
    kept = [one for one in listed if id(one) in best]
    return tuple(one.line for one in (sorted(kept, key=lambda one: one.order) if by_value else kept))


def _candidates(document: DocumentText) -> Iterator[_Candidate]:
    language = language_of(document.text[:_LANGUAGE_CHARACTERS])
    empty = FUNCTION_WORDS.get(language, frozenset())
    for number, one in enumerate(document.statements):
        if one.kind in {"sentence", "item", "step", "clause", "row"}:
            text = readable(one.text)
            stems = frozenset(stem for stem in keyword_tokens(text, language) if len(stem) > 1 and stem not in empty)
            yield _Candidate(number, one, text, stems)


def _carrying(candidates: Sequence[_Candidate], weights: Mapping[str, float], most: int) -> list[_Candidate]:
    """Choose the candidates that carry a document: whole sentences, then other lines if there are too few of them."""
    different = [*{one.statement.words: one for one in reversed(candidates)}.values()][::-1]
    lines = [one for one in different if _FEWEST_WORDS <= len(one.text.split()) <= _MOST_WORDS]
    whole = [one for one in lines if _WHOLE.search(one.text)]
    others = [one for one in lines if not _WHOLE.search(one.text)] if lines else different
    chosen = _cover(whole, weights, most)
    return sorted([*chosen, *_cover(others, weights, most - len(chosen))], key=lambda one: one.number)


def _weights(candidates: Sequence[_Candidate]) -> dict[str, float]:
    """Return what each stem counts: the more, the more statements have it; nothing if only one has it."""
    counts = Counter(stem for one in candidates for stem in one.stems)
    return {stem: math.log(count) for stem, count in counts.items()}


def _gain(one: _Candidate, weights: Mapping[str, float], covered: Collection[str]) -> float:
    return sum(weights[stem] for stem in one.stems.difference(covered))


def _cover(candidates: Sequence[_Candidate], weights: Mapping[str, float], most: int) -> list[_Candidate]:
    """Choose candidates that together have the words that count most, in their order.

    What a candidate adds only falls while others are chosen, so one whose value is still the highest when it is
    computed again is the best (lazy greedy).
    """
    chosen, covered = list[int](), set[str]()
    waiting = [(-_gain(one, weights, ()), number) for number, one in enumerate(candidates)]
    heapq.heapify(waiting)
    while waiting and len(chosen) < most:
        _, number = heapq.heappop(waiting)
        now = -_gain(candidates[number], weights, covered)
        if waiting and (now, number) > waiting[0]:
            heapq.heappush(waiting, (now, number))
            continue
        chosen.append(number)
        covered |= candidates[number].stems
    return [candidates[number] for number in sorted(chosen)]


def _dated(one: _Candidate, year: int) -> _Found:
    """Return the first date; one without a year is ordered as of the `year` that its document names first."""
    first = min(find_dates(normalize(one.text)), key=lambda date: date.start, default=None)
    return (without_stop(first.text), (first.year or year, first.month, first.day or 0)) if first else None


def _amount(one: _Candidate) -> _Found:
    found = next((number for number in find_numbers(normalize(one.text)) if number.unit in CURRENCIES), None)
    return (found.text, ()) if found else None


def _role(one: _Candidate, ordinary: Collection[str]) -> _Found:
    for found in _NAME_AND_ROLE.finditer(one.text):
        name = found["name"] or found["named"]
        words = [word.casefold() for word in re.findall(r"\w+", name)]
        if words[0] not in ordinary and words[-1] not in ordinary:
            return without_stop(name), ()
    return None


def _obligation(one: _Candidate) -> _Found:
    found = _OBLIGATION.search(one.text)
    return (found[0], ()) if found else None


def _open_question(one: _Candidate, following: _Candidate | None) -> _Found:
    """Return whether a statement is an open question; one that the next sentence answers is none."""
    if found := _OPEN.search(one.text):
        return found[0], ()
    if not one.text.rstrip("\"'\u201d*_ ").endswith("?"):
        return None
    if following is None or following.statement.section != one.statement.section:
        return "", ()
    return ("", ()) if following.statement.kind != "sentence" or following.text.endswith("?") else None
