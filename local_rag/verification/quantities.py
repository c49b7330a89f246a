"""Find the numbers with their units, the dates and the times of a text, as values that can be compared."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

# The spellings of each unit in lower case; `|` or a new line begins the next unit.
_UNITS = """
    mm millimetre millimeter|cm centimetre centimeter|m metre meter|km kilometre kilometer|inch|ft foot feet
    yd yard mi mile|nm nmi|mcg µg μg microgram|mg milligram|g gram gramme|kg kilo kilogram kilogramme
    t tonne ton pound lb £ gbp|oz ounce ml millilitre milliliter|cl centilitre centiliter|dl decilitre deciliter
    l litre liter|gal gallon ms millisecond|s sec second|min minute|h hr hour|d day|wk week|mo month
    yr year annum annual annually yearly|decade century centuries|night|% percent pct percentage
    $ usd us$ dollar buck|€ eur euro ¥ jpy yen|₹ inr rupee|chf franc|kr krone kroner nok|sek kronor|dkk|cent
    kb kilobyte kib|mb megabyte mib|gb gigabyte gib|tb terabyte tib|byte|bit kbps|mbps|gbps|w watt|kw kilowatt
    mw megawatt|wh|kwh|mwh|v volt|kv|a amp ampere|ma milliamp|hz hertz|khz|mhz|ghz °c celsius|°f fahrenheit|° degree
    k kelvin|pa|hpa|kpa|bar|psi|m/s|km/h kph kmh|mph|kn knot|ha hectare|acre|m2|km2|m3 dpi|rpm|db decibel|cal
    kcal calorie|ppm|px pixel|n newton|j joule"""
_UNIT_OF = {word: row.split()[0] for row in _UNITS.replace("\n", "|").split("|") for word in row.split()}
_SCALES = {"hundred": 100, "thousand": 1000, "k": 1000, "million": 10**6, "mn": 10**6, "mio": 10**6, "m": 10**6}
_SCALES |= {"mln": 10**6, "billion": 10**9, "bn": 10**9, "b": 10**9, "trillion": 10**12}
_ONES = """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
    eighteen nineteen""".split()  # noqa: SIM905  a list of that many quoted words is no easier to read
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_WORDS = {word: number for number, word in enumerate(_ONES)} | {
    word: 10 * number for number, word in enumerate(_TENS, start=2)
}
_WORDS |= {"a": 1, "an": 1, "single": 1, "once": 1, "twice": 2, "double": 2, "thrice": 3, "dozen": 12}
_WORDS |= {"first": 1, "second": 2, "third": 3, "fifth": 5, "eighth": 8, "ninth": 9, "twelfth": 12}
_WORDS |= {f"{word}th": _WORDS[word] for word in _ONES[4:] if word not in {"five", "eight", "nine", "twelve"}}
_WORDS |= {f"{word[:-1]}ieth": _WORDS[word] for word in _TENS}
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]

_CURRENCY = r"(?:US\$|[$€£¥₹]|\b(?:kr|NOK|SEK|DKK|EUR|USD|GBP|CHF|JPY|INR)\b\.?)"
_DIGITS = r"(?:\d{1,3}(?:[,' ]\d{3})+(?!\d)(?:\.\d+)?|\d+(?:[.,]\d+)*|\.\d+)"
_SCALE = r"(?:[ -]?(?:hundred|thousand|million|billion|trillion|mio|mln|mn)\b\.?|[ ]?bn\b|[kKMmB]\b(?!/))"
_NUMBER = re.compile(rf"(?P<currency>{_CURRENCY}\s?)?(?<![^\W_])(?<!\d[.,])(?P<digits>{_DIGITS})(?P<scale>{_SCALE})?")
_WORD_NUMBER = re.compile(
    rf"\b(?:(?P<tens>{'|'.join(_TENS)})[ -])?(?P<word>{'|'.join(sorted(_WORDS, key=len, reverse=True))})\b"
    r"(?:[ -](?P<scale>hundred|thousand|million|billion))?",
    re.IGNORECASE,
)
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\b", r"(?P<year>\d{4})\b"
_DATES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\w-])(?P<year>\d{4})[-/.](?P<number>\d{1,2})[-/.](?P<day>\d{1,2})(?![\w-])",
        r"(?<![\w-])(?P<day>\d{1,2})[-/.](?P<number>\d{1,2})[-/.](?P<year>\d{4})(?![\w-])",
        rf"\b{_DAY}\.?(?:\s+of)?\s+{_MONTH}(?:,?\s+{_YEAR})?",
        rf"\b{_MONTH}\s+(?:the\s+)?{_DAY}(?!\s*:\d)(?:,?\s+{_YEAR})?",
        rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}",
    )
]
_TIME = re.compile(
    r"(?<![\w.:])(?P<hour>[01]?\d|2[0-4])(?:[:.](?P<minute>[0-5]\d))?(?P<second>:[0-5]\d)?(?P<half>\s?[ap]\.?m\b\.?)?"
    r"(?![\w:]|[.,]\d)",
    re.IGNORECASE,
)
_NOON, _LONGEST_MONTH = 12, 31
_GROUP = 3
_LETTERS = 3  # only in a longer word an s at the end marks the plural
_ORDINAL = re.compile(r"(?:st|nd|rd|th)\b", re.IGNORECASE)
_UNIT_WORD = re.compile(r"\s?-?(?P<word>°\s?[CF]\b|[%$€£¥₹°]|per ?cent\b|[^\W\d_]+[23]?(?:/[^\W\d_]+)?)")
_NO_UNIT = frozenset(
    """of in to and or the per for at on by from with is are was were be have has had must may can as than i a
    """.split()  # noqa: SIM905  a list of that many quoted words is no easier to read
)
_BETWEEN = re.compile(r"(?:\s*(?:,|-|/|and|or|to|through|until|but not)\s*)+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a text: its possible values, its unit if it has one, and its position.

    `borrowed` is true if the unit is taken from a neighbouring number.
    """

    text: str
    start: int
    end: int
    values: frozenset[Decimal]
    unit: str | None = None
    borrowed: bool = False


