"""Select the passages worth reading, because reading takes most of the time of an answer."""

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

from local_rag.answering.look_alikes import likeness
from local_rag.records import Passage

_FEWEST = 2
_SAME = 0.9  # the share of word triples that two copies of a text have in common
_GAP = 2  # characters between two adjacent chunks of a document
_DIVERSITY = 0.3  # weight of the difference from passages chosen before, against the rank
_WORD = re.compile(r"\w+")


def select(
    lists: Sequence[Sequence[Passage]], *, near: float, several: bool = False, diverse: bool = False
) -> list[Passage]:
    """Return the passages worth reading, best first, from the results for a question and for each of its parts.

    If the question asks for `several` things, no passage is dropped as unlikely and the documents take turns.
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
    """Drop passages whose reranker score is further than `near` below the best; with 0 keep all.

    The order does not change, and the first passages (_FEWEST) are always kept. Without reranking all are kept.
    """
    scores = [next((hit.score for hit in passage.hits if hit.list_name == "rerank"), None) for passage in passages]
    best = max((score for score in scores if score is not None), default=None)
    return [
        passage
        for index, (passage, score) in enumerate(zip(passages, scores, strict=True))
        if not near or best is None or index < _FEWEST or (score is not None and score >= best - near)
    ]


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


def join_neighbours(passages: Sequence[Passage]) -> list[Passage]:
    """Join passages that are adjacent in a document, at the rank of the first of them."""
    joined = list[Passage]()
    for passage in passages:
        index = next((index for index, other in enumerate(joined) if _adjoin(other, passage)), None)
        if index is None:
            joined.append(passage)
        else:
            joined[index] = _join(joined[index], passage)
    # A joined passage may be adjacent to a third one.
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
    """Take the best passage of each list, then the second best, and so on; each passage only once."""
    taken: dict[int, Passage] = {}
    for turn in itertools.zip_longest(*lists):
        for passage in filter(None, turn):
            taken.setdefault(passage.chunk_id, passage)
    return list(taken.values())


def diversify(passages: Sequence[Passage]) -> list[Passage]:
    """Order passages by maximal marginal relevance (Carbonell and Goldstein, 1998)."""
    left, chosen = list(enumerate(passages)), list[Passage]()
    while left:

        def gain(item: tuple[int, Passage]) -> float:
            alike = max((likeness(item[1].text, other.text) for other in chosen), default=0.0)
            return (1 - _DIVERSITY) / (1 + item[0]) - _DIVERSITY * alike

        best = max(left, key=gain)
        left.remove(best)
        chosen.append(best[1])
    return chosen
