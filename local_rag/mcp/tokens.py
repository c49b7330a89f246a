"""Count the tokens of a text without any model's tokenizer, rather too many than too few."""

import re

# A run of letters, a run of blanks, or any other character. A digit may be a token of its own.
_PIECE = re.compile(r"[A-Za-z]+|[ \t]+|[^A-Za-z \t]")
_LETTERS = 4  # of a token in a word that no vocabulary knows


def count_tokens(text: str) -> int:
    """Return about how many tokens a text has; no fewer than a language model's tokenizer makes of usual text."""
    return sum(_tokens(piece) for piece in _PIECE.findall(text))


def _tokens(piece: str) -> int:
    if piece == " ":
        return 0  # it is part of the word behind it
    if piece[0].isascii():
        return -(-len(piece) // _LETTERS)
    return max(1, len(piece.encode("utf-8", "replace")) - 1)


def cut(text: str, tokens: int) -> str:
    """Return the beginning of a text that has at most so many tokens."""
    used = 0
    for piece in _PIECE.finditer(text):
        used += _tokens(piece[0])
        if used > tokens:
            return text[: piece.start()]
    return text
