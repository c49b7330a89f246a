"""Choose what a model is shown of the passages found: the units that fit the question best, up to a number of tokens.

The reader and the words that a unit shares with the question fail on different units, so the ranks of both are fused.
The number of tokens is fixed: the same question is answered from the same text on every machine.
"""

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath

from local_rag.answer_records import Shown
from local_rag.answering.blocks import Kind
from local_rag.answering.units import Unit, headings_of, source_heading, split_units
from local_rag.models.reader import Reader, reranked_text
from local_rag.passage_records import Passage
from local_rag.retrieval.document_names import DocumentNames
from local_rag.text.dates import find_dates
from local_rag.text.struck import struck_spans
from local_rag.text.tokens import keyword_tokens

SHOWN_TOKENS = 300  # a model that was not trained to refuse answers no more questions right from 600
# What a model that was trained to refuse is shown first, and then where it says that this does not answer.
FIRST_TOKENS, MORE_TOKENS = 120, (600,)
MOST_ROWS = 20  # of a table that is shown whole
_PASSAGES = 8
_RANK_K = 10
_WHOLE = 0.5  # the share of the tokens that a whole document may take
_LONGEST = 900  # tokens of the list or table with the best unit that is shown whole
_LIST: frozenset[Kind] = frozenset({"item", "step", "clause", "row", "code"})
_ALONE: frozenset[Kind] = frozenset({"row", "clause"})  # their neighbours are about other things
_LONG_STEP = 80  # characters from which on a numbered item says all of what it is about
_MOST_LEADS = 3  # of the items around an item
# "see clause 4.", "as in 2.3", "under § 5": the label of a clause
_POINTERS = (
    re.compile(r"\b\d{1,3}(?:\.\d{1,3}){1,4}|\b\d{1,3}(?=[,.;:)]|\s*\Z)|\u00a7 ?\d{1,4}[a-z]?"),
    re.compile(r"\b[^\W\d_]{3,12}\.? \d{1,3}(?:\.\d{1,3}){0,4}"),
)
_MOST_POINTED = 3  # clauses that are shown because others name them
_LEFT_OUT = "\n\u2026\n"
_STRUCK = " (text between ~~ is struck out and no longer holds)"
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

    @property
    def heading(self) -> str:
        """Return what the model reads above the text: what the passage is, and what the signs of struck text mean."""
        return source_heading(self.passage) + (_STRUCK if struck_spans(self.text) else "")


@dataclass(frozen=True, slots=True)
class Ranked:
    """The passages `found` for a question, and of the first ones the units in reading order, with their ranks.

    `answers` are the reader's logits that a passage answers, by its index.
    """

    found: Sequence[Passage]
    passages: Sequence[Passage]
    units: Sequence[Unit]
    answers: Mapping[int, float]


def rank_passages(question: str, lists: Sequence[Sequence[Passage]], reader: Reader | None) -> Ranked:
    """Rank what is in the first passages found for a question and each of its parts, without copies."""
    found = drop_copies(take_turns(lists))
    passages = found[:_PASSAGES] + [one for one in found[_PASSAGES:] if one.path == found[0].path]
    return Ranked(found, passages, *ranked_units(question, passages, reader))


def select_sources(
    question: str,
    lists: Sequence[Sequence[Passage]],
    *,
    count_tokens: Callable[[str], int],
    reader: Reader | None,
    tokens: int = SHOWN_TOKENS,
    read: Sequence[Source] = (),
) -> list[Source]:
    """Return the sources for a question, best first, from the passages found for it and for each of its parts.

    Those that were `read` before come last, unchanged, and what they show is not shown again: a prompt puts the best
    source last, so the longer prompt begins with the shorter one, whose reading is kept.

    The best units of the first passages are shown, each with what belongs to it in the same text, until `tokens` are
    used. The best unit of the first passage is among them, unless the best of all leaves no room. Showing it always
    gave no more right answers: a sure model stopped reading before it had seen the right line. If a question names a
    day, and a row of that day is there, rows of other days are not shown.
    """
    ranked = rank_passages(question, lists, reader)
    passages, units, answers = ranked.passages, ranked.units, ranked.answers
    chosen = dict[int, None]()  # indexes of units
    others = _of_other_days(question, units)
    room = tokens

    def cost(new: Sequence[int]) -> int:
        shown = {units[one].passage for one in chosen}
        headings = {units[one].passage for one in new} - shown
        texts = [units[one].text for one in new] + [headings_of(passages[number]) for number in headings]
        return sum(map(count_tokens, texts))

    for index in _in_order(units):
        if index in others:
            continue
        whole = _whole_group(units, index)
        groups = [[*whole, *_pointed_at(units, passages, index)], whole, _with_neighbours(units, index)]
        new = [[one for one in group if one not in chosen and one not in others] for group in groups]
        most = room if chosen else max(room, _LONGEST)
        fitting = next(
            (group for group, limit in zip(new, (room, most, most), strict=True) if cost(group) <= limit), new[-1]
        )
        if (needed := cost(fitting)) > room and chosen:
            break
        # A long list or table that is shown whole leaves some room for other passages.
        room = room - needed if chosen or needed <= room else tokens // 3
        chosen |= dict.fromkeys(fitting)
        if len(chosen) == len(fitting):  # the first: its document is shown whole if that takes no more than half
            path = passages[units[index].passage].path
            whole = [one for one, unit in enumerate(units) if passages[unit.passage].path == path]
            whole = [one for one in whole if one not in chosen and one not in others]
            if (needed := cost(whole)) <= min(room, tokens * _WHOLE):
                room -= needed
                chosen |= dict.fromkeys(whole)
    names = DocumentNames(question, ranked.found)
    known = {(one.passage.chunk_id, unit.start) for one in read for unit in one.units}
    shown = [at for at in chosen if (passages[units[at].passage].chunk_id, units[at].start) not in known]
    sources = _sources(passages, units, shown, answers)
    # A party may be named in a sentence of the passage that is not shown.
    return [*(replace(one, passage=names.name(one.passage, one.text)) for one in sources), *read]


