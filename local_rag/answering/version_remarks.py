"""Say below an answer what other versions of the document say instead: code compares the lines that it quotes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from local_rag.answer_records import Answer, Citation, Quote, VersionValue
from local_rag.answering.row_texts import cells_in, naming_cell
from local_rag.answering.units import Unit, split_units
from local_rag.asking import Filters
from local_rag.display import version_lines
from local_rag.passage_records import Passage
from local_rag.retrieval.version_families import Version, Versions, corresponding, shared, words_of
from local_rag.text.facts import Fact, Source, find_facts, normalize

_SAME = 0.5  # the share of words that the same sentence of two versions has in common
_MOST = 3  # versions that an answer names
_EXAMINED = 8  # versions that are compared with the one quoted
_PASSAGES = 3  # passages of a version in which the line may stand
_COMPARED = 2000  # characters of a line that are compared
_LONGEST, _BEFORE = 160, 60  # characters of a line that are shown, and of them before what differs


@dataclass(frozen=True, slots=True)
class _Line:
    """What a version says, and whether it is newer than the one that the answer quotes."""

    version: Version
    newer: bool
    unit: Unit
    passage: Passage


def name_versions(answer: Answer, versions: Versions, filters: Filters) -> Answer:
    """Add below an answer what other versions of a quoted document say, newest first, if it is not the same.

    Of an answer that only quotes, the first quotation counts.
    """
    cited = {one.number: one.passage for one in answer.citations}
    for quote in answer.quotes if answer.answered else answer.quotes[:1]:
        passage = cited[quote.citation]
        family = versions.within(passage.path, filters)[:_EXAMINED]
        own = next((one for one in family if one.path == passage.path), None)
        for unit in _units_of(quote, passage) if own else ():
            lines = _other_lines(unit, passage, family, versions, answer)
            if differing := [one for one in lines if _differs(unit, one, answer, quote)][:_MOST]:
                return _added(answer, unit, differing, versions)
    return answer


def _units_of(quote: Quote, passage: Passage) -> Iterator[Unit]:
    """Yield the units of a passage that a quotation holds; code has no statement that could be compared."""
    for unit in split_units([passage]):
        if unit.start < quote.end and quote.start < unit.end and unit.kind != "code":
            yield unit


def _other_lines(
    unit: Unit, passage: Passage, family: Sequence[Version], versions: Versions, answer: Answer
) -> Iterator[_Line]:
    """Yield the lines of the versions that the answer does not quote itself, newest first, which say the same thing."""
    own = next(one for one in family if one.path == passage.path)
    quoted = {one.passage.path for one in answer.citations}
    words, newer = words_of(unit.text), True
    asked = words_of(answer.question) & words

    def likeness(other: Unit) -> float:
        return shared(words, words_of(other.text))

    for version in family:
        newer = newer and version != own
        if version.path in quoted:
            continue
        near = corresponding(passage, unit.text, own, version, versions)[:_PASSAGES]
        alike = (one for one in split_units(near) if _is_like(unit, one) and asked <= words_of(one.text))
        line = max(alike, key=likeness, default=None)
        if line and likeness(line) >= _SAME:
            yield _Line(version, newer, line, near[line.passage])


def _is_like(unit: Unit, other: Unit) -> bool:
    """Return whether two units can say the same thing: rows only of what their first cells name."""
    if "row" in {unit.kind, other.kind}:
        return unit.kind == other.kind and _named_by(unit) == _named_by(other)
    return other.kind != "code"


def _named_by(row: Unit) -> str:
    return naming_cell(cells_in(row.text))[1].casefold()


def _differs(unit: Unit, line: _Line, answer: Answer, quote: Quote) -> bool:
    """Return whether a line lacks a fact that the answer takes from a unit.

    If it takes none, each must have the numbers, dates and names of the other.
    """
    own, other = _source(unit), _source(line.unit)
    asked = Source(answer.question)
    stated = [
        fact
        for sentence in answer.support
        if quote.citation in sentence.citations
        for fact in _facts(sentence.sentence)
        if fact.occurs_in(own) and not fact.occurs_in(asked)
    ]
    if stated and answer.answered:
        return any(not fact.occurs_in(other) for fact in stated)
    return bool([*_lacking(unit.text, other), *_lacking(line.unit.text, own)])


def _source(unit: Unit) -> Source:
    return Source(unit.text[:_COMPARED])


def _facts(text: str) -> list[Fact]:
    return find_facts(normalize(text[:_COMPARED]))


def _lacking(text: str, source: Source) -> list[Fact]:
    return [fact for fact in _facts(text) if not fact.occurs_in(source)]


def _added(answer: Answer, unit: Unit, lines: Sequence[_Line], versions: Versions) -> Answer:
    values, citations = list[VersionValue](), list(answer.citations)
    last = max((len(answer.read), *(one.number for one in citations)))
    for number, line in enumerate(lines, start=last + 1):
        version, passage = line.version, versions.marked(line.passage)
        citations.append(Citation(number, passage))
        values.append(VersionValue(version.date, version.path, _excerpt(line.unit, unit), number, line.newer))
    text = "\n".join([f"{answer.text}\n", *version_lines(values)])
    return replace(answer, text=text, citations=tuple(citations), versions=tuple(values))


def _excerpt(unit: Unit, own: Unit) -> str:
    """Cut a unit around the first fact that another one lacks; of a row, show the cells that are not the same."""
    text = " ".join((_cells_beside(unit, own) if unit.kind == "row" else unit.text).split())
    if len(text) <= _LONGEST:
        return text
    differs = next((fact.start for fact in _lacking(text, _source(own))), 0)
    begin = max(0, min(differs - _BEFORE, len(text) - _LONGEST))
    shown = text[begin : begin + _LONGEST - 2]
    shown = f"\u2026{shown.partition(' ')[2] or shown}" if begin else shown
    return f"{shown.rpartition(' ')[0] or shown}\u2026" if begin + _LONGEST < len(text) else shown


def _cells_beside(row: Unit, other: Unit) -> str:
    """Return the cell that names a row, and those that another row does not have."""
    cells, same = cells_in(row.text), set(cells_in(other.text))
    name, _ = naming_cell(cells)
    return "; ".join(cell for number, cell in enumerate(cells) if number == name or cell not in same)
