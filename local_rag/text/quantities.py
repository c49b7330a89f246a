"""Find the numbers of a text with their signs and units, in digits and in words, as values that can be compared."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import lru_cache

from local_rag.text.languages import ENGLISH, FUNCTION_WORDS, language_of
from local_rag.text.words import WORD, blank

_ONES = "one two three four five six seven eight nine".split()  # noqa: SIM905
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()  # noqa: SIM905
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()  # noqa: SIM905
_NTHS = "first second third fourth fifth sixth seventh eighth ninth".split()  # noqa: SIM905
# Only the words of other languages that are no English ones.
_FOREIGN_FROM_2 = (
    "zwei deux|drei trois tres|vier quatre cuatro|fünf cinq cinco|sechs seis|sieben siete|acht huit ocho|neun nueve"
    "|zehn diez|elf onze|zwölf douze doce"
)
_FOREIGN = dict(enumerate(_FOREIGN_FROM_2.split("|"), start=2))
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


# The spellings of each unit in lower case; `|` or a new line begins the next unit. A pound is money or a weight.
_UNITS = """
    mm millimetre millimeter|cm centimetre centimeter|m metre meter|km kilometre kilometer|inch|ft foot feet
    yd yard|mi mile|nm nmi|mcg µg μg microgram|mg milligram|g gram gramme|kg kgs kilo kilogram kilogramme
    t tonne ton|pound lb lbs £ gbp sterling|oz ounce|ml millilitre milliliter|cl centilitre centiliter
    dl decilitre deciliter|l litre liter|gal gallon|ms millisecond|s sec secs second sekunde sekunden
    min mins minute minuten|h hr hrs hour stunde stunden|d day tag tage tagen jour día dia
    wk wks week woche wochen semaine semana|mo month monat monate monaten mois mes meses
    yr yrs year annum jahr jahre jahren année año|decade|century centuries
    night nacht nächte nuit noche|% percent pct percentage prozent|‰ permille promille permil|bps
    $ usd us$ dollar buck|€ eur euro|¥ jpy yen|₹ inr rupee rs|chf franc franken|kr krone kroner nok|sek kronor
    dkk|pln zloty|czk|cny yuan renminbi|aud|cad|cent
    kb kilobyte kib|mb megabyte mib|gb gigabyte gib|tb terabyte tib|byte|bit|kbps|mbps|gbps|w watt|kw kilowatt
    mw megawatt|wh|kwh|mwh|v volt|kv|a amp ampere|ma milliamp|hz hertz|khz|mhz|ghz|°c celsius|°f fahrenheit|° degree
    k kelvin|pa|hpa|kpa|bar|psi|m/s|km/h kph kmh|mph|kn knot|ha hectare|acre|m2|km2|m3|dpi|rpm|db decibel|cal
    kcal calorie|ppm|px pixel|n newton|j joule"""
_UNIT_OF = {word: row.split()[0] for row in _UNITS.replace("\n", "|").split("|") for word in row.split()}
SCALES = {"hundred": 100, "thousand": 1000, "k": 1000, "tsd": 1000, "million": 10**6, "mn": 10**6, "mio": 10**6}
SCALES |= {"m": 10**6, "mln": 10**6, "billion": 10**9, "bn": 10**9, "b": 10**9, "mrd": 10**9, "trillion": 10**12}
SCALES |= {"lakh": 10**5, "crore": 10**7, "dozen": 12}
# "kEUR", "TEUR", "USDm", "\u20acbn": a currency with its scale.
_SCALED = re.compile(
    r"(?P<before>k|t|m|mn|mio|mln|bn|mrd)?(?P<unit>eur|usd|gbp|chf|jpy|inr|nok|sek|dkk|[$€£¥₹])(?P<after>k|m|mn|mio|bn)?"
)
_DEGREES = re.compile(r"(?:°|degrees?)(c|f)(?:elsius|ahrenheit)?")
CURRENCIES = frozenset(
    _UNIT_OF[one]
    for one in ["gbp", "usd", "eur", "jpy", "inr", "chf", "nok", "sek", "dkk", "pln", "czk", "cny", "aud", "cad"]
)
SHARES = frozenset({"%", "‰", "bps"})  # a number means something else without these

_CURRENCY = (
    r"(?:US\$|[$€£¥₹]|\b(?:kr|NOK|SEK|DKK|EUR|USD|GBP|CHF|JPY|INR|PLN|CZK|CNY|AUD|CAD|Rs|[Ee]uros?)(?![^\W\d_])\.?)"
)
# A hyphen is a sign where no word or number stands before it.
_SIGN = r"(?:(?<![^\s(\[|:;=/~>\"'*_,<])-|\bminus\s)"
_PART = r"(?:(?P<whole>\d{1,6})[ -])?(?P<part>1/[2-9]|2/[35]|3/[458]|4/5|5/[68]|7/8|[1379]/10)(?![\w/]|[.,]\d)"
_DIGITS = (
    r"(?P<digits>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d{1,3}(?:[' ]\d{3})+(?!\d)(?:[.,]\d+)?"
    r"|\d+(?:[.,]\d+)*(?:[eE][-+]\d{1,2}(?!\w))?|\.\d+)"
)
_SCALE = (
    r"(?P<scale>[ -]?(?:dozen|hundred|thousand|million|billion|trillion|lakh|crore|mio|mln|mn|mrd|tsd)\b\.?|[ ]?bn\b"
    r"|(?(currency)[ ]?[kKmMbB]\b(?!/)|[kKmMB]\b(?!/)))"
)
_NUMBER = re.compile(
    rf"(?P<sign>{_SIGN})?(?:(?P<currency>{_CURRENCY})[ ]?(?P<minus>-(?=[\d.]))?|(?<![^\W_])(?<!\d[.,]))"
    rf"(?:{_PART}|{_DIGITS}{_SCALE}?)"
)
_MINUS_WORD = re.compile(r"\bminus\s\Z", re.IGNORECASE)
_GROUP = 3
_DECIMAL_COMMAS = {*FUNCTION_WORDS, "russian", "greek", "armenian"} - {ENGLISH}
_DECIMAL_COMMA = re.compile(r"\d,\d{1,2}(?![\d.,]\d|\d)|\d\.\d{3}(?:\.\d{3}|,\d)")
_LETTERS = 3  # a shorter word is a unit only directly after the number; a longer one may end in the s of the plural
_DIGITS_READ = 60  # of one number
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b", re.IGNORECASE)
_UNIT_WORD = re.compile(
    r"\)?\s?-?(?P<word>(?:°|[Dd]egrees?)\s?(?:[CF]|[Cc]elsius|[Ff]ahrenheit)\b|[%‰$€£¥₹°]|per ?(?:cent|mille)\b"
    r"|[^\W\d_]+[23]?(?:/[^\W\d_]+)?)"
)
# "Price (EUR): 160" and "| days | 30 |".
_LABEL = re.compile(r"(?:(?<![^\W\d_])(?P<word>[^\W\d_]{2,})|(?P<mark>[%‰$€£¥₹]))\)?\s?[:=|]\s?\Z")
_LABEL_CHARACTERS = 20
_NO_UNIT = frozenset(
    """of in to and or the per for at on by from with is are was were be have has had must may can as than i a
    """.split()  # noqa: SIM905  a list of that many quoted words is no easier to read
)
_BETWEEN = re.compile(r"(?:\s*(?:,|-|/|\(|and|or|to|through|until|but not))+\s*", re.IGNORECASE)
_LONGEST_BETWEEN = 20  # characters


def unit_of(word: str) -> str | None:
    """Return the canonical name of a unit, or None if the word is not a unit."""
    word = word.casefold().replace(" ", "").rstrip(".")
    if found := _DEGREES.fullmatch(word):
        word = f"°{found[1]}"
    singular = word[:-1] if len(word) > _LETTERS and word.endswith("s") else ""
    return _UNIT_OF.get(word) or _UNIT_OF.get(singular)


@lru_cache(maxsize=10_000)
def scaled_unit_of(word: str) -> tuple[str, int] | None:
    """Return a unit and what its numbers are multiplied by, 1000 for kEUR; None if the word is not a unit."""
    if unit := unit_of(word):
        return unit, 1
    if (match := _SCALED.fullmatch(word.casefold())) and bool(match["before"]) != bool(match["after"]):
        scale = match["before"] or match["after"]
        return _UNIT_OF[match["unit"]], 1000 if scale == "t" else SCALES[scale]
    return None


def scale_of(word: str) -> int:
    """Return by what a word such as "thousands" multiplies, 1 if it is not one."""
    return SCALES.get(word.casefold().removesuffix("s"), 1) if len(word) > 1 else 1


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a text: its possible values, its unit if it has one, and its position.

    `borrowed` is true if the unit is taken from a neighbouring number, `counts` is false for what is no fact by itself,
    such as "a", "first" and a "one" without a unit.
    """

    text: str
    start: int
    end: int
    values: frozenset[Decimal]
    unit: str | None = None
    borrowed: bool = False
    counts: bool = True