def _of_other_days(question: str, units: Sequence[Unit]) -> set[int]:
    """Return the indexes of the rows of other days than the one that a question names, if there is a row of that day.

    A row with several days is of those between them, too.
    """
    asked = _days(question)
    if len(asked) != 1:
        return set()
    dated = {index: days for index, unit in enumerate(units) if unit.kind == "row" and (days := _days(unit.text))}
    of_day = {index for index, days in dated.items() if min(days) <= asked[0] <= max(days)}
    return dated.keys() - of_day if of_day else set()


def _days(text: str) -> list[str]:
    return [date.iso for date in find_dates(text) if date.year and date.day]


def sources_around(passages: Sequence[Passage], wanted: Collection[Unit]) -> list[Source]:
    """Return some units of passages as sources, each with its neighbours."""
    units = split_units(passages)
    spans = {(one.passage, one.start) for one in wanted}
    around = [_with_neighbours(units, index) for index, one in enumerate(units) if (one.passage, one.start) in spans]
    return _sources(passages, units, dict.fromkeys(itertools.chain(*around)), {})


def _sources(
    passages: Sequence[Passage], units: Sequence[Unit], chosen: Collection[int], answers: Mapping[int, float]
) -> list[Source]:
    """Return the sources of the units with the indexes `chosen`, in the order of their first ones."""
    sources = list[Source]()
    for number in dict.fromkeys(units[one].passage for one in chosen):
        shown = [one for one in sorted(chosen) if units[one].passage == number]
        text = _text(passages[number], units, shown)
        sources.append(Source(passages[number], tuple(units[one] for one in shown), text, answers.get(number)))
    return sources


def whole_sources(question: str, lists: Sequence[Sequence[Passage]], *, reader: Reader | None = None) -> list[Source]:
    """Return all passages as sources with their whole text."""
    passages = drop_copies(take_turns(lists))
    units, answers = ranked_units(question, passages, reader)
    return [
        Source(passage, tuple(unit for unit in units if unit.passage == number), passage.text, answers.get(number))
        for number, passage in enumerate(passages)
    ]


def shown_of(sources: Sequence[Source]) -> list[Shown]:
    """Return what the model is shown of each source, with the number of the source; the first has 1."""
    return [Shown(number, f"{source.heading}\n{source.text}") for number, source in enumerate(sources, start=1)]


def ranked_units(
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


def _in_order(units: Sequence[Unit]) -> list[int]:
    """Return the indexes of units, best first; the best of the first passage is one of the first two."""
    order = sorted(range(len(units)), key=lambda index: units[index].rank)
    own = next((index for index in order if units[index].passage == 0), None)
    if own is None or own == order[0]:
        return order
    order.remove(own)
    return [order[0], own, *order[1:]]


def _whole_group(units: Sequence[Unit], index: int) -> list[int]:
    """Return a unit with its neighbours, what introduces it, and what it introduces: a list, a table or code.

    A row comes with the line above its table, and with the whole table if that is small; an item with the line above
    its list and the items that it is in.
    """
    unit, leads = units[index], _leads(units, index)
    if unit.kind == "row":
        run = run_of(units, index)
        return sorted({*leads, *(run if len(run) <= MOST_ROWS else [index])})
    group = {*_with_neighbours(units, index), *leads}
    group |= set(_introduced(units, index)[:MOST_ROWS])
    following = index + 1
    if following in group and unit.kind not in _LIST and unit.text.rstrip().endswith(":"):
        group |= set(run_of(units, following)[:MOST_ROWS])
    return sorted(group)


def _leads(units: Sequence[Unit], index: int) -> list[int]:
    """Return the unit that introduces one, and those that introduce that one."""
    found = list[int]()
    while units[index].lead >= 0 and len(found) < _MOST_LEADS:
        unit = units[index]
        before = range(index - 1, -1, -1)
        place = next((at for at in before if (units[at].passage, units[at].start) == (unit.passage, unit.lead)), None)
        if place is None:
            break
        found.append(index := place)
    return found


def _introduced(units: Sequence[Unit], index: int) -> list[int]:
    """Return the items, rows or code that a unit introduces, with what is within them."""
    passage, starts, found = units[index].passage, {units[index].start}, list[int]()
    for at in range(index + 1, len(units)):
        if units[at].passage != passage or units[at].lead < 0:
            break
        if units[at].lead in starts:
            starts.add(units[at].start)
            found.append(at)
    return found


def _pointed_at(units: Sequence[Unit], passages: Sequence[Passage], index: int) -> list[int]:
    """Return the clauses of the same document that a unit names by their labels, as in `see clause 4.2`."""
    unit = units[index]
    found = (one[0] for pattern in _POINTERS for one in pattern.finditer(unit.text, len(unit.label)))
    said = {" ".join(one.casefold().split()) for one in found}
    if not said or unit.kind in {"row", "code"}:
        return []
    path = passages[unit.passage].path
    labelled = (at for at, other in enumerate(units) if other.label in said and other.kind != "item" and at != index)
    return [at for at in labelled if passages[units[at].passage].path == path][:_MOST_POINTED]


def run_of(units: Sequence[Unit], index: int) -> list[int]:
    """Return the units of the list, table or paragraph that a unit is part of."""
    first = last = index
    while first and _belong(units[first - 1], units[first]):
        first -= 1
    while last + 1 < len(units) and _belong(units[last], units[last + 1]):
        last += 1
    return list(range(first, last + 1))


def _belong(one: Unit, other: Unit) -> bool:
    steps = {one.kind, other.kind} <= {"item", "step", "clause"}
    return one.passage == other.passage and (steps or (one.kind, one.paragraph) == (other.kind, other.paragraph))


def _with_neighbours(units: Sequence[Unit], index: int) -> list[int]:
    """Return a unit with those before and after it; a row, a clause or an item of minutes needs none."""
    unit = units[index]
    is_alone = unit.kind in _ALONE or (unit.kind == "step" and len(unit.text) >= _LONG_STEP)
    near = [index] if is_alone else [index - 1, index, index + 1]
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
    """Keep one of several passages with nearly the same words, in the place of the first, and add where the others are.

    The one with the plainest name of a file is kept: a copy of it is named `Copy of House rules (2)`. Passages that
    differ in a number or a name are no copies.
    """
    kept: list[tuple[frozenset[tuple[str, ...]], frozenset[str], Passage]] = []
    for passage in passages:
        triples, facts = _word_triples(passage.text), _telling_words(passage.text)
        for index, (others, other_facts, first) in enumerate(kept):
            if facts == other_facts and len(triples & others) >= _SAME * len(triples | others):
                kept[index] = others, other_facts, _with_copy(first, passage)
                break
        else:
            kept.append((triples, facts, passage))
    return [passage for _, _, passage in kept]


def _with_copy(first: Passage, other: Passage) -> Passage:
    """Return the plainer one of two copies, ranked like the first, with the location of the other."""
    if other.path == first.path:
        return first
    if _plainness(other.path) < _plainness(first.path):
        ranked = replace(other, score=first.score, hits=first.hits, weak=first.weak, best=first.best, names=first.names)
        first, other = replace(ranked, also_in=first.also_in), first
    return first if other.location in first.also_in else replace(first, also_in=(*first.also_in, other.location))


def _plainness(path: str) -> tuple[int, int, str]:
    return len(PurePath(path).stem), len(path), path


def _telling_words(text: str) -> frozenset[str]:
    """Return the words of a text with a digit or a capital."""
    return frozenset(word for word in _WORD.findall(text) if not word.islower())


def _word_triples(text: str) -> frozenset[tuple[str, ...]]:
    words = _WORD.findall(text.lower())
    return frozenset(zip(words, words[1:], words[2:], strict=False)) or frozenset([tuple(words)])
