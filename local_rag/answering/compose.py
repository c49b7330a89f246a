"""Write what the user is told: an answer with citations, quotations of the documents, or that they say nothing."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from local_rag.answer_records import Answer, Citation, Outcome, Quote, SentenceSupport, Shown
from local_rag.answering.answer_checks import asks_of_all_rows, gives_number
from local_rag.answering.attribution import Attribution
from local_rag.answering.blocks import Kind
from local_rag.answering.selection import Source, run_of, shown_of
from local_rag.answering.translations import translated
from local_rag.answering.units import Unit, source_heading, split_units
from local_rag.passage_records import Passage
from local_rag.plan_records import Plan
from local_rag.retrieval.question import Question
from local_rag.text.list_labels import label_at
from local_rag.text.tokens import keyword_tokens
from local_rag.understanding.question_reader import read_plan

REFUSAL = "The documents do not answer this question."
NOT_SURE = "Not sure. This is what the documents say:"
NOT_SAID = "The documents do not say:"
# Why the answer of the model is not given although the documents say something.
UNSURE = "Quoted because no answer from these lines is sure enough."
LACKING = "Quoted because the answer of the model has a number or name that these lines lack."
STANDS_ON_NOTHING = "Quoted because these lines say too little of what the model answered."
NO_NUMBER = "Quoted because the model found no number or date that the question asks for."
DIFFERS = "Quoted because another document, perhaps a later one, says something else."
NO_VALUE = "Quoted because the row has no value for what the question asks for."
OTHER_ROW = "Quoted because another row fits the question better."
NO_TIME = "Quoted because there was no time for the model to read."
OTHER_TIME = "Quoted because none of this is dated in the time that the question asks for."
OF_ALL_ROWS = "Quoted because the question is about all rows, and the model has read some of them."
_CLOSEST = 3  # passages to name if there is no answer
MOST_LINES = 3  # of a quotation that stands instead of an answer
_WRAPPED = re.compile(r"(?<!\s)[^\S\n]*+\n\s*+")
_LONGEST = 600  # characters of a quoted unit
_LONGEST_LIST = 2000  # characters of the items of a quoted list
_SAID = 0.9  # the share of the words of a list that an answer has which needs no list below it


@dataclass(frozen=True, slots=True)
class Part:
    """What came of a question or a part of it; `asked` is empty for all of it.

    `rest` is the beginning of a sentence that is still being written. If it is `checked`, no sentence is given that
    stands on nothing or, if it is `strict`, has a number or name that what it stands on lacks. If it is `late`, there
    was no time for the model.
    """

    asked: str
    sentences: Sequence[Attribution]
    outcome: Outcome
    likely: float | None = None
    log_odds: float | None = None
    reader_log_odds: float | None = None
    strict: bool = True
    checked: bool = True
    rest: str = ""
    late: bool = False

    def gives(self, sentence: Attribution) -> bool:
        """Return whether a sentence is given, and not what it stands on quoted instead."""
        return not self.checked or (sentence.is_supported and not (self.strict and sentence.missing))

    def plan(self, question: Question) -> Plan:
        """Return what it asks for, as a part of a question or all of it."""
        return read_plan(self.asked) if self.asked else question.plan

    def fault(self, question: Question) -> str:
        """Return why no sentence may be given, however probable it is that they are right; empty if one may.

        A model that reads some rows of a table cannot tell which is the highest of all, nor add them up.
        """
        if not self.given:
            return LACKING if any(one.missing for one in self.sentences) else STANDS_ON_NOTHING
        if not self.checked:
            return ""
        asked, said = self.asked or question.text, [one.sentence for one in self.given]
        units = [unit for one in self.given for _, unit in one.units]
        from_rows = bool(units) and all(unit.kind == "row" for unit in units)
        if from_rows and asks_of_all_rows(asked, [unit.text for unit in units]):
            return OF_ALL_ROWS
        kind = self.plan(question).answer_type
        if kind in {"number", "date"} and not gives_number(said, asked):
            return NO_NUMBER
        return ""

    @property
    def given(self) -> list[Attribution]:
        """Return the sentences that are given."""
        return [one for one in self.sentences if self.gives(one)]

    @property
    def struck(self) -> list[Attribution]:
        """Return the sentences in whose place is quoted what they stand on, unless another sentence stands on it."""
        used = {unit for one in self.given for unit in one.units}
        return [one for one in self.sentences if one.is_supported and not self.gives(one) and one.units[0] not in used]


def compose(
    question: Question,
    sources: Sequence[Source],
    parts: Sequence[Part],
    *,
    threshold: float | None = None,
    tokens: int = 0,
) -> Answer:
    """Return the answer to a question with one or more parts: answered if any is, else quoted if any is."""
    outcomes = {part.outcome for part in parts}
    outcome: Outcome = "answered" if "answered" in outcomes else "quoted" if "quoted" in outcomes else "refused"
    said = [part for part in parts if part.outcome == outcome]
    quotes = list(dict.fromkeys(quote for part in parts for quote in _quotes(part, sources, question)))
    likely = [part.likely for part in said if part.likely is not None]
    odds = [part.log_odds for part in said if part.log_odds is not None]
    of_reader = [part.reader_log_odds for part in said if part.reader_log_odds is not None]
    numbers = sorted({one.citation for one in quotes})
    return Answer(
        question.asked,
        text_of(sources, parts, question=question),
        outcome,
        citations=tuple(Citation(number, sources[number - 1].passage) for number in numbers),
        quotes=tuple(quotes),
        shown=tuple(shown_of(sources)),
        read=tuple(source.passage for source in sources),
        closest=_closest(sources) if outcome == "refused" else (),
        support=tuple(_support(one) for part in said if outcome == "answered" for one in part.given),
        probability=min(likely, default=None),
        threshold=threshold,
        log_odds=min(odds, default=None),
        reader_log_odds=min(of_reader, default=None),
        tokens=tokens,
        reason=_reason(said[0], question) if outcome == "quoted" else "",
    )


def compose_overlooked(
    answer: Answer, lines: Sequence[tuple[Passage, Unit]], reason: str, question: Question
) -> Answer:
    """Return an answer as quotations of what it stands on and of lines that it overlooks, for a reason."""
    numbers = {one.chunk_id: number for number, one in reversed([*enumerate(answer.read, start=1)])}
    passages, shown, quotes = list(answer.read), list(answer.shown), list(answer.quotes[: MOST_LINES - 1])
    for passage, unit in lines[: MOST_LINES - len(quotes)]:
        if passage.chunk_id not in numbers:
            passages.append(passage)
            numbers[passage.chunk_id] = len(passages)
            shown.append(Shown(len(passages), f"{source_heading(passage)}\n{unit.text}"))
        start, end = unit.start, min(unit.end, unit.start + _LONGEST)
        quotes.append(Quote(passage.text[start:end], numbers[passage.chunk_id], start, end))
    said = (_quotation_line(one, split_units([passages[one.citation - 1]])) for one in quotes)
    return replace(
        answer,
        text="\n".join([translated(NOT_SURE, question.asked), *said]),
        outcome="quoted",
        quotes=tuple(quotes),
        citations=tuple(Citation(one, passages[one - 1]) for one in sorted({one.citation for one in quotes})),
        read=tuple(passages),
        shown=tuple(shown),
        support=(),
        reason=translated(reason, question.asked),
    )


def _closest(sources: Sequence[Source]) -> tuple[Passage, ...]:
    """Return the best passages; two sources may show parts of the same one."""
    passages = {source.passage.chunk_id: source.passage for source in reversed(sources)}
    return tuple(reversed(passages.values()))[:_CLOSEST]


def _reason(part: Part, question: Question) -> str:
    """Return why what the model answered is not given; what the documents lack is not repeated."""
    return translated(NO_TIME if part.late else (part.sentences and part.fault(question)) or UNSURE, question.asked)


def text_of(sources: Sequence[Source], parts: Sequence[Part], *, question: Question) -> str:
    """Return the text of an answer."""
    outcomes = {part.outcome for part in parts}
    if outcomes == {"refused"}:
        return translated(REFUSAL, question.asked)
    if "answered" not in outcomes:
        quotes = dict.fromkeys(quote for part in parts for quote in _quotes(part, sources, question))
        lines = (_quotation_line(quote, sources[quote.citation - 1].units) for quote in quotes)
        return "\n".join([translated(NOT_SURE, question.asked), *lines])
    sentences = [" ".join(_pieces(part)) for part in parts if part.outcome == "answered"]
    given = dict.fromkeys(
        one for part in parts if part.outcome == "answered" for one in _quotes(part, sources, question)
    )
    lists = (one for one in given if is_list(one.text) and not _says(" ".join(sentences), one.text))
    steps = [f"{in_lines(one.text)} [{one.citation}]" for one in lists]
    others = ["\n".join(_other_lines(part, sources, question)) for part in parts if part.outcome != "answered"]
    return "\n\n".join([" ".join(filter(None, sentences)), *steps, *others])


def _says(text: str, listed: str) -> bool:
    """Return whether a text has nearly all words of a list."""
    words = {word for word in keyword_tokens(listed) if not word.isdigit()}
    return len(words.intersection(keyword_tokens(text))) >= _SAID * len(words)


def _pieces(part: Part) -> Iterator[str]:
    """Yield the sentences of an answer with their citations, and for those that are struck what they stand on."""
    struck = part.struck
    for one in part.sentences:
        if part.gives(one):
            yield f"{one.sentence} {one.citations or ''}".rstrip()
        elif one in struck:
            number, unit = one.units[0]
            yield f"\u201c{in_lines(unit.text, unit.kind)}\u201d [{number + 1}]"
    if part.rest:
        yield part.rest


def _other_lines(part: Part, sources: Sequence[Source], question: Question) -> Iterator[str]:
    """Yield what is said of a part of a question that is not answered while another one is."""
    if part.outcome == "quoted":
        yield f"{part.asked} {translated(NOT_SURE, question.asked)}"
        found = _quotes(part, sources, question)
        yield from (_quotation_line(quote, sources[quote.citation - 1].units) for quote in found)
    else:
        yield f"{translated(NOT_SAID, question.asked)} {part.asked}"


def _quotation_line(quote: Quote, units: Sequence[Unit]) -> str:
    """Write a quotation of one of the units as an item of a list; a row of a table with the heads of its columns."""
    unit = next((one for one in units if one.start == quote.start), None)
    kind = unit.kind if unit else "sentence"
    text = unit.text[:_LONGEST] if unit and kind == "row" else in_lines(quote.text, kind)
    return f"- {text} [{quote.citation}]"


def _quotes(part: Part, sources: Sequence[Source], question: Question) -> list[Quote]:
    if part.outcome == "refused":
        return []
    lists = part.plan(question).answer_type == "how"
    if part.outcome == "quoted":
        return quote_best(part.sentences, sources, lists=lists)
    return quote_support([*part.given, *part.struck], sources, lists=lists)


def _support(one: Attribution) -> SentenceSupport:
    return SentenceSupport(one.sentence, one.is_supported and not one.missing, one.missing, tuple(one.citations))


def quote_support(sentences: Iterable[Attribution], sources: Sequence[Source], *, lists: bool = False) -> list[Quote]:
    """Quote the units that sentences stand on, each item as a part of its whole list if `lists` are asked for."""
    return _as_quotes((one for sentence in sentences for one in sentence.units), sources, lists)


def quote_best(sentences: Iterable[Attribution], sources: Sequence[Source], *, lists: bool = False) -> list[Quote]:
    """Quote what comes closest to an answer: what the doubtful `sentences` stand on, then the units that rank best."""
    stood_on = [one for sentence in sentences for one in sentence.units[:1]]
    ranked = [(number, unit) for number, source in enumerate(sources) for unit in source.units]
    return _as_quotes([*stood_on, *sorted(ranked, key=lambda one: one[1].rank)], sources, lists)[:MOST_LINES]


def in_lines(text: str, kind: Kind = "sentence") -> str:
    """Return quoted text with the lines joined that only wrap; the items of a list and the lines of code stay apart."""
    if kind == "code" or text.startswith(("```", "~~~")):
        return text
    return _WRAPPED.sub(lambda found: found[0] if label_at(text, found.end()) else " ", text)


def is_list(text: str) -> bool:
    """Return whether quoted text consists of several items or steps."""
    return "\n" in in_lines(text) and label_at(text) is not None


def _as_quotes(units: Iterable[tuple[int, Unit]], sources: Sequence[Source], lists: bool) -> list[Quote]:
    """Quote units, each with the number of its source, once each."""
    found = dict[tuple[int, int, int], Quote]()
    for index, unit in units:
        passage = sources[index].passage
        start, end = unit.start, min(unit.end, unit.start + _LONGEST)
        if lists and unit.kind in {"item", "step"}:
            start, end = _list_around(sources[index], unit)
        found.setdefault((index, start, end), Quote(passage.text[start:end], index + 1, start, end))
    return list(found.values())


def _list_around(source: Source, unit: Unit) -> tuple[int, int]:
    """Return the span of an item with the others of its list, as many as may be quoted: from the first one, or it."""
    units = split_units([source.passage])
    place = next(number for number, one in enumerate(units) if one.start == unit.start)
    items = [units[number] for number in run_of(units, place) if units[number].heading == unit.heading]
    for first in (items[0].start, unit.start):
        ends = [one.end for one in items if one.end - first <= _LONGEST_LIST]
        if ends and ends[-1] >= unit.end:
            return first, ends[-1]
    return unit.start, unit.start + _LONGEST
