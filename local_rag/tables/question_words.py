"""Read what a question says whatever it is asked of: its words, times, comparisons, and the operation it names."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from local_rag.tables.periods import Period, find_periods
from local_rag.tables.vocabulary import FOR_TEXT, NOT_COMPUTED, SUPERLATIVES
from local_rag.text.cell_values import read_number
from local_rag.text.dates import ENGLISH_MONTH
from local_rag.text.tokens import key_of_word

LONGEST = 400  # characters of a question that is read
Focus = Literal["how many", "how much", "which", "what", "who", "when", "list", "where", "whether", ""]
_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"(?<=[^\W\d_])['\u2019]s\b")
_NUMBER = (
    r"(?:(?:US\$|[€$£¥]|\b[A-Z]{3}\b)\s?)?(?P<number>\d[\d,.' ]{0,20}\d|\d)\s?(?P<scale>k\b|thousand|million|m\b|bn\b)?"
)
_MONTH_AFTER = re.compile(rf"(?:st|nd|rd|th)?(?: of)? (?:{ENGLISH_MONTH})\b", re.IGNORECASE)
_COMPARISON = re.compile(
    r"\b(?:(?P<more>more|greater|higher|larger|bigger|longer|older|later) than(?! or)|(?P<over>over|above"
    r"|exceed(?:s|ing|ed)?|exceeds)"
    r"|(?P<less>less|fewer|lower|smaller|shorter|cheaper|younger) than(?! or)|(?P<under>under|below)"
    r"|(?P<least>at least|no less than|not less than|a minimum of|minimum of)"
    r"|(?P<most>at most|no more than|not more than|up to|a maximum of|maximum of)"
    r"|(?P<exactly>exactly|equal to|equals)|(?P<between>between)) (?:an? |the )?"
    + _NUMBER
    + r"(?:(?P<joint> ?(?:[A-Z]{3}|[€$£¥%])? (?:and|to) )"
    + r"(?:(?:US\$|[€$£¥]|\b[A-Z]{3}\b)\s?)?(?P<second>\d[\d,.' ]{0,20}\d|\d))?"
    r"(?P<onward> or (?:more|less|fewer|above|below|higher|lower))?",
    re.IGNORECASE,
)
_OR_MORE = re.compile(
    rf"{_NUMBER}(?P<unit> \w{{1,20}})? (?:or|and) (?P<way>more|less|fewer|above|below|higher|lower|over|under)\b",
    re.IGNORECASE,
)
_SIGN = re.compile(rf"(?P<sign>>=|<=|>|<|=) ?{_NUMBER}")
_MEAN = re.compile(r"\b(?:average|avg|mean|on average|typical(?:ly)?)\b", re.IGNORECASE)
_SUM = re.compile(
    r"\b(?:totals?|sum(?:med)?|altogether|in all|combined|overall|add(?:ed|s)? up|add up|cumulat\w{1,5}"
    r"|together|sum up)\b",
    re.IGNORECASE,
)
_NUMBER_OF = r"(?:(?<=^)|(?<=the )|(?<=total )|(?<=what ))number of"
_COUNT = re.compile(rf"\b(?:how many|{_NUMBER_OF}|count(?: of)?|how often|no\. of)\b", re.IGNORECASE)
_DISTINCT = re.compile(r"\b(?:different|distinct|unique|separate|various)\b", re.IGNORECASE)
_DIFFERENCE = re.compile(
    r"\bdifference\b|\bdiffer\b|\bhow (?:much|many) (?:\w{1,20} ){0,4}?(?:more|less|fewer|higher|lower|larger"
    r"|smaller|bigger|longer|cheaper|costlier"
    r"|dearer|older)\b(?! than \d)|\bby how (?:much|many)\b|\b(?:change|increase|decrease|rise|drop|grow"
    r"|growth|fell|rose|grew) (?:\w{1,20} ){0,3}?(?:from|between)\b"
    r"|\bcompared? (?:to|with)\b|\bversus\b|\bvs\b",
    re.IGNORECASE,
)
_GROUP = re.compile(
    r"\b(?:per|for each|for every|by each|each|every|by|broken down by|split by|grouped by|group by) (?:the )?",
    re.IGNORECASE,
)
_TOP = re.compile(
    r"\b(?:top|first|best|bottom) (?P<after>\d{1,3}|two|three|four|five|six|seven|eight|nine|ten)\b"
    r"|\b(?P<before>\d{1,3}|two|three|four|five|six|seven|eight|nine|ten) (?=(?:most|least|highest"
    r"|largest|biggest|greatest|lowest"
    r"|smallest|cheapest|fewest|longest|shortest|latest|newest|earliest|oldest|best|top|heaviest|lightest)\b)",
    re.IGNORECASE,
)
_FOCUS = re.compile(
    rf"\b(?:(?P<many>how many|{_NUMBER_OF}|how often|count(?: of| the| all)?\b)|(?P<much>how much)"
    r"|(?P<which>which|whose)|(?P<what>what(?:'s| is| are| was| were)?)"
    r"|(?P<who>who(?:m)?)|(?P<when>when|on (?:what|which) (?:date|day))|(?P<where>where)|(?P<list>list"
    r"|show|name|give|enumerate|display))\b",
    re.IGNORECASE,
)
_COMPARATIVE = re.compile(
    r"\b(?:more|less|fewer|higher|lower|larger|smaller|bigger|longer|shorter|older|younger|cheaper|better|worse|faster|slower"
    r"|taller|heavier|earlier|later|greater|deeper)\b(?! than (?:an? )?[\d$€£])",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|isn't|aren't|wasn't|weren't|haven't|hasn't|don't|didn't|doesn't|except(?: for)?|excluding"
    r"|other than|apart from|without|besides"
    r"|never|no longer|are not|is not|(?<=have )no|(?<=has )no|(?<=had )no|(?<=with )no|(?<=are )no)\b",
    re.IGNORECASE,
)
_NOT_COMPUTED = re.compile(rf"\b(?:{NOT_COMPUTED})\b", re.IGNORECASE)
_FOR_TEXT = re.compile(rf"\b(?:{FOR_TEXT})\b", re.IGNORECASE)
_YES_OR_NO = re.compile(r"(?:is|are|was|were|does|did|has|have|do (?!you))\b", re.IGNORECASE)
_SUPERLATIVE = re.compile(
    r"\b(?:" + "|".join(sorted(map(re.escape, SUPERLATIVES), key=len, reverse=True)) + r")\b", re.IGNORECASE
)
_NTH = re.compile(r"\b(second|third|fourth|fifth|2nd|3rd|4th|5th)[ -]\Z", re.IGNORECASE)
_NTHS = {"second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4, "fifth": 5, "5th": 5}
_VERBS_OF_MONEY = re.compile(
    r"what (?=(?:was|were|did we|have we|has been|is)\b.{0,40}\b(?:invoiced|billed|spent|spend|earned|earn|paid)\b)",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_MONEY = re.compile(r"[€$£]|\b(?:EUR|USD|GBP|CHF|eur|euros?)\b")
_SCALES = {"k": 1000, "thousand": 1000, "m": 10**6, "million": 10**6, "bn": 10**9}
_SIGNS = {"more": ">", "over": ">", "less": "<", "under": "<", "least": ">=", "most": "<=", "exactly": "="}
_OPERATIONS = {"mean": _MEAN, "sum": _SUM, "count": _COUNT, "distinct": _DISTINCT, "difference": _DIFFERENCE}
_FOCI: dict[str, Focus] = {one.split()[-1]: one for one in get_args(Focus) if one}  # by the names in `_FOCUS`
_SMALL = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a question, as it is written, as it is compared, and its place."""

    text: str
    key: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison with one or two numbers: SQL in which {0} is the column, its words, and its place."""

    start: int
    end: int
    sql: str
    numbers: tuple[float, ...]
    words: str


def operations_of(text: str, apart: Sequence[tuple[int, int]] = ()) -> dict[tuple[int, int], str]:
    """Return the operations that a text names by their places, without what other places say: "full blood count"."""
    found = {match.span(): name for name, pattern in _OPERATIONS.items() for match in pattern.finditer(text)}
    return {span: name for span, name in found.items() if not _within(*span, apart)}


@dataclass(frozen=True, slots=True)
class Said:
    """What a question says before it is known what it is asked of; the places are in its text."""

    text: str
    words: tuple[Word, ...]
    periods: tuple[Period, ...]
    comparisons: tuple[Comparison, ...]
    focus: Focus
    focus_end: int
    superlatives: tuple[tuple[int, int, str, str], ...]
    groups: tuple[tuple[int, int], ...]
    negations: tuple[tuple[int, int], ...]
    operations: frozenset[str]
    operation_spans: tuple[tuple[int, int], ...]
    limit: int
    not_said: str
    comparative: str
    nth: int = 1  # "second largest"

    @property
    def computes(self) -> bool:
        """Return whether it asks for something that must be computed over rows."""
        return bool(self.operations) or bool(self.superlatives) or self.focus == "how many"


def read_words(question: str) -> Said | None:
    """Read a question; None if it is too long, has no words, or asks for a text."""
    text = " ".join(question[: LONGEST + 1].split()).rstrip("?!. ")
    if not text or len(text) > LONGEST or _FOR_TEXT.search(text):
        return None
    text = _VERBS_OF_MONEY.sub("how much ", text, count=1)
    bare = _POSSESSIVE.sub(lambda found: " " * len(found[0]), text)
    words = tuple(Word(one[0], _key(one[0]), one.start(), one.end()) for one in _WORD.finditer(bare))
    comparisons = tuple(_comparisons(text))
    taken = [(one.start, one.end) for one in comparisons]
    periods = tuple(
        one
        for one in find_periods(text, apart=bool(_DIFFERENCE.search(text)))
        if not _within(one.start, one.end, taken)
    )
    focus, focus_end = _focus(text)
    superlatives = tuple(
        (one.start(), one.end(), *SUPERLATIVES[one[0].lower()])
        for one in _SUPERLATIVE.finditer(text)
        if not _within(one.start(), one.end(), [*taken, *((two.start, two.end) for two in periods)])
        and not re.match(r" (?:name|names|quarter|half)\b", text[one.end() :], re.IGNORECASE)
    )
    nth = 1
    if superlatives and (before := _NTH.search(text[: superlatives[0][0]])):
        nth, superlatives = _NTHS[before[1].lower()], ((before.start(), *superlatives[0][1:]), *superlatives[1:])
    named = [(name, match.span()) for name, pattern in _OPERATIONS.items() for match in pattern.finditer(text)]
    top = _TOP.search(text)
    count = (top["after"] or top["before"]).lower() if top else "0"
    limit = _SMALL.get(count) or int(count)
    spans = [*(span for _, span in named), *([top.span()] if top else [])]
    comparative = _COMPARATIVE.search(text) if re.search(r"\bor\b", text) else None
    unsaid = _NOT_COMPUTED.search(text)
    return Said(
        text, words, periods, comparisons, focus, focus_end, superlatives,
        tuple(one.span() for one in _GROUP.finditer(text)),
        tuple(one.span() for one in _NEGATION.finditer(text)),
        frozenset(name for name, _ in named), tuple(spans), limit, unsaid[0] if unsaid else "",
        comparative[0].lower() if comparative else "", nth,
    )  # fmt: skip


def _key(word: str) -> str:
    """Return a word as it is compared; "invoiced" is what was done, and no name of an invoice."""
    return "invoiced" if word.lower() == "invoiced" else key_of_word(word)


def _focus(text: str) -> tuple[Focus, int]:
    if asked := _YES_OR_NO.match(text):
        return "whether", asked.end()
    match = _FOCUS.search(text)
    if not match:
        return "", 0
    name = match.lastgroup or ""
    if name == "what" and re.match(
        r" ?(?:'s|is|are|was|were)? ?(?:the )?number of\b", text[match.end() :], re.IGNORECASE
    ):
        end = re.search(r"number of", text[match.end() :], re.IGNORECASE)
        return "how many", match.end() + (end.end() if end else 0)
    if (
        name == "what"
        and match.end() - match.start() == len("what")
        and not re.match(r" (?:is|are|was|were|does|did|do|has|had)\b", text[match.end() :])
    ):
        return "which", match.end()  # what products
    return _FOCI[name], match.end()


def _within(start: int, end: int, spans: Sequence[tuple[int, int]]) -> bool:
    return any(start < other_end and other < end for other, other_end in spans)


def _comparisons(text: str) -> Iterator[Comparison]:
    taken = list[tuple[int, int]]()
    for match in _COMPARISON.finditer(text):
        if _MONTH_AFTER.match(text, match.end("number")):  # "after 4 May"
            continue
        number, second = _value(match["number"], match["scale"]), match["second"]
        around = text[match.start() : match.end() + len(" EUR")]
        years = bool(_YEAR.fullmatch(match["number"])) and match["scale"] is None and not _MONEY.search(around)
        if match["between"]:
            if second is not None and not years:
                taken.append(match.span())
                both = number, _value(second, None)
                words = f"is between {both[0]:,.6g} and {both[1]:,.6g}"
                yield Comparison(*match.span(), "{0} BETWEEN ? AND ?", both, words)
            continue
        if years and match["over"] and match["over"].lower() == "over":
            continue
        end = match.start("joint") if match["joint"] else match.end()
        sign = next(sign for name, sign in _SIGNS.items() if match[name])
        taken.append((match.start(), end))
        yield _compare(match.start(), end, sign, number)
    for match in _OR_MORE.finditer(text):
        if not _within(*match.span(), taken):
            sign = ">=" if match["way"].lower() in {"more", "above", "higher", "over"} else "<="
            end = match.end("scale") if match["scale"] else match.end("number")
            taken.append(match.span())
            yield _compare(
                match.start(), end if match["unit"] else match.end(), sign, _value(match["number"], match["scale"])
            )
    for match in _SIGN.finditer(text):
        yield _compare(*match.span(), match["sign"], _value(match["number"], match["scale"]))


def _compare(start: int, end: int, sign: str, number: float) -> Comparison:
    said = {">": "is more than", "<": "is less than", ">=": "is at least", "<=": "is at most", "=": "is"}[sign]
    return Comparison(start, end, f"{{0}} {sign} ?", (number,), f"{said} {number:,.10g}")


def _value(digits: str, scale: str | None) -> float:
    read = read_number(digits)
    number = read[0] if read else re.sub(r"\D", "", digits)
    return float(number) * _SCALES.get((scale or "").lower(), 1)
