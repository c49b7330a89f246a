"""Write text that is struck out as `~~4,000~~`, and find it again: a document shows it and does not say it any more."""

import re

SIGN = "~~"
_STRUCK = re.compile(r"~~(?=[^\s~])((?:[^\n~]|~(?!~))++)(?<=[^\s~])~~")
_LINE = re.compile(r"[^\n]+")


def strike(text: str) -> str:
    """Write a text as struck out, line by line; what is blank stays as it is."""
    return _LINE.sub(lambda line: _struck(line[0]), text)


def without_struck(text: str) -> str:
    """Return a text without what is struck out in it."""
    return " ".join(_STRUCK.sub(" ", text).split()) if SIGN in text else text


def struck_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of a text that are struck out, with their signs."""
    return [one.span() for one in _STRUCK.finditer(text)] if SIGN in text else []


def is_struck(text: str) -> bool:
    """Return whether all of a text is struck out."""
    return SIGN in text and not without_struck(text)


def _struck(line: str) -> str:
    said = line.replace(SIGN, "").strip()
    if not said:
        return line
    before, after = line[: len(line) - len(line.lstrip())], line[len(line.rstrip()) :]
    return f"{before}{SIGN}{said}{SIGN}{after}"
