"""Search a follow-up question together with the earlier questions, without a model that rewrites it.

"And in Norway?" finds nothing on its own. Joining the questions into one text makes results worse. Giving the words and
the vector of earlier questions some weight achieves most of what a good rewrite does: scripts/benchmarks/follow_ups.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from local_rag.models.embedder import Embedder
from local_rag.text.tokens import question_terms


@dataclass(frozen=True, slots=True)
class FollowUpTuning:
    """The weights of earlier questions; the current question has weight 1.

    `terms` is the weight of the words of the previous and the first question, `vector` that of the previous question's
    vector. A question whose similarity to the previous one is below `new_subject_below` starts a new subject.
    """

    terms: float = 0.3
    vector: float = 0.3
    new_subject_below: float = -1.0


FOLLOW_UPS = FollowUpTuning()


def follow_up_query(
    embedder: Embedder, question: str, earlier: Sequence[str] = (), tuning: FollowUpTuning = FOLLOW_UPS
) -> tuple[np.ndarray, list[str], list[float] | None]:
    """Return the normalised vector of a question, its terms for keyword search, and the weights of these terms.

    Of the `earlier` questions, oldest first, the first and the last count. The weights are None if none counts.
    """
    vector, terms = embedder.embed_query(question), question_terms(question)
    if not earlier:
        return vector, terms, None
    before = embedder.embed_query(earlier[-1])
    if float(vector @ before) < tuning.new_subject_below:
        return vector, terms, None
    vector = vector + tuning.vector * before
    recalled = [term for text in dict.fromkeys((earlier[-1], earlier[0])) for term in question_terms(text)]
    weights = [1.0] * len(terms) + [tuning.terms] * len(recalled)
    return vector / np.linalg.norm(vector), terms + recalled, weights