def find_numbers(text: str) -> list[Quantity]:
    """Return the numbers of a text with their units, in their order; one that can be read in two ways comes twice."""
    matches, either = list(_NUMBER.finditer(text)), _may_write_decimal_commas(text)
    found = [reading for match in matches for reading in _readings(match, text, either=either)]
    found += _word_numbers(blank(text, (match.span() for match in matches)))
    found.sort(key=lambda quantity: quantity.start)
    # "10, 20 or 30 mg", "thirty (30) days" and "$5 to 10": neighbouring numbers share a unit.
    for index in reversed(range(len(found) - 1)):
        found[index] = _borrow(found[index], found[index + 1], text)
    for index in range(1, len(found)):
        found[index] = _borrow(found[index], found[index - 1], text)
    return found


def _borrow(quantity: Quantity, other: Quantity, text: str) -> Quantity:
    """Return a quantity with the unit of its neighbour if it has none and belongs to it."""
    start, end = min(quantity.end, other.end), max(quantity.start, other.start)
    if quantity.unit or not other.unit or not 0 < end - start <= _LONGEST_BETWEEN:
        return quantity
    if not _BETWEEN.fullmatch(text, start, end):
        return quantity
    return replace(quantity, unit=other.unit, borrowed=True)


def _may_write_decimal_commas(text: str) -> bool:
    """Return whether a text may write 1.200 for 1200, and 1,200 for 1.2, as in most languages of Europe."""
    return language_of(text) in _DECIMAL_COMMAS or _DECIMAL_COMMA.search(text) is not None


