"""Move a citation to another source if the sentence fits that source better. Pure functions."""

from collections.abc import Callable, Sequence, Set
from dataclasses import replace

from local_rag.verification.sentences import Sentence, inherit_citations, with_citations

# How much higher the cross-encoder must score another passage; a cautious guess, in logits of the shipped one.
_CLEARLY_BETTER = 4.0

Lacking = Callable[[Sentence, int], Set[str]]  # the facts of a sentence that the source with this number lacks


def better_citation(cited: int, scores: Sequence[float], lacking: Callable[[int], Set[str]], *, own: bool) -> int:
    """Return the number of the source that fits a sentence better than the `cited` one, or `cited` if there is none.

    `scores` holds the cross-encoder's score of each source, and `lacking` names the facts that a source lacks. If the
    citation is the sentence's `own`, the other source must score clearly better and lack nothing that the cited source
    has. If the sentence inherited it, the cited source must lack a fact, and the other must score better and lack none.
    """
    best = max(range(1, len(scores) + 1), key=lambda number: scores[number - 1])
    if scores[best - 1] <= scores[cited - 1] + (_CLEARLY_BETTER if own else 0.0):
        return cited
    lacking_here, lacking_there = lacking(cited), lacking(best)
    moves = lacking_there <= lacking_here if own else bool(lacking_here) and not lacking_there
    return best if moves else cited


def move_citations(
    sentences: Sequence[Sentence], scores: Sequence[Sequence[float]], lacking: Lacking
) -> tuple[list[Sentence], list[tuple[int, int]]]:
    """Return the sentences with better citations, and the changes as pairs of the old and the new number.

    Sentences with citations of their own move first. The others then inherit what their neighbours cite now, and may
    move from there. `scores` holds one list per sentence: the score of each source, empty without a cross-encoder.
    """
    rows = list(zip(sentences, scores, strict=True))
    moved = [_moved(sentence, row, lacking) if sentence.own else sentence for sentence, row in rows]
    inherited = inherit_citations(moved)
    rows = list(zip(inherited, scores, strict=True))
    result = [sentence if sentence.own else _moved(sentence, row, lacking) for sentence, row in rows]
    return result, [*_changes(sentences, moved), *_changes(inherited, result)]


def _moved(sentence: Sentence, scores: Sequence[float], lacking: Lacking) -> Sentence:
    """Return a sentence that stands on exactly one scored source with the better citation."""
    if len(sentence.citations) != 1 or sentence.citations[0] > len(scores):
        return sentence
    (cited,) = sentence.citations
    number = better_citation(cited, scores, lambda number: lacking(sentence, number), own=sentence.own)
    if number == cited:
        return sentence
    return replace(sentence, text=with_citations(sentence, (number,)), citations=(number,))


def _changes(before: Sequence[Sentence], after: Sequence[Sentence]) -> list[tuple[int, int]]:
    pairs = [(old.citations, new.citations) for old, new in zip(before, after, strict=True)]
    return [(old[0], new[0]) for old, new in pairs if old != new]
