"""By what versions are recognised: words of their names without years and version numbers, and a sketch of the text.

The sketch is made of the smallest hashes of all pairs of neighbouring words: the share that two sketches have in common
estimates the share that the texts have in common (Broder, 1997).
"""

import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from local_rag.text.words import normalize

_SKETCH = 256  # hashes
_MOST_WORDS = 200_000  # of a text
_WORD = re.compile(r"[^\W_]+")
_LETTERS_AND_DIGITS = re.compile(r"[^\W\d_]+|\d+")
OLDER_WORDS = frozenset({"old", "previous", "archive", "archived", "superseded", "obsolete", "backup", "bak", "draft"})
_VERSION_WORDS = OLDER_WORDS | frozenset(
    """v ver version versions rev revision revised r final copy new latest updated update current issue edition release
    valid effective as of from jan january feb february mar march apr april may jun june jul july aug august sep sept
    september oct october nov november dec december""".split()  # noqa: SIM905  so many quoted words are hard to read
)
_NUMBERED = re.compile(
    r"(?<![^\W_])(?:v|ver|version|rev|revision|r|draft|copy|issue|edition|release)[\s._-]*(\d+(?:[._]\d+)*)(?![^\W_])"
    r"|\((\d{1,3})\)",
    re.IGNORECASE,
)
_DATE = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d\d)(?:[-_.](?P<month>0[1-9]|1[0-2])(?:[-_.](?P<day>0[1-9]|[12]\d|3[01]))?)?(?!\d)"
    r"|(?<!\d)(?P<solid>(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))(?!\d)"
)


def key_words(name: str) -> str:
    """Return the words of a name in lower case, without dates, numbers of versions and words such as "final"."""
    text = _NUMBERED.sub(" ", _DATE.sub(" ", normalize("NFKC", name)))
    words = (word for part in _WORD.findall(text.lower()) for word in _LETTERS_AND_DIGITS.findall(part))
    return " ".join(word for word in words if word not in _VERSION_WORDS)


def dates_in(name: str) -> Iterator[str]:
    """Yield the dates in a name as YYYY, YYYY-MM or YYYY-MM-DD."""
    for found in _DATE.finditer(name):
        if solid := found["solid"]:
            yield f"{solid[:4]}-{solid[4:6]}-{solid[6:]}"
        else:
            yield "-".join(part for part in (found["year"], found["month"], found["day"]) if part)


def date_of_name(name: str) -> str:
    """Return the last date in a name as YYYY, YYYY-MM or YYYY-MM-DD; empty if there is none."""
    return ([*dates_in(name)] or [""])[-1]


def version_of_name(name: str) -> tuple[bool, tuple[int, ...]]:
    """Return what orders the versions of a name: whether no word says that it is an old one, and its number."""
    number = max((found[1] or found[2] for found in _NUMBERED.finditer(name)), key=len, default="")
    is_current = not OLDER_WORDS.intersection(_WORD.findall(name.lower()))
    return is_current, tuple(int(part) for part in re.findall(r"\d{1,9}", number))


def version_numbers(text: str) -> set[tuple[int, ...]]:
    """Return the numbers of versions that a text names; v1.0 is v1."""
    return {_without_zeros(re.findall(r"\d{1,9}", named[1])) for named in _NUMBERED.finditer(text) if named[1]}


def _without_zeros(parts: Sequence[str]) -> tuple[int, ...]:
    numbers = [*map(int, parts)]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()
    return tuple(numbers)


def sketch(text: str) -> bytes:
    """Return the smallest different hashes of the pairs of neighbouring words of a text, ascending, as uint32."""
    words = [found[0].lower() for found, _ in zip(_WORD.finditer(text), range(_MOST_WORDS), strict=False)]
    hashes = {zlib.crc32(f"{one} {other}".encode("utf-8", "surrogatepass")) for one, other in pairwise(words)}
    smallest: bytes = np.sort(np.array([*hashes], dtype="<u4"))[:_SKETCH].tobytes()
    return smallest


def likeness(one: bytes, other: bytes) -> float:
    """Return the share of pairs of words that two texts have in common, estimated from their sketches."""
    first, second = (np.frombuffer(sketch, dtype="<u4") for sketch in (one, other))
    smallest = np.union1d(first, second)[:_SKETCH]
    shared = np.intersect1d(np.intersect1d(first, second), smallest)
    return len(shared) / max(1, len(smallest))
