"""Keyword search by BM25 over the tokens of texts (text/tokens.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from local_rag.index.postings import Inverted, Postings
from local_rag.index.scoring import (
    KEYWORDS,
    KeywordTuning,
    Statistics,
    TextCounts,
    damping,
    inverse_document_frequency,
    saturation,
    term_weights,
    token_number,
)
from local_rag.index.vector_index import best_rows

_GROUP = 64  # scores of which only the highest is compared first


class KeywordIndex:
    """Search chunks by BM25 in any number of parts; the id of a chunk is its position in all parts together.

    A chunk scores for its own words, and with less weight for those of its surroundings: neighbouring chunks of the
    same document taken as one text. A chunk from the middle of a document often lacks the word for its subject, which
    occurs a few chunks earlier. Scores do not depend on how the chunks are divided into parts.
    """

    def __init__(
        self,
        parts: Sequence[tuple[Postings, np.ndarray | None]],
        tuning: KeywordTuning = KEYWORDS,
        order: np.ndarray | None = None,
    ) -> None:
        """Search the chunks of each part that are alive (None: all); equal scores rank by `order`, lowest first."""
        self._tuning, self._order = tuning, order
        self._parts = list[_Part]()
        self._statistics = Statistics()
        for postings, alive in parts:
            blocks = None if alive is None else postings.alive_blocks(alive)
            self._parts.append(_Part(_Side(postings.own, alive), _Side(postings.around, blocks), postings))
            self._statistics += postings.statistics(alive)

    def spellings(self) -> set[str]:
        """Return the words that stand in any part, in lower case."""
        return {form for part in self._parts for forms in part.postings.spellings() for form in forms.split()}

    def search(
        self,
        terms: Sequence[str],
        top: int,
        allowed: np.ndarray | None = None,
        weights: Sequence[float] | None = None,
        hidden: np.ndarray | None = None,
    ) -> list[tuple[int, float]]:
        """Return ids with scores for `keyword_tokens` of a question, best first; only `allowed` ids, int64, if given.

        Otherwise all but the `hidden` ones.

        A term counts as often as it occurs, times its weight if there are `weights`. Texts whose surroundings share no
        token with the question are not returned.
        """
        if not terms or (allowed is not None and not len(allowed)):
            return []
        scores = self._scores(term_weights(terms, weights))
        if allowed is None:
            if hidden is not None:
                scores[hidden] = 0
            rows = contenders(scores, top)
            scores = scores[rows]
        else:
            scores = scores[allowed]
            rows, scores = allowed[scores > 0], scores[scores > 0]
        return best_rows(rows, scores, top, self._order)

    def _scores(self, weight_of: Mapping[str, float]) -> np.ndarray:
        """Return the score of every chunk, float64, 0 for those that are not alive."""
        numbers, total = [token_number(term) for term in weight_of], self._statistics
        positions = [[part.postings.position(number) for number in numbers] for part in self._parts]
        own = self._side_scores([part.own for part in self._parts], positions, weight_of, total.own, 1.0)
        around = self._side_scores(
            [part.around for part in self._parts], positions, weight_of, total.around, self._tuning.around
        )
        for number, part in enumerate(self._parts):
            own[number] += around[number][part.postings.block_of]
            if part.own.alive is not None:
                own[number][~part.own.alive] = 0
        return np.concatenate([np.zeros(0), *own])

    def _side_scores(
        self,
        sides: "Sequence[_Side]",
        positions: Sequence[Sequence[int | None]],
        weight_of: Mapping[str, float],
        collection: TextCounts,
        share: float,
    ) -> list[np.ndarray]:
        """Return the scores of the texts, or of the surroundings, of each part, including texts that are not alive."""
        lists = [side.holders(of_part) for side, of_part in zip(sides, positions, strict=True)]
        weights = [
            weight * share * inverse_document_frequency(collection.texts, sum(one[term].alive for one in lists))
            for term, weight in enumerate(weight_of.values())
        ]
        return [
            side.scores(of_part, weights, collection, self._tuning) for side, of_part in zip(sides, lists, strict=True)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class _Holders:
    """The texts that contain a token, ascending, its frequency in each, and the number of those that are alive."""

    texts: np.ndarray
    counts: np.ndarray
    alive: int


@dataclass(slots=True, eq=False)
class _Side:
    """The texts, or the surroundings, of a part, and which of them are alive, None for all."""

    inverted: Inverted
    alive: np.ndarray | None
    _damping: np.ndarray | None = None

    def holders(self, positions: Sequence[int | None]) -> list[_Holders]:
        """Return the texts that contain each token, given as its position among the words, None if it is not there."""
        found = []
        for position in positions:
            first, end = (0, 0) if position is None else map(int, self.inverted.starts[position : position + 2])
            texts = self.inverted.texts[first:end]
            alive = len(texts) if self.alive is None else int(np.count_nonzero(self.alive[texts]))
            found.append(_Holders(texts, self.inverted.counts[first:end], alive))
        return found

    def scores(
        self, lists: Sequence[_Holders], weights: Sequence[float], collection: TextCounts, tuning: KeywordTuning
    ) -> np.ndarray:
        """Add up the scores of the tokens of a question for each text, in their order."""
        if self._damping is None:  # the same for every question
            self._damping = damping(self.inverted.lengths.astype(np.float64), collection.average, tuning)
        scores = np.zeros(len(self._damping))
        for one, weight in zip(lists, weights, strict=True):  # one token at a time: a long question has many long lists
            scores[one.texts] += weight * saturation(one.counts.astype(np.float64), self._damping[one.texts])
        return scores


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The postings of a part, and both sides of them."""

    own: _Side
    around: _Side
    postings: Postings


def contenders(scores: np.ndarray, top: int) -> np.ndarray:
    """Return the rows, ascending, whose scores are above 0 and may be among the best `top`: few rows of a long array.

    At least `top` groups have a score that reaches the bound, so no row below it can be among the best.
    """
    groups = scores[: len(scores) // _GROUP * _GROUP].reshape(-1, _GROUP).max(axis=1)
    bound = np.partition(groups, -top)[-top] if len(groups) > top else 0.0
    return np.flatnonzero(scores >= bound if bound > 0 else scores > 0)