def _readings(match: re.Match[str], text: str, *, either: bool) -> Iterator[Quantity]:
    """Yield what a number in digits may mean: 1.84m is a length, or 1.84 million."""
    currency, start = match["currency"], match.start()
    negative = bool(match["minus"]) or (
        bool(match["sign"]) and not re.search(r"\d\s\Z", text[max(0, start - 2) : start])
    )
    if match["part"]:
        top, bottom = match["part"].split("/")
        values = {Decimal(match["whole"] or 0) + Decimal(top) / Decimal(bottom)}
    else:
        values = _values(match["digits"][:_DIGITS_READ], either=either)
    values = {-value for value in values} if negative else values
    scale = (match["scale"] or "").strip(" -.").lower()
    if scale in {"m", "b"} and not currency and match["scale"] != "M":
        if scale == "m":
            yield _quantity(match, text, {value * SCALES[scale] for value in values}, match.end())
        yield _quantity(match, text, values, match.start("scale"))
    else:
        yield _quantity(match, text, {value * SCALES.get(scale, 1) for value in values}, match.end())


def _quantity(match: re.Match[str], text: str, values: set[Decimal], end: int) -> Quantity:
    start = match.start() if match["sign"] is None else match.start("sign")
    unit, scale = unit_of(match["currency"]) if match["currency"] else None, 1
    if unit is None and not _ORDINAL.match(text, end):
        unit, scale, end = _unit_after(text, end)
    if unit is None:
        unit = _label_before(text, start)
    return Quantity(text[start:end].strip(), start, end, frozenset(value * scale for value in values), unit)


def _word_numbers(text: str) -> Iterator[Quantity]:
    for number in find_word_numbers(text):
        unit, scale, end = _unit_after(text, number.end)
        minus = _MINUS_WORD.search(text, max(0, number.start - len(" minus ")), number.start)
        start, value = (minus.start(), -number.value) if minus else (number.start, number.value)
        # "one month" and "half an hour" are measured, "one of them" and "the first month" are not.
        counts = number.counts or (unit is not None and number.last in {"one", "small", "half"})
        yield Quantity(text[start:end], start, end, frozenset({value * scale}), unit, counts=counts)


def _values(digits: str, *, either: bool) -> set[Decimal]:
    """Return the possible values of digits with separators: if `either`, 1.200 and 1,200 are 1200 or 1.2."""
    digits, _, exponent = digits.lower().partition("e")
    if exponent:
        return {value.scaleb(int(exponent)) for value in _values(digits, either=either)}
    compact = digits.replace(" ", "").replace("'", "")
    last = max(compact.rfind(","), compact.rfind("."))
    if last < 0:
        return {Decimal(compact)}
    whole, mark, rest = compact[:last], compact[last], compact[last + 1 :]
    joined = re.sub("[.,]", "", whole)
    grouped, parted = Decimal(joined + rest), Decimal(f"{joined or 0}.{rest}")
    if mark in whole:
        return {grouped}
    if len(rest) == _GROUP >= len(whole) and whole.strip("0"):
        return {grouped, parted} if either else {grouped} if mark == "," else {parted}
    return {parted}


def _unit_after(text: str, start: int) -> tuple[str | None, int, int]:
    """Return the unit after a number, its scale and its end position; one word may stand between the two."""
    first = _UNIT_WORD.match(text, start)
    if not first or first["word"].lower() in _NO_UNIT:
        return None, 1, start
    if found := scaled_unit_of(first["word"]):
        return *found, first.end()
    second = _UNIT_WORD.match(text, first.end())
    # One or two letters are a unit only directly after the number: "3 plan A" has none.
    close = second and len(second["word"]) >= _LETTERS and second["word"].lower() not in _NO_UNIT
    unit = unit_of(second["word"]) if second and close else None
    return unit, 1, second.end() if second and unit else start


def _label_before(text: str, start: int) -> str | None:
    label = _LABEL.search(text, max(0, start - _LABEL_CHARACTERS), start)
    return unit_of(label["word"] or label["mark"]) if label else None