@dataclass(frozen=True, slots=True)
class Date:
    """A date; the year or the day may be missing."""

    text: str
    start: int
    end: int
    year: int | None
    month: int
    day: int | None


def unit_of(word: str) -> str | None:
    """Return the canonical name of a unit, or None if the word is not a unit."""
    word = word.casefold().replace(" ", "").rstrip(".")
    return _UNIT_OF.get(word) or (_UNIT_OF.get(word[:-1]) if len(word) > _LETTERS and word.endswith("s") else None)


def find_dates(text: str) -> list[Date]:
    """Return the dates of a text that have a month and a day or a year; 3/5/2024 gives both possible dates."""
    found = list[Date]()
    for pattern in _DATES:
        before = tuple(found)
        for match in pattern.finditer(text):
            if not any(date.start < match.end() and match.start() < date.end for date in before):
                found += _dates(match)
    return found


def _dates(match: re.Match[str]) -> Iterator[Date]:
    parts = match.groupdict()
    day, year = (int(parts[name]) if parts.get(name) else None for name in ("day", "year"))
    if parts.get("month"):
        readings = {(MONTHS.index(parts["month"][:3].lower()) + 1, day)}
    else:
        number = int(parts["number"])
        readings = {(number, day)} if match.start("year") == match.start() else {(number, day), (day or 0, number)}
    for month, of_month in sorted(readings, key=str):
        if 1 <= month <= len(MONTHS) and (of_month is None or 1 <= of_month <= _LONGEST_MONTH):
            yield Date(match[0], match.start(), match.end(), year, month, of_month)


def find_times(text: str) -> list[Quantity]:
    """Return the times of day as minutes since midnight; 7.30 counts only with a.m. or p.m."""
    found = []
    for match in _TIME.finditer(text):
        half, hour = (match["half"] or "").strip().lower(), int(match["hour"])
        if half and 1 <= hour <= _NOON:
            hour = hour % _NOON + (_NOON if half.startswith("p") else 0)
        elif ":" not in match[0]:
            continue
        minutes = frozenset({Decimal(60 * hour + int(match["minute"] or 0))})
        found.append(Quantity(match[0].strip(), match.start(), match.end(), minutes))
    return found


def find_numbers(text: str, *, words: bool = False) -> list[Quantity]:
    """Return the numbers of a text with their units, with `words` also those written as words."""
    found = [_number(match, text) for match in _NUMBER.finditer(text)]
    if words:
        found += [_word_number(match, text) for match in _WORD_NUMBER.finditer(text)]
        found.sort(key=lambda quantity: quantity.start)
    # "10, 20 or 30 mg" and "$5 to 10": neighbouring numbers share a unit.
    for index in reversed(range(len(found) - 1)):
        first, second = found[index : index + 2]
        if first.unit is None and second.unit and _BETWEEN.fullmatch(text[first.end : second.start]):
            found[index] = replace(first, unit=second.unit, borrowed=True)
    for index in range(1, len(found)):
        first, second = found[index - 1 : index + 1]
        if second.unit is None and first.unit and _BETWEEN.fullmatch(text[first.end : second.start]):
            found[index] = replace(second, unit=first.unit, borrowed=True)
    return found


def _number(match: re.Match[str], text: str) -> Quantity:
    currency = (match["currency"] or "").strip().rstrip(".")
    digits, scale, end = match["digits"], (match["scale"] or "").strip(" -.").lower(), match.end()
    values = _values(digits)
    if scale == "m" and not currency and match["scale"] != "M":
        scale, end = "", match.start("scale")
    if scale == "b" and not currency:
        scale, end = "", match.start("scale")
    values = {value * _SCALES[scale] for value in values} if scale else values
    unit = unit_of(currency) if currency else None
    if unit is None and not _ORDINAL.match(text, end):
        unit, end = _unit_after(text, end)
    return Quantity(text[match.start() : end].strip(), match.start(), end, frozenset(values), unit)


def _word_number(match: re.Match[str], text: str) -> Quantity:
    value = _WORDS[match["word"].lower()] + (_WORDS[match["tens"].lower()] if match["tens"] else 0)
    value *= _SCALES[match["scale"].lower()] if match["scale"] else 1
    unit, end = _unit_after(text, match.end())
    return Quantity(match[0], match.start(), end, frozenset({Decimal(value)}), unit)


def _values(digits: str) -> set[Decimal]:
    """Return the possible values of digits with separators: 1.200 is ambiguous, 1,200 is not."""
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
        return {grouped} if mark == "," else {grouped, parted}
    return {parted}


def _unit_after(text: str, start: int) -> tuple[str | None, int]:
    """Return the unit after a number and its end position; one word may stand between the two."""
    first = _UNIT_WORD.match(text, start)
    if not first or first["word"].lower() in _NO_UNIT:
        return None, start
    if unit := unit_of(first["word"]):
        return unit, first.end()
    second = _UNIT_WORD.match(text, first.end())
    # One or two letters are a unit only directly after the number: "3 plan A" has none.
    close = second and len(second["word"]) >= _LETTERS and second["word"].lower() not in _NO_UNIT
    unit = unit_of(second["word"]) if second and close else None
    return unit, second.end() if second and unit else start
