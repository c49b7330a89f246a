"""Read numbers that are written in words: "one hundred and twenty", "two and a half million", "two thirds"."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from local_rag.text.words import WORD

_ONES = "one two three four five six seven eight nine".split()  # noqa: SIM905
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()  # noqa: SIM905
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905
_NTHS = "first second third fourth fifth sixth seventh eighth ninth".split()  # noqa: SIM905
# Only the words of other languages that are no English ones.
_FOREIGN = {
    2: "zwei deux",
    3: "drei trois tres",
    4: "vier quatre cuatro",
    5: "fünf cinq cinco",
    6: "sechs seis",
    7: "sieben siete",
    8: "acht huit ocho",
    9: "neun nueve",
    10: "zehn diez",
    11: "elf onze",
    12: "zwölf douze doce",
}
_GERMAN_ONES = "ein zwei drei vier fünf sechs sieben acht neun".split()  # noqa: SIM905
_GERMAN_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()  # noqa: SIM905
_GERMAN = dict(
    zip("dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn".split(), range(13, 20), strict=True)  # noqa: SIM905
) | {
    f"{one}{'und' if one else ''}{ten}": 10 * tens + ones
    for tens, ten in enumerate(_GERMAN_TENS, start=2)
    for ones, one in enumerate(["", *_GERMAN_ONES])
}
_PARTS = {"third": 3, "quarter": 4, "fifth": 5, "sixth": 6, "eighth": 8, "tenth": 10}
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}

# Each word with its kind and its value.
_WORDS: dict[str, tuple[str, Decimal]] = {
    word: (kind, Decimal(value))
    for kind, values in {
        "part": {f"{word}s": value for word, value in _PARTS.items()},
        "one": dict(zip(_ONES, range(1, 10), strict=True)),
        "small": {"zero": 0, "twice": 2, "thrice": 3}
        | dict(zip(_TEENS, range(10, 20), strict=True))
        | {word: value for value, words in _FOREIGN.items() for word in words.split()}
        | _GERMAN,
        "ten": dict(zip(_TENS, range(20, 100, 10), strict=True)),
        "nth": dict(zip(_NTHS, range(1, 10), strict=True))
        | {"twelfth": 12}
        | {f"{word}th": value for value, word in enumerate(_TEENS, start=10) if word != "twelve"}
        | {f"{word[:-1]}ieth": 10 * value for value, word in enumerate(_TENS, start=2)},
        "article": dict.fromkeys("a an ein eine einen einem einer eines single once".split(), 1) | {"double": 2},  # noqa: SIM905
        "times": {"hundred": 100, "dozen": 12},
        "large": _LARGE,
    }.items()
    for word, value in values.items()
} | {"half": ("half", Decimal("0.5"))}
_LONGEST_GAP = 7  # " and a "


@dataclass(slots=True)
class WordNumber:
    """A number in words, from `start` to `end` of a text.

    It `counts` if it says how many even where nothing is measured, unlike "a", "one" and "first".
    """

    start: int
    end: int
    whole: Decimal  # the part up to the last thousand or million
    rest: Decimal
    last: str  # the kind of the last word
    counts: bool

    @property
    def value(self) -> Decimal:
        """The number."""
        return self.whole + self.rest


def find_word_numbers(text: str) -> Iterator[WordNumber]:
    """Yield the numbers that are written in words, also articles and ordinals, which do not count."""
    number: WordNumber | None = None
    for match in WORD.finditer(text):
        word = match[0].lower()
        if word not in _WORDS or (word == "a" and text.startswith(" half", match.end())):
            continue
        if number:
            gap = text[number.end : match.start()] if match.start() - number.end <= _LONGEST_GAP else ""
            if _continue(number, word, gap.lower()):
                number.end = match.end()
                continue
            yield number
        number = _begin(word, match.start(), match.end())
    if number:
        yield number


def _begin(word: str, start: int, end: int) -> WordNumber | None:
    """Return the number that a word begins; "thirds" begins none."""
    kind, value = _WORDS[word]
    if kind == "part":
        return None
    counts = kind in {"one", "small", "ten", "times", "large"} and word not in {"zero", "one"}
    whole, rest = (value, Decimal()) if kind == "large" else (Decimal(), value)
    return WordNumber(start, end, whole, rest, kind, counts)


def _continue(number: WordNumber, word: str, gap: str) -> bool:
    """Add the next word to a number if it belongs to it."""
    last, (kind, value) = number.last, _WORDS[word]
    near, joined = gap in {" ", "-"}, gap in {" ", "-", " and "}
    if kind == "article" and last == "half" and gap == " ":
        return True  # half a million
    if kind == "times" and near and last in {"one", "small", "ten", "article", "half"}:
        number.rest *= value
    elif kind == "large" and near and last not in {"large", "nth", "part"}:
        number.whole, number.rest = number.whole + number.rest * value, Decimal()
    elif kind == "half" and gap == " and a " and last in {"one", "small", "ten"}:
        number.rest += value
    elif word.removesuffix("s") in _PARTS and near and last == "one":
        # "two third parties" are no part, "three quarters" may be nine months.
        if word.endswith("s") != (number.rest > 1) or word == "quarters":
            return False
        number.rest, kind = number.rest / _PARTS[word.removesuffix("s")], "part"
    elif (last == "ten" and near and (kind == "one" or word in _NTHS)) or (
        last in {"times", "large"} and joined and kind in {"one", "small", "ten", "nth"}
    ):
        number.rest += value
    else:
        return False
    number.last, number.counts = kind, kind != "nth"
    return True
