"""Measure spans of a text in tokens and find where to cut them."""

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from local_rag.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Span = tuple[int, int]

# WordPiece counts a "word" of a megabyte as one unknown token, so characters per token of a chunk are limited.
CHARACTERS_PER_TOKEN = 16

SENTENCE_START = re.compile(r"(?<=[.!?:])\s++(?=\S)|\n[^\S\n]*+(?=\S)")
WORD_START = re.compile(r"\s(?=\S)")


class Ruler:
    """Measure spans of one text in tokens and cut them to a limit."""

    def __init__(self, text: str, tokenizer: "Tokenizer", limit: int) -> None:
        self.text = text
        self.tokenizer = tokenizer
        self.limit = limit
        self.longest = limit * CHARACTERS_PER_TOKEN  # characters of a chunk
        self._counts: dict[Span, int] = {}

    def count(self, start: int, end: int) -> int:
        """Return the number of tokens in a span."""
        if (start, end) not in self._counts:
            self._counts[start, end] = self.tokens(self.text[start:end])
        return self._counts[start, end]

    def tokens(self, text: str) -> int:
        """Return the number of tokens in any text."""
        return len(self.tokenizer.encode(text, add_special_tokens=False).ids) if text else 0

    def fits(self, start: int, end: int) -> bool:
        """Return whether a span is within the limits of a chunk."""
        return self.size(start, end) <= self.limit

    def size(self, start: int, end: int) -> int:
        """Return the number of tokens in a span; of one longer than any chunk, one more than a chunk may have."""
        return self.count(start, end) if end - start <= self.longest else self.limit + 1

    def trim(self, start: int, end: int) -> Span:
        """Move both ends of a span past white space; an empty span stays where it starts."""
        # Step without slices, because the rest of a long text is trimmed again for each of its pieces.
        while start < end and self.text[start].isspace():
            start += 1
        while start < end and self.text[end - 1].isspace():
            end -= 1
        return start, end

    def first_cut(self, start: int, end: int, *, sentence_after: int | None = None) -> int:
        """Return the last end of a chunk from `start`: between words, or between sentences after `sentence_after`."""
        cut = min(end, start + self.longest)
        while True:
            offsets = self.tokenizer.encode(self.text[start:cut], add_special_tokens=False).offsets
            if len(offsets) > self.limit:
                cut = start + max(1, offsets[self.limit][0])
            if cut < end:
                cut = self._last(WORD_START, start, cut)
                if sentence_after is not None:
                    cut = self._last(SENTENCE_START, sentence_after, cut)
            if cut == start + 1 or self.fits(*self.trim(start, cut)):
                return cut
            cut -= 1

    def _last(self, boundary: re.Pattern[str], start: int, cut: int) -> int:
        found = boundary.finditer(self.text, start, cut + 1)
        return max((match.end() for match in found if match.end() > start), default=cut)


def read_tokenizer(file: Path) -> "Tokenizer":
    """Read a model's `tokenizer.json`, without truncation and padding."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # noqa: BLE001  the library raises bare Exception
        raise ModelError(
            f"Cannot load the tokenizer {file} ({error}); pull the model again with `local-rag models pull`."
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


load_tokenizer = lru_cache(maxsize=4)(read_tokenizer)  # for all that do not change it


@lru_cache(maxsize=2)
def without_limits(tokenizer: "Tokenizer") -> "Tokenizer":
    """Return a tokenizer without truncation and padding, which would make every count wrong: itself, or a copy."""
    from tokenizers import Tokenizer

    if tokenizer.truncation is None and tokenizer.padding is None:
        return tokenizer
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy
