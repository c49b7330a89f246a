"""Check what a model says against the document: find the place that says it, and read it as a value of the type."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from local_rag.answering.units import Unit
from local_rag.extraction.cells import Cell
from local_rag.extraction.columns import Column
from local_rag.extraction.values import (
    TYPED,
    Value,
    chosen_among,
    denies,
    find_phrase,
    find_values,
    items_of,
    longest_run,
    read_yes_no,
    whole_name,
    writes_decimal_commas,
)
from local_rag.passage_records import Passage
from local_rag.text.languages import language_of
from local_rag.text.tokens import keyword_tokens

_SHARE = 0.6  # of the words of an answer that a quotation must say one after the other
_ALIKE = 0.6  # the share of their other words that two sentences about one value have in common
_SHORT = 2  # words of an answer that says yes or no and nothing else
_FIRST = 8  # units that may be what an answer of yes or no stands on
_ABOUT = -3.5  # the reader's logit of a sentence from which on it may answer
_ANSWERS = 0.0  # the reader's logit of a sentence that probably answers
_WITHIN = 1.0  # the reader's logits of two sentences that answer about equally well differ by less
_DERIVED = 6  # letters of a stem from which on another that begins with it is the same word in another form
_RARE = 3  # units that have a word by which one of them is about the question
_MOST_NOTED = 3  # other values that are named
_LONGEST = 600  # characters of a quotation


@dataclass(frozen=True, slots=True)
class Found:
    """A value with the unit that says it; `fits` if it is of the column's type, else `note` says what is wrong."""

    unit: Unit
    value: Value | None
    fits: bool = True
    note: str = ""


