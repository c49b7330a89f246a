"""Indexes of one part, in memory, for tests of how they search."""

from collections.abc import Sequence

import numpy as np

from local_rag.index.keyword_index import KeywordIndex
from local_rag.index.postings import Postings
from local_rag.index.scoring import KEYWORDS, KeywordTuning
from local_rag.index.vector_index import VectorIndex, VectorPart
from local_rag.text.tokens import keyword_tokens


def postings_of(texts: Sequence[str], documents: Sequence[int] = (), tuning: KeywordTuning = KEYWORDS) -> Postings:
    """Return the postings of texts; `documents` names the document of each, or each text is a document."""
    return Postings.build([keyword_tokens(text) for text in texts], documents or range(len(texts)), tuning)


def keyword_index(
    texts: Sequence[str], documents: Sequence[int] = (), tuning: KeywordTuning = KEYWORDS
) -> KeywordIndex:
    """Return a keyword index of texts."""
    return KeywordIndex([(postings_of(texts, documents, tuning), None)], tuning)


def vector_index(vectors: np.ndarray) -> VectorIndex:
    """Return an index of normalised vectors of shape (count, dimension)."""
    return VectorIndex([VectorPart(np.ascontiguousarray(vectors, dtype=np.float32))])
