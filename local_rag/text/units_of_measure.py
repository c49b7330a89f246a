"""Read units and scales: which spellings mean the same unit, and by what a scale multiplies."""

import re
from functools import lru_cache

# The spellings of each unit in lower case; `|` or a new line begins the next unit. A pound is money or a weight.
_UNITS = """
    mm millimetre millimeter|cm centimetre centimeter|m metre meter|km kilometre kilometer|inch|ft foot feet
    yd yard|mi mile|nm nmi|mcg µg μg microgram|mg milligram|g gram gramme|kg kgs kilo kilogram kilogramme
    t tonne ton|pound lb lbs £ gbp sterling|oz ounce|ml millilitre milliliter|cl centilitre centiliter
    dl decilitre deciliter|l litre liter|gal gallon|ms millisecond|s sec secs second sekunde sekunden
    min mins minute minuten|h hr hrs hour stunde stunden|d day tag tage tagen jour día dia
    wk wks week woche wochen semaine semana|mo month monat monate monaten mois mes meses
    yr yrs year annum annual annually yearly jahr jahre jahren année año|decade|century centuries
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
_LETTERS = 3  # only in a longer word an s at the end marks the plural
CURRENCIES = frozenset(
    _UNIT_OF[one]
    for one in ["gbp", "usd", "eur", "jpy", "inr", "chf", "nok", "sek", "dkk", "pln", "czk", "cny", "aud", "cad"]
)
SHARES = frozenset({"%", "‰", "bps"})  # a number means something else without these


def unit_of(word: str) -> str | None:
    """Return the canonical name of a unit, or None if the word is not a unit."""
    word = word.casefold().replace(" ", "").rstrip(".")
    if found := _DEGREES.fullmatch(word):
        word = f"°{found[1]}"
    return _UNIT_OF.get(word) or (_UNIT_OF.get(word[:-1]) if len(word) > _LETTERS and word.endswith("s") else None)


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
