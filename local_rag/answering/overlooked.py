"""Find what an answer overlooks: another value in a document that may be later, and more rows like those it is from."""

from collections.abc import Sequence

from local_rag.answering.selection import Ranked
from local_rag.answering.units import Unit
from local_rag.plan_records import AnswerType
from local_rag.reading.formats import kind_of_source
from local_rag.records import Answer, Passage
from local_rag.text.dates import Date, find_dates
from local_rag.text.facts import Source, normalize
from local_rag.text.quantities import Quantity, find_numbers
from local_rag.text.tokens import keyword_tokens

_LIKELY = -1.0  # the reader's logit from which a line, and its passage, may answer the question
_BEST = 5  # lines that are compared
_NAMING = 2  # cells of a row, of which one says what it is about
_LONGEST = 2000  # characters that are read
_Value = Date | Quantity


def other_value(
    ranked: Ranked, kind: AnswerType, question: str, said: str, own: Sequence[Passage]
) -> tuple[Passage, Unit] | None:
    """Return the best line that says otherwise than an answer which stands on its `own` passages, if there is one.

    It is of another document whose date is known and not before theirs. It has values of the kind that is asked for, in
    the same unit, and none of those that the answer gives.
    """
    values = _values(kind, said, Source(question[:_LONGEST]))
    paths, since = {one.path for one in own}, max(map(_day_of, own), default="")
    for unit in sorted(ranked.units, key=lambda one: one.rank)[:_BEST] if values else ():
        passage = ranked.passages[unit.passage]
        logits = unit.logit, ranked.answers.get(unit.passage)
        is_likely = all(one is not None and one >= _LIKELY for one in logits)
        if not is_likely or passage.path in paths or not (day := _day_of(passage)) or day < since:
            continue
        there = Source(unit.text[:_LONGEST])
        others = {_unit_of(one) for one in _values(kind, unit.text)}
        if others.intersection(map(_unit_of, values)) and not any(_stands(one, there) for one in values):
            return passage, unit
    return None


def other_rows(ranked: Ranked, question: str, answer: Answer) -> list[tuple[Passage, Unit]]:
    """Return the rows that say of themselves what the question asks for, as those do that an answer stands on.

    These rows have cells all whose words the question has. Others of their document have all of these cells too; those
    that the answer names by one of their first cells are left out.
    """
    spans = [(answer.read[one.citation - 1].chunk_id, one.start, one.end) for one in answer.quotes]
    rows = [(ranked.passages[unit.passage], unit) for unit in ranked.units if unit.kind == "row"]
    own = [(passage, unit) for passage, unit in rows if (passage.chunk_id, unit.start, unit.end) in spans]
    said = set(keyword_tokens(" ".join(one.sentence for one in answer.support)))
    asked, found = set(keyword_tokens(question[:_LONGEST])), dict[tuple[int, int], tuple[Passage, Unit]]()
    for row_of, row in own:
        known = _cells(row.text)
        wanted = {cell for cell in known if _words(cell) and _words(cell) <= asked}
        like = ((passage, unit) for passage, unit in rows if passage.path == row_of.path and (passage, unit) not in own)
        for passage, unit in like if wanted else ():
            cells = _cells(unit.text)
            named = any(_words(cell) and _words(cell) <= said for cell in cells[:_NAMING] if cell not in known)
            if wanted.issubset(cells) and not named:
                found.setdefault((passage.chunk_id, unit.start), (passage, unit))
    return list(found.values())


def _cells(row: str) -> list[tuple[str, str]]:
    """Return the cells of a row that is written as `Name: Ada; Born: 1815`, with their columns."""
    return [(name, cell.strip()) for name, mark, cell in (part.partition(": ") for part in row.split("; ")) if mark]


def _words(cell: tuple[str, str]) -> set[str]:
    return set(keyword_tokens(cell[1]))


def _day_of(passage: Passage) -> str:
    """Return the date of a document, empty if it is not known; that of a sheet is often the day of an export."""
    return "" if kind_of_source(passage.path) == "sheet" else passage.provenance.date


def _values(kind: AnswerType, text: str, asked: Source | None = None) -> list[_Value]:
    """Return the values of a kind that a text says, and not the question."""
    plain = normalize(text[:_LONGEST])
    if kind == "date":
        return [one for one in find_dates(plain) if not (asked and asked.has_date(one))]
    if kind == "number":
        return [one for one in find_numbers(plain) if one.counts and not (asked and asked.has_number(one))]
    return []


def _unit_of(value: _Value) -> str | None:
    return value.unit if isinstance(value, Quantity) else "date"


def _stands(value: _Value, there: Source) -> bool:
    return there.has_date(value) if isinstance(value, Date) else there.has_number(value)
