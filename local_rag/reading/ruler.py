"""Measure the spans of a text in tokens, and find where to cut them."""

import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from local_rag.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Span = tuple[int, int]

# WordPiece counts a "word" of a megabyte as one unknown token: no chunk holds more characters a token than this.
CHARACTERS_PER_TOKEN = 16

SENTENCE_START = re.compile(r"(?:(?<=[.!?:])\s|\n)\s*(?=\S)")
WORD_START = re.compile(r"\s+(?=\S)")


class Ruler:
    """Measure spans of one text in tokens, and cut them to a limit."""

    def __init__(self, text: str, tokenizer: "Tokenizer", limit: int) -> None:
        self.text = text
        self.tokenizer = tokenizer
        self.limit = limit
        self._counts: dict[Span, int] = {}

    def count(self, start: int, end: int) -> int:
        """Count the tokens of a span."""
        if (start, end) not in self._counts:
            encoding = self.tokenizer.encode(self.text[start:end], add_special_tokens=False)
            self._counts[start, end] = len(encoding.ids)
        return self._counts[start, end]

    def fits(self, start: int, end: int) -> bool:
        """Tell whether a span may be a chunk."""
        return end - start <= self.limit * CHARACTERS_PER_TOKEN and self.count(start, end) <= self.limit

    def trim(self, start: int, end: int) -> Span:
        """Move both ends of a span past white space; an empty span stays where it starts."""
        # Step by step, without slices: the rest of a long text is trimmed again for each of its pieces.
        while start < end and self.text[start].isspace():
            start += 1
        while start < end and self.text[end - 1].isspace():
            end -= 1
        return start, end

    def first_cut(self, start: int, end: int, *, sentence_after: int | None = None) -> int:
        """Find how far a chunk from `start` may reach: between words, or between sentences behind `sentence_after`."""
        cut = min(end, start + self.limit * CHARACTERS_PER_TOKEN)
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
        """Find the last boundary between `start` and `cut`, or `cut` itself where there is none."""
        found = boundary.finditer(self.text, start, cut + 1)
        return max((match.end() for match in found if match.end() > start), default=cut)


@lru_cache(maxsize=4)
def load_tokenizer(file: Path) -> "Tokenizer":
    """Load a model's `tokenizer.json`, in milliseconds, with truncation and padding switched off."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # noqa: BLE001  the library raises bare Exception
        raise ModelError(
            f"{file.parent} has no usable tokenizer.json ({error}); pull it again with `local-rag models pull`."
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


@lru_cache(maxsize=2)
def without_limits(tokenizer: "Tokenizer") -> "Tokenizer":
    """Copy a tokenizer without its truncation and padding, which would falsify every count."""
    from tokenizers import Tokenizer

    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.no_truncation()
    copy.no_padding()
    return copy
