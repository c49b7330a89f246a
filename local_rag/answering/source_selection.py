"""Select from the passages that were found those worth reading: what a model reads is most of the time of an answer."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

from local_rag.answering.look_alikes import likeness
from local_rag.records import Passage

_FEWEST = 2
_SAME = 0.9  # share of words in a row that two copies of a text have in common
_GAP = 2  # characters between two chunks of one document that follow each other
_DIVERSITY = 0.3  # weight of being unlike what was chosen before, against the place in the ranking
_WORD = re.compile(r"\w+")


def select(
    lists: Sequence[Sequence[Passage]], *, near: float, several: bool = False, diverse: bool = False
) -> list[Passage]:
    """Return the passages worth reading, best first, from what was found for a question and for each part of it.

    Of a question that asks for `several` things none is left out as unlikely, and the documents take turns.
    """
    if several:
        found = drop_copies(take_turns([take_turns(_by_document(passages)) for passages in lists]))
    else:
        found = drop_copies(take_turns([likely_sources(passages, near) for passages in lists]))
    return diversify(found) if diverse else found


def _by_document(passages: Sequence[Passage]) -> list[list[Passage]]:
    documents: dict[str, list[Passage]] = {}
    for passage in passages:
        documents.setdefault(passage.path, []).append(passage)
    return list(documents.values())


def likely_sources(passages: Sequence[Passage], near: float) -> list[Passage]:
    """Leave out passages whose score by the reranker is further than `near` below the best; with 0 all stay.

    The order stays, and so do the first two. Where nothing was reranked all stay.
    """
    scores = [next((hit.score for hit in passage.hits if hit.list_name == "rerank"), None) for passage in passages]
    best = max((score for score in scores if score is not None), default=None)
    return [
        passage
        for place, (passage, score) in enumerate(zip(passages, scores, strict=True))
        if not near or best is None or place < _FEWEST or (score is not None and score >= best - near)
    ]


def drop_copies(passages: Sequence[Passage]) -> list[Passage]:
    """Keep the first of passages that say the same in nearly the same words; it names where the others stand."""
    kept: list[tuple[frozenset[tuple[str, ...]], Passage]] = []
    for passage in passages:
        runs = _runs(passage.text)
        for place, (others, first) in enumerate(kept):
            if len(runs & others) >= _SAME * len(runs | others):
                if passage.path != first.path and passage.location not in first.also_in:
                    kept[place] = others, replace(first, also_in=(*first.also_in, passage.location))
                break
        else:
            kept.append((runs, passage))
    return [passage for _, passage in kept]


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    """Return all three words in a row."""
    words = _WORD.findall(text.lower())
    return frozenset(zip(words, words[1:], words[2:], strict=False)) or frozenset([tuple(words)])


def join_neighbours(passages: Sequence[Passage]) -> list[Passage]:
    """Make one source of passages that follow each other in a document, at the place of the first of them."""
    joined = list[Passage]()
    for passage in passages:
        place = next((place for place, other in enumerate(joined) if _adjoin(other, passage)), None)
        if place is None:
            joined.append(passage)
        else:
            joined[place] = _join(joined[place], passage)
    # What was joined may in turn adjoin a third.
    return joined if len(joined) == len(passages) else join_neighbours(joined)


def _adjoin(one: Passage, other: Passage) -> bool:
    first, second = sorted((one, other), key=lambda passage: passage.start)
    return one.path == other.path and first.end > first.start and first.start < second.start <= first.end + _GAP


def _join(one: Passage, other: Passage) -> Passage:
    first, second = sorted((one, other), key=lambda passage: passage.start)
    beyond = second.text[first.end - second.start :] if second.start < first.end else second.text
    text = first.text + ("\n\n" if second.start >= first.end else "") + beyond
    return replace(
        one,
        text=text,
        start=first.start,
        end=max(first.end, second.end),
        headings=tuple(title for title, same in zip(first.headings, second.headings, strict=False) if title == same),
        page=first.page,
        line=first.line,
        end_line=second.end_line,
        also_in=tuple(dict.fromkeys((*one.also_in, *other.also_in))),
    )


def take_turns(lists: Sequence[Sequence[Passage]]) -> list[Passage]:
    """Take the best of each list, then the second best, and so on; a passage counts once."""
    taken: dict[int, Passage] = {}
    for turn in itertools.zip_longest(*lists):
        for passage in filter(None, turn):
            taken.setdefault(passage.chunk_id, passage)
    return list(taken.values())


def diversify(passages: Sequence[Passage]) -> list[Passage]:
    """Order by maximal marginal relevance: fitting, and unlike those before (Carbonell and Goldstein, 1998)."""
    left, chosen = list(enumerate(passages)), list[Passage]()
    while left:

        def gain(item: tuple[int, Passage]) -> float:
            alike = max((likeness(item[1].text, other.text) for other in chosen), default=0.0)
            return (1 - _DIVERSITY) / (1 + item[0]) - _DIVERSITY * alike

        best = max(left, key=gain)
        left.remove(best)
        chosen.append(best[1])
    return chosen