class DocumentReading:
    """The units of a document's passages, ranked for the question of one column, with the values of its type.

    Units that the reader or the words of the question put first come first.
    """

    def __init__(self, column: Column, passages: Sequence[Passage], units: Sequence[Unit], text: str) -> None:
        self.column, self.passages = column, passages
        self.units = sorted(units, key=lambda unit: unit.rank)
        self._commas = writes_decimal_commas(text)
        self.is_foreign = language_of(text) != language_of(column.question)
        self._asked = set(keyword_tokens(column.question))
        self._values = dict[int, list[Value]]()

    def values_in(self, unit: Unit) -> list[Value]:
        """Return the values of the column's type in a unit."""
        if self.column.type not in TYPED:
            return []
        if unit.rank not in self._values:
            self._values[unit.rank] = find_values(self.column.type, unit.text, decimal_comma=self._commas)
        return self._values[unit.rank]

    def is_about(self, unit: Unit) -> bool:
        """Return whether a unit is about the question: by a word that few units have, or by what the reader says.

        Across languages, and without a reader, this cannot be told: then it is. What yes or no stands on is marked as
        unsure instead, because it may be said in other words.
        """
        if self.column.type == "yes/no":
            return True
        return self.may_answer(unit) or self._has_rare_word(unit)

    def may_answer(self, unit: Unit) -> bool:
        """Return whether the reader finds that a unit may answer, or cannot tell."""
        return self.is_foreign or unit.logit is None or unit.logit >= _ABOUT

    def _has_rare_word(self, unit: Unit) -> bool:
        """Return whether a unit or a heading above it has a word of the question that few units have."""
        above = self.passages[unit.passage].headings[-1:]
        said = self._asked_in(" ".join([unit.text, unit.heading, *above]))
        return any(self._counts[word] <= _RARE for word in said)

    def _asked_in(self, text: str) -> set[str]:
        """Return the words of the question that a text has, also in a longer or shorter form: contractor, contract."""
        said = set(keyword_tokens(text))
        long = [word for word in said if len(word) >= _DERIVED]
        return {
            word
            for word in self._asked
            if word in said
            or (len(word) >= _DERIVED and any(word.startswith(one) or one.startswith(word) for one in long))
        }

    def answers(self, unit: Unit) -> bool:
        """Return whether the reader is quite sure that a unit answers the question."""
        return not self.is_foreign and unit.logit is not None and unit.logit >= _ANSWERS

    @cached_property
    def _counts(self) -> Counter[str]:
        return Counter(word for unit in self.units for word in self._asked_in(unit.text))

    def find(self, answer: str) -> Found | None:
        """Return where the document says an answer; None if it does not."""
        answer = " ".join(answer.split())
        kind = self.column.type
        if kind in TYPED:
            return self._find_typed(answer)
        if kind == "yes/no":
            return self._find_yes_no(answer)
        if kind == "one of":
            return self._find_choice(answer)
        if kind == "list":
            return self._find_items(answer)
        return self._find_text(answer)

    def _find_typed(self, answer: str) -> Found | None:
        said = find_values(self.column.type, answer, decimal_comma=self._commas)
        for value in said:
            for unit in self.units:
                for own in self.values_in(unit):
                    if own.readings & value.readings:
                        note = "it can be read in two ways" if own.open else ""
                        return Found(unit, own, fits=not own.open, note=note)
        saying = self._saying(answer)
        if saying is None:
            return None
        unit = saying[0]
        near = self.values_in(unit)
        if len(near) == 1 and not said:  # the answer leaves out the unit or the currency, which the document says
            return Found(unit, near[0], fits=not near[0].open)
        return Found(unit, None, fits=False, note=f"this is no {_NAMES[self.column.type]}")

    def _find_text(self, answer: str) -> Found | None:
        found = self._saying(answer)
        if found is None:
            return None
        unit, (start, end) = found
        text = unit.text[start:end]
        if self.column.type == "name" and text == text.lower():
            return Found(unit, _text_value(text, start, end), fits=False, note="this does not look like a name")
        return Found(unit, _text_value(text, start, end))

    def _saying(self, answer: str) -> tuple[Unit, tuple[int, int]] | None:
        """Return the first unit that says an answer, or else most of it in one sequence of words, and where."""
        for unit in self.units:
            if span := find_phrase(unit.text, answer):
                return unit, whole_name(unit.text, *span) if answer.endswith(".") else span
        best: tuple[Unit, tuple[int, int]] | None = None
        for unit in self.units:
            span = longest_run(unit.text, answer)
            if span and (best is None or span[1] - span[0] > best[1][1] - best[1][0]):
                best = unit, span
        if best is None:
            return None
        unit, (start, end) = best
        wanted = set(keyword_tokens(answer)) - self._asked
        said = set(keyword_tokens(unit.text[start:end]))
        return best if wanted and len(wanted & said) >= _SHARE * len(wanted) else None

    def _find_yes_no(self, answer: str) -> Found | None:
        """Return the unit that an answer of yes or no stands on: the first one, or that which a longer answer says."""
        unit = self._about(answer)
        if unit is None:
            return None
        said = read_yes_no(answer)
        if said is None:
            said = not denies(answer)
        text = "yes" if said else "no"
        value = Value(said, text, frozenset([text]), 0, len(unit.text))
        if said == denies(unit.text):
            doubt = "the quotation has a word that denies" if said else "the quotation does not deny it"
            return Found(unit, value, fits=False, note=doubt)
        if not self._has_rare_word(unit) and not self.answers(unit):
            return Found(unit, value, fits=False, note="the quotation may be about something else")
        return Found(unit, value)

    def _about(self, answer: str) -> Unit | None:
        words = answer.split()
        found = self._saying(answer) if len(words) > _SHORT else None
        if found:
            return found[0]
        # Of the first units the one with most words of the question: the order of the others is close to chance.
        near = self.units[:_FIRST]
        return max(near, key=lambda unit: len(self._asked_in(unit.text)), default=None)

    def _find_choice(self, answer: str) -> Found | None:
        choice = chosen_among(self.column, answer)
        if choice is None:
            found = self._saying(answer)
            return found and Found(found[0], None, fits=False, note="this is none of the values to choose from")
        for unit in self.units:
            if chosen_among(self.column, unit.text) == choice and (span := find_phrase(unit.text, choice)):
                return Found(unit, Value(choice, choice, frozenset([choice]), *span))
        if not self.units:
            return None
        best = next((one for one in self.units if find_phrase(one.text, choice)), self.units[0])
        value = Value(choice, choice, frozenset([choice]), 0, len(best.text))
        if set(keyword_tokens(choice)) <= set(keyword_tokens(best.text)):
            return Found(best, value)
        return Found(best, value, fits=False, note="the quotation does not say this in these words")

    def _find_items(self, answer: str) -> Found | None:
        """Return the unit that says most items of an answer, with those that it says."""
        items, best = items_of(answer), None
        for unit in self.units:
            said = [span for item in items if (span := find_phrase(unit.text, item))]
            if said and (best is None or len(said) > len(best[1])):
                best = unit, said
        if best is None:
            return None
        unit, spans = best
        texts = tuple(unit.text[start:end] for start, end in sorted(spans))
        value = Value(texts, "; ".join(texts), frozenset(texts), min(spans)[0], max(end for _, end in spans))
        if len(spans) < len(items):
            return Found(unit, value, fits=False, note="not all that the model named stands in this quotation")
        return Found(unit, value)

    def others(self, found: Found) -> list[tuple[Unit, Value]]:
        """Return other values that units say about the same thing as the one that was found.

        They say nearly the same words, or the reader finds that they answer the question nearly as well.
        """
        if found.value is None:
            return []
        own, other = _words(found.unit, found.value), list[tuple[Unit, Value]]()
        shared = len(self._asked & own)
        for unit in self.units:
            for value in self.values_in(unit):
                if value.readings & found.value.readings or value.open:
                    continue
                words = _words(unit, value)
                alike = len(own & words) >= _ALIKE * max(1, len(own | words))
                near = (
                    unit.logit is not None
                    and found.unit.logit is not None
                    and unit.logit >= found.unit.logit - _WITHIN
                    and shared > 0
                    and len(self._asked & words) >= shared
                )
                if (alike or near) and unit is not found.unit:
                    other.append((unit, value))
        return other

    def cell(self, found: Found, probability: float | None, *, sure: bool = True, note: str = "") -> Cell:
        """Return the cell of what was found, with its quotation and place."""
        passage, unit = self.passages[found.unit.passage], found.unit
        raw = passage.text[unit.start : unit.end]
        # A row is quoted as it stands, unless only the head of its table says what it is about.
        is_named_by_head = unit.kind == "row" and found.value and not self._says(raw, unit, found.value)
        quotation = unit.text if is_named_by_head else raw
        notes = [one for one in (found.note, note) if one]
        text = found.value.text if found.value else quotation[:_LONGEST]
        return Cell(
            "stated" if found.fits and sure and not note else "unsure",
            found.value.normal if found.value else None,
            text,
            quotation[:_LONGEST] if found.value is None or found.value.end <= _LONGEST else quotation,
            passage.start + unit.start,
            passage.start + unit.end,
            passage.page,
            None if passage.line is None else passage.line + passage.text.count("\n", 0, unit.start),
            probability,
            "; ".join(notes),
            heading=_heading_above(unit, passage),
            page_label=passage.page_label,
        )

    def _says(self, text: str, unit: Unit, value: Value) -> bool:
        """Return whether a text says a value as a unit does."""
        if self.column.type in TYPED:
            own = find_values(self.column.type, text, decimal_comma=self._commas)
            return any(one.readings & value.readings for one in own)
        return find_phrase(text, unit.text[value.start : value.end]) is not None


def _heading_above(unit: Unit, passage: Passage) -> str:
    """Return the nearest heading above a unit."""
    return (unit.heading or (passage.headings[-1] if passage.headings else ""))[:_LONGEST]


_NAMES = {
    "number": "number",
    "amount": "amount with a currency",
    "percentage": "percentage",
    "date": "date",
    "duration": "duration",
}


def noted(others: Sequence[tuple[Unit, Value]]) -> str:
    """Return a remark on other values that the document says."""
    texts = list(dict.fromkeys(value.text for _, value in others))[:_MOST_NOTED]
    return f"the document also says {' and '.join(texts)}" if texts else ""


def _text_value(text: str, start: int, end: int) -> Value:
    shown = " ".join(text.replace("|", " ").split())
    return Value(shown, shown, frozenset([shown]), start, end)


def _words(unit: Unit, value: Value) -> set[str]:
    return set(keyword_tokens(f"{unit.text[: value.start]} {unit.text[value.end :]}"))
