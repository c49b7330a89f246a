"""Quote units word for word: those that an answer stands on, or the best ones if there is no answer."""

import re
from collections.abc import Iterable, Sequence

from local_rag.answering.attribution import Attribution
from local_rag.answering.selection import Source
from local_rag.answering.units import Unit, split_units
from local_rag.records import Quote

MOST_LINES = 3  # of a quotation that stands instead of an answer
_WRAPPED = re.compile(r"(?<!\s)[^\S\n]*+\n\s*+(?!(?:\(?\d{1,3}[.)]|[-*+\u2022])\s)")
_STEP = re.compile(r"\(?\d{1,3}[.)]\s")
_IN_LIST = frozenset({"step", "item"})
_LONGEST = 600  # characters of a quoted unit or list


def quote_support(sentences: Iterable[Attribution], sources: Sequence[Source]) -> list[Quote]:
    """Quote the units that sentences stand on."""
    return _quotes((one for sentence in sentences for one in sentence.units), sources)


def quote_best(sentences: Iterable[Attribution], sources: Sequence[Source]) -> list[Quote]:
    """Quote what comes closest to an answer: what the doubtful `sentences` stand on, then the units that rank best."""
    stood_on = [one for sentence in sentences for one in sentence.units[:1]]
    ranked = [(number, unit) for number, source in enumerate(sources) for unit in source.units]
    return _quotes([*stood_on, *sorted(ranked, key=lambda one: one[1].rank)], sources)[:MOST_LINES]


def unwrapped(text: str) -> str:
    """Return quoted text with its wrapped lines joined; the items of a list and the lines of code stay apart."""
    return text if text.startswith(("```", "~~~")) else _WRAPPED.sub(" ", text)


def is_list(text: str) -> bool:
    """Return whether quoted text consists of several steps."""
    return "\n" in unwrapped(text) and bool(_STEP.match(text))


def _quotes(units: Iterable[tuple[int, Unit]], sources: Sequence[Source]) -> list[Quote]:
    """Quote units, each with the number of its source, once each; a step is quoted with all steps of its list."""
    found = dict[tuple[int, int, int], Quote]()
    for index, unit in units:
        passage = sources[index].passage
        start, end = _list_around(sources[index], unit) if unit.kind == "step" else (unit.start, unit.end)
        if end - start > _LONGEST:
            start, end = unit.start, min(unit.end, unit.start + _LONGEST)
        found.setdefault((index, start, end), Quote(passage.text[start:end], index + 1, start, end))
    return list(found.values())


def _list_around(source: Source, step: Unit) -> tuple[int, int]:
    """Return the span of the numbered list that contains a step."""
    units = split_units([source.passage])
    first = last = next(number for number, one in enumerate(units) if one.start == step.start)
    while first and units[first - 1].kind in _IN_LIST:
        first -= 1
    while last + 1 < len(units) and units[last + 1].kind in _IN_LIST:
        last += 1
    steps = [one for one in units[first : last + 1] if one.kind == "step"]
    return steps[0].start, steps[-1].end
