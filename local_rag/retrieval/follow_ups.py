"""Search a question in the light of those asked before it, without a model that would write it anew.

"And in Norway?" finds nothing by itself. Joining the questions into one text does harm; giving the words and the vector
of earlier questions a part of the weight is worth most of what a good rewriting is: scripts/benchmarks/follow_ups.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from local_rag.index.keyword_index import keyword_tokens
from local_rag.models.embedder import Embedder


@dataclass(frozen=True, slots=True)
class FollowUpTuning:
    """How much earlier questions count beside the one that is asked.

    `terms` is the weight of the words of the previous and of the first question, `vector` that of the previous one's
    vector. A question less similar than `new_subject_below` to the previous one opens a new subject.
    """

    terms: float = 0.3
    vector: float = 0.3
    new_subject_below: float = -1.0


FOLLOW_UPS = FollowUpTuning()


def follow_up_query(
    embedder: Embedder, question: str, earlier: Sequence[str] = (), tuning: FollowUpTuning = FOLLOW_UPS
) -> tuple[np.ndarray, list[str], list[float] | None]:
    """Return the vector of a question, normalised, its terms for keyword search, and their weights.

    Of the `earlier` questions, the first asked first, the last and the first count. There are no weights where none
    does.
    """
    vector, terms = embedder.embed_query(question), keyword_tokens(question)
    if not earlier:
        return vector, terms, None
    before = embedder.embed_query(earlier[-1])
    if float(vector @ before) < tuning.new_subject_below:
        return vector, terms, None
    vector = vector + tuning.vector * before
    recalled = [term for text in dict.fromkeys((earlier[-1], earlier[0])) for term in keyword_tokens(text)]
    weights = [1.0] * len(terms) + [tuning.terms] * len(recalled)
    return vector / np.linalg.norm(vector), terms + recalled, weights
