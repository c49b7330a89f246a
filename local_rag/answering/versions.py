"""Say what each version of a document says where they disagree: code looks up the line that the answer quotes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from local_rag.index.keyword_index import keyword_tokens
from local_rag.records import Answer, Citation, Filters, VersionValue
from local_rag.retrieval.marking import unwrapped
from local_rag.retrieval.versions import Version, Versions
from local_rag.verification.facts import find_facts
from local_rag.verification.sentences import split_sentences
from local_rag.verification.sources import Source, normalize

_SAME = 0.5  # the share of words that the same sentence of two versions has in common
_MOST = 5  # versions that an answer names
_DIFFER = "The versions of this document differ, newest first:"


@dataclass(frozen=True, slots=True)
class _Line:
    """A sentence or line of a version, with its span in the text."""

    version: Version
    text: str
    start: int
    end: int


def name_versions(answer: Answer, versions: Versions, filters: Filters) -> Answer:
    """Add what the versions of a quoted document say, newest first, if their values differ; cite each of them.

    A statement that stands on an older version is replaced by this list.
    """
    for quote in answer.quotes:
        cited = next(one.passage for one in answer.citations if one.number == quote.citation)
        family = versions.within(cited.path, filters)
        own = next((one for one in family if one.path == cited.path), None)
        if own is None or len(family) < 2:  # noqa: PLR2004
            continue
        said = " ".join(quote.text.split())
        lines = [(one, _line_like(said, one, versions)) for one in family if one != own][: _MOST - 1]
        others = {one.id: line for one, line in lines if line and _differ(said, line.text)}
        if others:
            named = [one for one in family if one == own or one.id in others]
            return _named(answer, quote.citation, said, own, named, others, versions)
    return answer


def _line_like(said: str, version: Version, versions: Versions) -> _Line | None:
    """Return the sentence of a version that has the most words in common with a quotation; None if they are few."""
    wanted, best, most = _words(said), None, _SAME
    text, start = unwrapped(versions.text(version)), 0
    for part in split_sentences(text):
        shared = _shared(wanted, _words(part))
        if shared > most or (best is None and shared == most):
            kept = part.strip()
            begun = start + part.index(kept)
            best, most = _Line(version, kept, begun, begun + len(kept)), shared
        start += len(part)
    return best


def _words(text: str) -> set[str]:
    """Return the words of a text, without numbers: these are what may differ."""
    return {token for token in keyword_tokens(text) if not token[:1].isdigit()}


def _shared(one: set[str], other: set[str]) -> float:
    return 2 * len(one & other) / max(1, len(one) + len(other))


def _differ(one: str, other: str) -> bool:
    """Return whether a number, date or name of one sentence does not occur in the other."""
    return any(_lacking(*pair) for pair in ((one, other), (other, one)))


def _lacking(one: str, other: str) -> bool:
    source = Source(other)
    return any(not fact.occurs_in(source) for fact in find_facts(normalize(one)))


def _named(
    answer: Answer,
    number: int,
    said: str,
    own: Version,
    family: Sequence[Version],
    others: dict[int, _Line],
    versions: Versions,
) -> Answer:
    last = max((len(answer.read), *(one.number for one in answer.citations)))
    values, citations = list[VersionValue](), list(answer.citations)
    for one in family:
        text = said if one == own else " ".join(others[one.id].text.split())
        cites = number
        if one != own:
            cites = next(_numbers_of(citations, others[one.id]), 0)
            if not cites and (passage := versions.passage_at(one, others[one.id].start)):
                last += 1
                cites = last
                citations.append(Citation(cites, passage))
        if cites:
            values.append(VersionValue(one.date, one.path, text, cites))
    named = (f"- {one.date} ({Path(one.path).name}): \u201c{one.text}\u201d [{one.citation}]" for one in values)
    listed = "\n".join([_DIFFER, *named])
    # A statement from an older version would contradict the newest.
    stands = not answer.answered or values[0].citation == number
    text = f"{answer.text}\n\n{listed}" if stands else listed
    return replace(answer, text=text, citations=tuple(citations), versions=tuple(values))


def _numbers_of(citations: Sequence[Citation], line: _Line) -> Iterator[int]:
    """Yield the numbers of the citations that contain a line."""
    for one in citations:
        passage = one.passage
        if passage.path == line.version.path and passage.start <= line.start and line.end <= passage.end:
            yield one.number
