"""Keyword search by BM25 over the tokens of texts (text/tokens.py)."""

from collections.abc import Mapping, Sequence

import numpy as np

from local_rag.index.postings import Columns, Postings
from local_rag.index.scoring import KEYWORDS, KeywordTuning, inverse_document_frequency, term_weights
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
        self._postings, self._share, self._order = [postings for postings, _ in parts], tuning.around, order
        self._alive = [np.ones(len(one.block_of), bool) if alive is None else alive for one, alive in parts]
        self._alive_blocks = [one.alive_blocks(alive) for one, alive in zip(self._postings, self._alive, strict=True)]

    def vocabulary(self) -> set[str]:
        """Return the words that stand in any part, in lower case."""
        return set[str]().union(*(postings.vocabulary() for postings in self._postings))

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
        words = [[one.position(term) for term in weight_of] for one in self._postings]
        weights = np.fromiter(weight_of.values(), dtype=np.float64)
        own = _side_scores([one.own for one in self._postings], self._alive, words, weights)
        around = _side_scores([one.around for one in self._postings], self._alive_blocks, words, self._share * weights)
        pairs = zip(self._postings, self._alive, own, around, strict=True)
        return np.concatenate([np.zeros(0), *(alive * (own + side[one.block_of]) for one, alive, own, side in pairs)])


def _side_scores(
    sides: Sequence[Columns], alive: Sequence[np.ndarray], words: Sequence[Sequence[int | None]], weights: np.ndarray
) -> list[np.ndarray]:
    """Return the scores of the texts of each part for terms, given as their positions in each part.

    The rarity of a term is that among the texts that are alive.
    """
    scores, total = [np.zeros(len(mask)) for mask in alive], sum(int(np.count_nonzero(mask)) for mask in alive)
    for term, weight in enumerate(weights):
        columns = [side.of(positions[term]) for side, positions in zip(sides, words, strict=True)]
        holding = sum(int(np.count_nonzero(mask[texts])) for mask, (texts, _) in zip(alive, columns, strict=True))
        factor = weight * inverse_document_frequency(total, holding)
        for of_part, (texts, parts) in zip(scores, columns, strict=True):
            of_part[texts] += factor * parts
    return scores


def contenders(scores: np.ndarray, top: int) -> np.ndarray:
    """Return the rows, ascending, whose scores are above 0 and may be among the best `top`: few rows of a long array.

    At least `top` groups have a score that reaches the bound, so no row below it can be among the best.
    """
    groups = scores[: len(scores) // _GROUP * _GROUP].reshape(-1, _GROUP).max(axis=1)
    bound = np.partition(groups, -top)[-top] if len(groups) > top else 0.0
    return np.flatnonzero(scores >= bound if bound > 0 else scores > 0)
