"""Keyword search by BM25, over words, stems, parts of identifiers and bigrams of scripts without spaces."""

import functools
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

# Part of an index's fingerprint: raise it whenever the same text would give other tokens.
TOKENS_VERSION = 1

_WORD = re.compile(r"\w+(?:['\u2019]\w+)?")
# `getUserName` -> get User Name, `HTTPServer2` -> HTTP Server 2, `snake_case` -> snake case
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
# Scripts written without spaces: Thai to Myanmar, Khmer, kana, Han.
_UNSPACED = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_STOP_WORDS = frozenset(
    """a an and are as at be but by do does for from had has have he her his how i if in into is it its me my no not of
    on or our s she so such that the their then there these they this to was we were what when where which who will
    with would you your""".split()  # noqa: SIM905  a list of that many quoted words is no easier to read
)


@functools.cache
def _stemmer() -> Any:
    import Stemmer

    return Stemmer.Stemmer("english")


def keyword_tokens(text: str) -> list[str]:
    """Return the tokens of a text: stems, whole identifiers beside their parts, and bigrams."""
    words = [token for token in _words(unicodedata.normalize("NFKC", text)) if token not in _STOP_WORDS]
    stems: list[str] = _stemmer().stemWords(words)
    return stems


def _words(text: str) -> Iterator[str]:
    for match in _WORD.finditer(text):
        word = match.group().replace("\u2019", "'").removesuffix("'s")
        runs = _UNSPACED.findall(word)
        if runs:
            for run in runs:
                yield from (run[index : index + 2] for index in range(max(1, len(run) - 1)))
            word = _UNSPACED.sub(" ", word).strip()
            if not word:
                continue
        yield word.lower()
        parts = _PART.findall(word)
        if len(parts) > 1 and word.isascii() and "'" not in word:
            yield from (part.lower() for part in parts)


class KeywordIndex:
    """Search texts by BM25; an id is a text's position in the list the index was built from."""

    def __init__(self, retriever: Any, count: int) -> None:
        self._retriever, self._count = retriever, count

    @classmethod
    def build(cls, texts: Sequence[str]) -> "KeywordIndex":
        """Build an index in memory; bm25s cannot be updated in place, and building is cheap."""
        import bm25s

        # bm25s has no empty vocabulary, so even an index of nothing holds one token.
        tokens = [keyword_tokens(text) for text in texts]
        retriever = bm25s.BM25()
        if any(tokens):
            retriever.index(tokens, show_progress=False)
            return cls(retriever, len(texts))
        return cls(None, len(texts))

    def save(self, folder: Path) -> None:
        """Write the index to a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "count").write_text(str(self._count))
        if self._retriever is not None:
            self._retriever.save(str(folder))

    @classmethod
    def load(cls, folder: Path) -> "KeywordIndex":
        """Open a saved index, memory-mapped."""
        import bm25s

        files = {path.name for path in folder.iterdir()}
        retriever = bm25s.BM25.load(str(folder), mmap=True) if len(files) > 1 else None
        return cls(retriever, int((folder / "count").read_text()))

    def search(self, question: str, top: int) -> list[tuple[int, float]]:
        """Return ids with scores, best first; texts that share no token with the question are left out."""
        tokens = keyword_tokens(question)
        if self._retriever is None or not tokens:
            return []
        ids, scores = self._retriever.retrieve([tokens], k=min(top, self._count), show_progress=False, n_threads=0)
        return [(int(key), float(score)) for key, score in zip(ids[0], scores[0], strict=True) if score > 0]
