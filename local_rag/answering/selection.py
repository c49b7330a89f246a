"""Choose what a model is shown of the passages found: the units that fit the question best, up to a number of tokens.

The reader and the words that a unit shares with the question fail on different units, so the ranks of both are fused.
The number of tokens is fixed: the same question is answered from the same text on every machine.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from local_rag.answering.units import Unit, headings_of, split_units
from local_rag.index.keyword_index import keyword_tokens
from local_rag.models.reader import Reader
from local_rag.models.reranker import reranked_text
from local_rag.records import Passage, Shown

SHOWN_TOKENS = 300  # a model of 1.5 billion parameters answers no more questions right from 600
_PASSAGES = 8
_RANK_K = 10
_MARGIN = 2.0  # a unit whose logit is this far below the best, with odds 7 times smaller, only distracts the model
_LEFT_OUT = "\n\u2026\n"
_SAME = 0.9  # the share of word triples that two copies of a text have in common
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Source:
    """What a model is shown of a passage: some of its units, in reading order, and their text.

    `answers` is the reader's logit that the passage answers the question, None without a reader.
    """

    passage: Passage
    units: tuple[Unit, ...]
    text: str
    answers: float | None = None


def select_sources(
    question: str,
    lists: Sequence[Sequence[Passage]],
    *,
    count_tokens: Callable[[str], int],
    reader: Reader | None,
    tokens: int = SHOWN_TOKENS,
) -> list[Source]:
    """Return the sources for a question, best first, from the passages found for it and for each of its parts.

    The best units of the first passages are shown, each with its neighbours in the same text, until `tokens` are used.
    """
    passages = drop_copies(take_turns(lists))[:_PASSAGES]
    units, answers = _ranked(question, passages, reader)
    chosen = dict[int, None]()  # indexes of units
    room = tokens
    least = max((unit.logit or 0.0 for unit in units), default=0.0) - _MARGIN
    for index in sorted(range(len(units)), key=lambda index: units[index].rank):
        if (units[index].logit or 0.0) < least:
            continue
        number = units[index].passage
        new = [one for one in _with_neighbours(units, index) if one not in chosen]
        cost = sum(count_tokens(units[one].text) for one in new)
        if all(units[one].passage != number for one in chosen):
            cost += count_tokens(headings_of(passages[number]))
        if cost > room and chosen:
            break
        room -= cost
        chosen |= dict.fromkeys(new)
    sources = list[Source]()
    for number in dict.fromkeys(units[one].passage for one in chosen):
        shown = [one for one in sorted(chosen) if units[one].passage == number]
        text = _text(passages[number], units, shown)
        sources.append(Source(passages[number], tuple(units[one] for one in shown), text, answers.get(number)))
    return sources


def whole_sources(question: str, lists: Sequence[Sequence[Passage]], *, reader: Reader | None = None) -> list[Source]:
    """Return all passages as sources with their whole text."""
    passages = drop_copies(take_turns(lists))
    units, answers = _ranked(question, passages, reader)
    return [
        Source(
            passage,
            tuple(unit for unit in units if unit.passage == number),
            passage.text,
            answers=answers.get(number),
        )
        for number, passage in enumerate(passages)
    ]


def shown_of(sources: Sequence[Source]) -> list[Shown]:
    """Return what the model is shown of each source, with the number of the source; the first has 1."""
    return [
        Shown(number, f"{headings_of(source.passage)}\n{source.text}") for number, source in enumerate(sources, start=1)
    ]


def _ranked(
    question: str, passages: Sequence[Passage], reader: Reader | None
) -> tuple[list[Unit], Mapping[int, float]]:
    """Return the units of passages in reading order, each with its rank for a question, and what `_read` returns."""
    units = split_units(passages)
    headings = [headings_of(passage) for passage in passages]
    texts = [f"{headings[one.passage]} {one.heading}\n{one.text}" for one in units]
    overlaps = _overlaps(question, texts, [one.text for one in units])
    logits, answers = _read(question, passages, units, reader) if reader and units else ([], {})
    fused = [0.0] * len(units)
    for row in (overlaps, logits or [-one.passage for one in units]):
        for rank, index in enumerate(sorted(range(len(units)), key=lambda index: -row[index]), start=1):
            fused[index] += 1 / (_RANK_K + rank)
    for rank, index in enumerate(sorted(range(len(units)), key=lambda index: -fused[index])):
        units[index] = replace(units[index], rank=rank, logit=logits[index] if logits else None)
    return units, answers


def _read(
    question: str, passages: Sequence[Passage], units: Sequence[Unit], reader: Reader
) -> tuple[list[float], Mapping[int, float]]:
    """Return the reader's logit of each unit as a part of its passage, and for each passage that it answers.

    What was cut off is read from there on.
    """
    heads = [reranked_text(passage).removesuffix(passage.text) for passage in passages]
    logits, answers = dict[int, float](), dict[int, float]()
    begins = dict.fromkeys(range(len(passages)), 0)  # the passages to read, and from where
    while begins:
        texts = [heads[number] + passages[number].text[begin:] for number, begin in begins.items()]
        readings = dict(zip(begins, reader.score(question, texts), strict=True))
        for number, reading in readings.items():
            answers[number] = max(reading.answers, answers.get(number, reading.answers))
        cut = dict[int, int]()
        for index, unit in enumerate(units):
            if index not in logits and unit.passage in begins and unit.passage not in cut:
                begin = begins[unit.passage]
                moved = len(heads[unit.passage]) - begin
                logit = readings[unit.passage].sentence(unit.start + moved, unit.end + moved)
                if logit is not None:
                    logits[index] = logit
                elif unit.start > begin:
                    cut[unit.passage] = unit.start
        begins = cut
    least = min(logits.values(), default=0.0)  # for units that nothing could be read of
    return [logits.get(index, least) for index in range(len(units))], answers


def _overlaps(question: str, texts: Sequence[str], own: Sequence[str]) -> list[float]:
    """Return the words that each text shares with the question, weighted by how few of the units have them."""
    asked = set(keyword_tokens(question))
    counts = Counter(word for text in own for word in set(keyword_tokens(text)))
    weights = {word: math.log(1 + len(own) / (1 + counts[word])) for word in asked}
    return [sum(weights[word] for word in asked & set(keyword_tokens(text))) for text in texts]


def _with_neighbours(units: Sequence[Unit], index: int) -> list[int]:
    """Return a unit with those before and after it; a row needs none, because its neighbours are about other things."""
    near = [index] if units[index].kind == "row" else [index - 1, index, index + 1]
    return [one for one in near if 0 <= one < len(units) and units[one].passage == units[index].passage]


def _text(passage: Passage, units: Sequence[Unit], shown: Sequence[int]) -> str:
    """Write the units with the indexes `shown`, which are those of one passage in reading order."""
    text, heading, last = "", "", -1
    for index in shown:
        unit = units[index]
        if text:
            text += _between(passage.text, units[last], unit) if index == last + 1 else _LEFT_OUT
        if unit.heading != heading:
            heading = unit.heading
            text += f"{heading}:\n" if heading else ""
        text += unit.text
        last = index
    return text


def _between(text: str, before: Unit, unit: Unit) -> str:
    """Return what to write between two units that follow each other."""
    same = before.kind == unit.kind == "sentence" and before.paragraph == unit.paragraph
    return text[before.end : unit.start] if same else "\n"


def take_turns(lists: Sequence[Sequence[Passage]]) -> list[Passage]:
    """Take the best passage of each list, then the second best, and so on; each passage only once."""
    taken: dict[int, Passage] = {}
    for turn in itertools.zip_longest(*lists):
        for passage in filter(None, turn):
            taken.setdefault(passage.chunk_id, passage)
    return list(taken.values())


def drop_copies(passages: Sequence[Passage]) -> list[Passage]:
    """Keep the first of several passages with nearly the same words, and add the locations of the others to it."""
    kept: list[tuple[frozenset[tuple[str, ...]], Passage]] = []
    for passage in passages:
        triples = _word_triples(passage.text)
        for index, (others, first) in enumerate(kept):
            if len(triples & others) >= _SAME * len(triples | others):
                if passage.path != first.path and passage.location not in first.also_in:
                    kept[index] = others, replace(first, also_in=(*first.also_in, passage.location))
                break
        else:
            kept.append((triples, passage))
    return [passage for _, passage in kept]


def _word_triples(text: str) -> frozenset[tuple[str, ...]]:
    """Return all sequences of three words."""
    words = _WORD.findall(text.lower())
    return frozenset(zip(words, words[1:], words[2:], strict=False)) or frozenset([tuple(words)])
