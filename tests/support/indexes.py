"""Indexes of one part, in memory, for tests of how they search; and postings as an earlier version wrote them."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from local_rag.index.keyword_index import KeywordIndex
from local_rag.index.postings import Postings
from local_rag.index.scoring import KEYWORDS, KeywordTuning, token_number
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


def write_as_counts(folder: Path, postings: Postings, texts: Sequence[Sequence[str]]) -> None:
    """Write the postings of these texts, given as tokens, to an empty folder as local-rag did before it used bm25s."""
    blocks: list[list[str]] = [[] for _ in range(postings.blocks)]
    for block, text in zip(postings.block_of.tolist(), texts, strict=True):
        blocks[block] += text
    token_of = {token_number(token): token for text in texts for token in text}
    tokens = [token_of[number] for number in postings.words.tolist()]
    for name, columns, some in (("own", postings.own, texts), ("around", postings.around, blocks)):
        of_text = [Counter(text) for text in some]
        counts = [of_text[text][token] for place, token in enumerate(tokens) for text in columns.of(place)[0].tolist()]
        np.save(folder / f"{name}_starts.npy", columns.starts)
        np.save(folder / f"{name}_texts.npy", columns.texts)
        np.save(folder / f"{name}_counts.npy", np.array(counts, dtype=np.uint16))
        np.save(folder / f"{name}_lengths.npy", np.array([len(text) for text in some], dtype=np.int32))
    np.save(folder / "words.npy", postings.words)
    np.save(folder / "blocks.npy", postings.block_of)
    np.save(folder / "spelled.npy", np.frombuffer("\n".join(tokens).encode(), dtype=np.uint8))
