"""Find the dates and the times of day of a text, as values that can be compared."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from local_rag.text.quantities import Quantity
from local_rag.text.words import blank

MONTH_NAMES = "January February March April May June July August September October November December".split()  # noqa: SIM905
DAY_NAMES = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()  # noqa: SIM905
MONTHS = [name[:3].lower() for name in MONTH_NAMES]
# The names of other languages that do not begin like the English ones, with the number of the month.
_FOREIGN_MONTHS = {
    name: number
    for number, names in enumerate(
        """januar jänner janvier enero|februar février febrero|märz mars marzo|avril abril|mai mayo|juni juin junio
        juli juillet julio|août agosto||oktober octobre octubre|novembre noviembre|dezember décembre diciembre
        """.replace("\n", "|").split("|"),
        start=1,
    )
    for name in names.split()
} | {"septembre": 9, "septiembre": 9}
ENGLISH_MONTH = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?"
)
MONTH_NAME = rf"{ENGLISH_MONTH}|{'|'.join(_FOREIGN_MONTHS)}"
_MONTH = rf"(?P<month>{MONTH_NAME})\b\.?"
_DAY, _YEAR = r"(?P<day>\d{1,2})(?:st|nd|rd|th|er)?\b", r"(?P<year>\d{4})\b"
_DATES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?<![\w-])(?P<year>\d{4})[-/.](?P<number>\d{1,2})[-/.](?P<day>\d{1,2})(?![\w-])",
        r"(?<![\w-])(?P<day>\d{1,2})[-/.](?P<number>\d{1,2})[-/.](?P<year>\d{4})(?![\w-])",
        rf"\b{_DAY}\.?(?:\s+(?:of|de))?\s+{_MONTH}(?:,?\s+(?:de\s+)?{_YEAR})?",
        rf"\b{_MONTH}\s+(?:the\s+)?{_DAY}(?!\s*:\d)(?:,?\s+{_YEAR})?",
        rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}",
    )
]
_TIME = re.compile(
    r"(?<![\w.:])(?P<hour>[01]?\d|2[0-4])(?:[:.](?P<minute>[0-5]\d))?(?P<second>:[0-5]\d)?(?P<half>\s?[ap]\.?m\b\.?)?"
    r"(?![\w:]|[.,]\d)",
    re.IGNORECASE,
)
_DATE_OF_NAME = re.compile(
    r"(?<!\d)(?P<year>(?:19|20)\d\d)(?:[-_.](?P<month>0[1-9]|1[0-2])(?:[-_.](?P<day>0[1-9]|[12]\d|3[01]))?)?(?!\d)"
    r"|(?<!\d)(?P<solid>(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))(?!\d)"
)
_NOON, _LONGEST_MONTH = 12, 31


@dataclass(frozen=True, slots=True)
class Date:
    """A date; the year or the day may be missing."""

    text: str
    start: int
    end: int
    year: int | None
    month: int
    day: int | None

    @property
    def iso(self) -> str:
        """Return the date as YYYY-MM-DD or YYYY-MM; it must have a year."""
        return f"{self.year:04}-{self.month:02}" + (f"-{self.day:02}" if self.day else "")


def month_number(name: str) -> int:
    """Return the number of a month, given its name in any of the languages that are known here."""
    name = name.lower()
    return _FOREIGN_MONTHS.get(name) or MONTHS.index(name[:3]) + 1


def find_dates(text: str) -> list[Date]:
    """Return the dates of a text that have a month and a day or a year; 3/5/2024 gives both possible dates."""
    found = list[Date]()
    for pattern in _DATES:
        dates = [date for match in pattern.finditer(text) for date in _dates(match)]
        text = blank(text, ((date.start, date.end) for date in dates))
        found += dates
    return found


def _dates(match: re.Match[str]) -> Iterator[Date]:
    parts = match.groupdict()
    day, year = (int(parts[name]) if parts.get(name) else None for name in ("day", "year"))
    if parts.get("month"):
        readings = {(month_number(parts["month"]), day)}
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


def dates_in(name: str) -> Iterator[str]:
    """Yield the dates in the name of a file or of a version as YYYY, YYYY-MM or YYYY-MM-DD."""
    for found in _DATE_OF_NAME.finditer(name):
        if solid := found["solid"]:
            yield f"{solid[:4]}-{solid[4:6]}-{solid[6:]}"
        else:
            yield "-".join(part for part in (found["year"], found["month"], found["day"]) if part)


def without_dates(name: str) -> str:
    """Return a name with a blank in place of each date that `dates_in` yields."""
    return _DATE_OF_NAME.sub(" ", name)
