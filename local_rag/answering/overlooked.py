"""Find what an answer overlooks: another value in a later document, an empty cell, other rows, and another time."""

from collections.abc import Iterator, Sequence

from local_rag.answer_records import Answer
from local_rag.answering.compose import DIFFERS, NO_VALUE, OF_ALL_ROWS, OTHER_ROW, OTHER_TIME
from local_rag.answering.selection import Ranked
from local_rag.answering.units import Unit, own_day
from local_rag.passage_records import Passage
from local_rag.plan_records import AnswerType
from local_rag.retrieval.question import Question
from local_rag.text.cell_values import is_missing
from local_rag.text.dates import Date, dates_in, find_dates
from local_rag.text.facts import Source, normalize
from local_rag.text.quantities import Quantity, find_numbers
from local_rag.text.relative_times import AskedTime
from local_rag.text.tokens import keyword_tokens

_LIKELY = -1.0  # the reader's logit from which a line, and its passage, may answer the question
_BEST = 5  # lines that are compared
_NAMING = 2  # cells of a row, of which one says what it is about
_LONGEST = 2000  # characters that are read
_Value = Date | Quantity
Line = tuple[Passage, Unit]


def overlooked(ranked: Ranked, question: Question, answer: Answer) -> tuple[str, Sequence[Line]] | None:
    """Return why an answer overlooks something, and the lines that it overlooks; None if nothing shows that it does."""
    rows = RowsAnswered(ranked, question.text, answer)
    if rows.without_value():
        return NO_VALUE, ()
    if lines := rows.fitting_better():
        return OTHER_ROW, lines
    if lines := rows.left_out():
        return OF_ALL_ROWS, lines
    if is_of_another_time(question, answer):
        return OTHER_TIME, ()
    said = " ".join(one.sentence for one in answer.support if one.supported)
    own = [one.passage for one in answer.citations]
    other = other_value(ranked, question.plan.answer_type, question.text, said, own)
    return (DIFFERS, [other]) if other else None


def other_value(ranked: Ranked, kind: AnswerType, question: str, said: str, own: Sequence[Passage]) -> Line | None:
    """Return the best line that says otherwise than an answer which stands on its `own` passages, if there is one.

    It is of another document whose date is known and not before theirs. It has values of the kind that is asked for, in
    the same unit, and none of those that the answer gives.
    """
    values = _values(kind, said, Source(question[:_LONGEST]))
    paths, since = {one.path for one in own}, max(map(own_day, own), default="")
    for unit in sorted(ranked.units, key=lambda one: one.rank)[:_BEST] if values else ():
        passage = ranked.passages[unit.passage]
        logits = unit.logit, ranked.answers.get(unit.passage)
        is_likely = all(one is not None and one >= _LIKELY for one in logits)
        if not is_likely or passage.path in paths or not (day := own_day(passage)) or day < since:
            continue
        there = Source(unit.text[:_LONGEST])
        others = {_unit_of(one) for one in _values(kind, unit.text)}
        if others.intersection(map(_unit_of, values)) and not any(_stands(one, there) for one in values):
            return passage, unit
    return None


def is_of_another_time(question: Question, answer: Answer) -> bool:
    """Return whether nothing that an answer stands on is of a time before or after today that the question asks for.

    What holds today may have been written at any time.
    """
    own = [(answer.read[one.citation - 1], one.text) for one in answer.quotes]
    return bool(own) and any(
        not any(time.is_said(text) or is_dated(passage, text, time) for passage, text in own)
        for time in question.times
        if not time.is_now
    )


def is_dated(passage: Passage, text: str, time: AskedTime) -> bool:
    """Return whether a text of a passage, its headings or its document has a date in a time."""
    headings = "\n".join([passage.title, *passage.headings, passage.table_header[:_LONGEST]])
    days = [own_day(passage), *dates_in(passage.path.rpartition("/")[2])]
    return time.is_named(f"{headings}\n{text[:_LONGEST]}") or any(map(time.is_of, days))


class RowsAnswered:
    """The rows that an answer stands on, and the other rows of their documents that were found."""

    def __init__(self, ranked: Ranked, question: str, answer: Answer) -> None:
        spans = [(answer.read[one.citation - 1].chunk_id, one.start, one.end) for one in answer.quotes]
        rows = [(ranked.passages[unit.passage], unit) for unit in ranked.units if unit.kind == "row"]
        self._own = [row for row in rows if (row[0].chunk_id, row[1].start, row[1].end) in spans]
        self._others = [row for row in rows if row not in self._own]
        self._asked = set(keyword_tokens(question[:_LONGEST]))
        self._said = set(keyword_tokens(" ".join(one.sentence for one in answer.support)))

    def without_value(self) -> list[Line]:
        """Return the rows whose cell is empty in a column that the question names by all its words."""
        return [
            row
            for row in self._own
            if any(is_missing(cell) and self._asks_for(name) for name, cell in _cells(row[1].text))
        ]

    def fitting_better(self) -> list[Line]:
        """Return other rows that the question names, by all words of a first cell, better than those of the answer."""
        return [
            other
            for row in self._own
            for other, cells in self._like(row)
            if any(
                self._asks_for(cell) and len(_words(cell)) > len(_words(mine) & self._asked)
                for (_, cell), (_, mine) in zip(cells[:_NAMING], _cells(row[1].text), strict=False)
            )
        ]

    def left_out(self) -> list[Line]:
        """Return other rows with all cells that the question asks for, which the answer names by no first cell."""
        found = list[Line]()
        for row in self._own:
            known = _cells(row[1].text)
            wanted = {cell for cell in known if self._asks_for(cell[1])}
            for other, cells in self._like(row) if wanted else ():
                names = (_words(cell[1]) for cell in cells[:_NAMING] if cell not in known)
                if wanted.issubset(cells) and not any(name and name <= self._said for name in names):
                    found.append(other)
        return found

    def _like(self, row: Line) -> Iterator[tuple[Line, list[tuple[str, str]]]]:
        """Yield the other rows of the same columns and document with their cells."""
        columns = [name for name, _ in _cells(row[1].text)]
        for other in self._others:
            cells = _cells(other[1].text)
            if other[0].path == row[0].path and [name for name, _ in cells] == columns:
                yield other, cells

    def _asks_for(self, text: str) -> bool:
        return bool(words := _words(text)) and words <= self._asked


def _cells(row: str) -> list[tuple[str, str]]:
    """Return the cells of a row that is written as `Name: Ada; Born: 1815`, with their columns."""
    return [(name, cell.strip()) for name, mark, cell in (part.partition(": ") for part in row.split("; ")) if mark]


def _words(text: str) -> set[str]:
    return set(keyword_tokens(text))


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
