"""Make conditions on columns of the values, times and comparisons that a question names."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import date, timedelta
from typing import Literal

from local_rag.tables.matches import Match, is_done
from local_rag.tables.periods import Period
from local_rag.tables.query import AFTER_DATES, Condition, is_one_of, marks, value_of_sql
from local_rag.tables.question_words import Comparison, Said, Word
from local_rag.tables.views import View, ViewColumn
from local_rag.tables.vocabulary import COUNTED, FILLERS, SMALL_WORDS, keys_of
from local_rag.text.tokens import key_of_word

_NEAR = 28  # characters between a name and the comparison of its numbers
_LOOK_BACK = 40  # characters
QUANTITY = keys_of("quantity qty units pieces pcs hand stock inventory")
_WITHOUT = re.compile(
    r"\b(?:no|without(?: an?| any| the)?|lack(?:s|ing)?(?: an?| the)?|missing(?: an?| the)?"
    r"|(?:not|n't) (?:have|got)(?: an?| any)?) \Z",
    re.IGNORECASE,
)
_WITH = re.compile(r"\b(?:with|ha(?:s|ve|ving|d))(?: got)? (?:an?|any|some) \Z", re.IGNORECASE)
_MISSING = re.compile(
    r" (?:(?:is|are|was|were) )?(?:missing|empty|blank|lacking|not (?:given|set|filled(?: in)?|known|entered))\b",
    re.IGNORECASE,
)
_JOINS = re.compile(r"[,;/&+|]|\b(?:and|or|nor|than|versus|vs|both|und|oder|et|ou)\b", re.IGNORECASE)
_GIVEN = re.compile(r" (?:is|are|was|were) (?:given|set|filled(?: in)?|known|recorded|entered)\b", re.IGNORECASE)
_THAN = re.compile(
    r"\b(?:(?P<after>after|later than|past|beyond)|(?P<before>before|(?:earlier|sooner) than|ahead of)"
    r"|(?P<over>(?:more|greater|higher|larger|longer) (?:\w{1,20} ){0,2}than|over|above|exceed(?:s|ed|ing)?)"
    r"|(?:less|fewer|lower|smaller|shorter) (?:\w{1,20} ){0,2}than|under|below)"
    r"(?: (?:the|its|their|his|her|our|(?:it|they) (?:is|was|are|were)))?(?: own)? ",
    re.IGNORECASE,
)
_OF_DATE = re.compile(r" (?:dates?|on|at|day)\b", re.IGNORECASE)
_FIRST_YEAR = 1000  # a smaller number of years is a duration
_NEGATED_WITHIN = 24  # characters between a negation and what it negates
_YEAR_KEYS = {key_of_word("year"), key_of_word("fiscal"), "fy"}
_MAIN_DATES = ("date", "order", "day", "invoic", "created", "issu", "start", "sold", "sale")
_DUE, _PAID, _DATE = key_of_word("due"), key_of_word("paid"), key_of_word("date")
_PAST = {key_of_word(verb): key_of_word(past) for verb, past in (("pay", "paid"), ("send", "sent"), ("buy", "bought"))}
_LATE = re.compile(r"\b(?:(?P<late>(?:too )?late)|(?:on|in) time)\b", re.IGNORECASE)
_HOW_LATE = re.compile(r"\bhow (?:much )?(?:late|long|far|soon|early)\b|\b(?:day|week|hour|month)s\b", re.IGNORECASE)
_PROMISED = keys_of("due deadline promised agreed")
_DONE = keys_of("paid delivered arrived received returned done finished completed closed shipped sent submitted")
_WEEK, _LEAP_YEAR = key_of_word("week"), 2024


class NoConditionError(Exception):
    """What is named cannot be a condition on this view."""


def value_conditions(said: Said, matches: Sequence[Match]) -> tuple[list[tuple[Match, Condition]], set[int]]:
    """Return a condition for each value that is named, with the starts of column names that only say whose they are.

    Two parts of a value are named for one thing: "60 degree wash in Elm Court" for "Wash 60 degrees (Elm Court)".
    Raise NoConditionError where they are parts of two values.
    """
    found, labels = list[tuple[Match, Condition]](), set[int]()
    for at, match in enumerate(matches):
        if match.kind != "value":
            continue
        beside = (one for one in matches[max(0, at - 1) : at + 2] if one.kind == "column")
        beside = (one for one in beside if max(one.start - match.end, match.start - one.end) in {0, 1})
        label = next((one for one in beside if set(one.columns) & set(match.columns)), None)
        choice = 0
        if label:
            labels.add(label.start)
            choice = next(number for number, column in enumerate(match.columns) if column in label.columns)
        elif before := next((one for one in found if one[1].column in match.columns), None):
            choice = match.columns.index(before[1].column)
        column, values = match.columns[choice], match.values[choice]
        negated = is_negated(said, match) and not _is_spent(said, match, found, matches)
        for number, (other, condition) in enumerate(() if negated else found):
            between = said.text[said.words[other.end - 1].end : said.words[match.start].start]
            same = condition.column == column and "NOT" not in condition.sql
            if same and min(match.strength, other.strength) < 1 and not _JOINS.search(between):
                values = tuple(one for one in values if one in condition.values)
                if not values:
                    raise NoConditionError
                found[number] = other, is_one_of(column, values, negated=False)
        found.append((match, is_one_of(column, values, negated=negated)))
    return found, labels


def is_negated(said: Said, match: Match) -> bool:
    """Return whether a negation stands shortly before what is named."""
    start = said.words[match.start].start
    before = [end for _, end in said.negations if end <= start]
    if not before:
        return False
    between = said.text[before[-1] : start]
    return len(between) <= _NEGATED_WITHIN and not re.search(r"[,;]|\b(?:but|and)\b(?! \w+\Z)", between)


def _is_spent(said: Said, match: Match, found: Sequence[tuple[Match, Condition]], matches: Sequence[Match]) -> bool:
    """Return whether a negation before a value already belongs to another column: "not passed First aid"."""
    start = said.words[match.start].start
    negation = max(end for _, end in said.negations if end <= start)
    done = [one for one in matches if one.kind == "column" and is_done(said.words[one.start])]
    if any(negation <= said.words[one.start].start < start for one in done):
        return True
    between = [one for one, _ in found if negation <= said.words[one.start].start < start]
    return bool(between) and not set(between[-1].columns) & set(match.columns)


def joined_values(conditions: Sequence[Condition]) -> list[Condition]:
    """Join the conditions on one column: a row has one of the values that are named."""
    by_column: dict[tuple[str, bool], list[Condition]] = {}
    for one in conditions:
        by_column.setdefault((one.column.sql, "NOT" in one.sql), []).append(one)
    return [
        some[0]
        if len(some) == 1
        else is_one_of(
            some[0].column, tuple(dict.fromkeys(value for one in some for value in one.values)), negated=negated
        )
        for (_, negated), some in by_column.items()
    ]


def is_filled(column: ViewColumn, *, negated: bool) -> Condition:
    """Return the condition that a column has a value, or none."""
    if negated:
        return Condition(column, "{0} IS NULL", (), "is empty")
    return Condition(column, "{0} IS NOT NULL", (), "is not empty")


def filled_word(said: Said, match: Match, view: View) -> Literal["", "has", "lacks"]:
    """Return whether a question wants a column filled or empty: "without a driver", "paid" of a date of payment."""
    word, last = said.words[match.start], said.words[match.end - 1]
    before, after = said.text[: word.start][-_LOOK_BACK:], said.text[last.end :]
    if _WITHOUT.search(before) or _MISSING.match(after):
        return "lacks"
    if _WITH.search(before) or _GIVEN.match(after):
        return "has"
    if not is_done(word) or _OF_DATE.match(after):
        return ""
    if is_negated(said, match):
        return "lacks"
    if said.focus in {"who", "when"} and not is_attribute(said, match, view):
        return ""
    return "has"


def is_attribute(said: Said, match: Match, view: View) -> bool:
    """Return whether what is named stands before a name of the rows: "paid invoices"."""
    following = said.words[match.end] if match.end < len(said.words) else None
    if following is None or following.key in SMALL_WORDS:
        return False
    return following.key in view.names or following.key in COUNTED


def period_condition(
    period: Period, view: View, said: Said, matches: Sequence[Match], apart: Collection[ViewColumn] = ()
) -> Condition:
    """Return the condition that a date lies in a period; raise NoConditionError if no column is a date.

    The columns `apart` are not meant.
    """
    if column := date_column(view, said, period, matches, apart):
        return _in_dates(period, column)
    years = [one for one in view.columns if set(one.keys) & _YEAR_KEYS]
    if years and period.first and (period.after is None or period.is_year or period.first.month == 1):
        column = years[0]
        if period.is_year:
            number = "CAST({0} AS INTEGER) = ?" if column.kind == "number" else "substr({0}, 1, 4) = ?"
            value: object = period.year if column.kind == "number" else str(period.year)
            return Condition(column, number, (value,), f"is {period.year}")
        first, last = period.first.year, period.after.year - 1 if period.after else 9999
        return Condition(column, "CAST({0} AS INTEGER) BETWEEN ? AND ?", (first, last), f"is {period.words}")
    if years and period.after and not period.first:
        return Condition(years[0], "CAST({0} AS INTEGER) < ?", (period.after.year,), f"is {period.words}")
    raise NoConditionError


def _in_dates(period: Period, column: ViewColumn) -> Condition:
    days, is_week, written = _days(period), _WEEK in column.keys, list[str]()
    if is_week:  # the week that began on the day, or up to six days before
        days = [day - timedelta(back) for day in days for back in range(7)]
    if period.day:
        part, written = "6, 5", [f"{day:%m-%d}" for day in days]
    elif days and is_week:
        part, written = "1, 10", [f"{day:%Y-%m-%d}" for day in days]
    elif period.months:
        part, written = "6, 2", [f"{one:02}" for one in period.months]
    if written:
        values = tuple(dict.fromkeys(written))
        return Condition(column, f"substr({{0}}, {part}) IN ({marks(values)})", values, f"is {period.words}")
    parts, parameters = list[str](), list[str]()
    if period.first:
        parts.append("{0} >= ?")
        parameters.append(period.first.isoformat())
    # A cell that is no date, such as "open", comes after all dates.
    parts.append("{0} < ?")
    parameters.append(period.after.isoformat() if period.after else AFTER_DATES)
    return Condition(column, f"({' AND '.join(parts)})", tuple(parameters), f"is {period.words}")


def _days(period: Period) -> list[date]:
    """Return the day that a period is; the day of any year in a leap year and, if it has it, in another one."""
    if period.day:
        day = date(_LEAP_YEAR, period.months[0], period.day)
        return [day, *([day.replace(year=_LEAP_YEAR - 1)] if (day.month, day.day) != (2, 29) else [])]
    return [period.only_day] if period.only_day else []


def date_column(
    view: View,
    said: Said,
    period: Period | None = None,
    matches: Sequence[Match] = (),
    apart: Collection[ViewColumn] = (),
) -> ViewColumn | None:
    """Return the column of dates that a question means: the one it names, or else the main one."""
    dates = [one for one in view.columns if one.kind == "date" and one not in apart]
    if len(dates) <= 1:
        return next(iter(dates), None)
    keys = {word.key for word in said.words}
    keys |= {_PAST[key] for key in keys & _PAST.keys()}
    own = {column: {*column.keys, *column.own_keys} & keys - {"date", "dated", "on", "at", "in"} for column in dates}
    # "When is invoice 7 due?" names the row by a word of one column, and asks for another.
    special = [column for column in dates if own[column] - view.names - _other_words(view)]
    if special:
        return max(special, key=lambda column: len(own[column]))
    named = {column for match in matches if match.kind == "column" for column in match.columns if column in dates}
    if len(named) == 1 and not own[next(iter(named))] <= view.names:
        return named.pop()
    for name in _MAIN_DATES:
        for column in dates:
            if name in column.keys and _DUE not in column.keys and _PAID not in column.keys:
                return column
    return dates[0]


def _other_words(view: View) -> set[str]:
    return {
        key
        for column in view.columns
        if column.kind != "date" and not column.name.lower().endswith(" by")
        for key in column.keys
    }


def comparison_column(
    one: Comparison, view: View, said: Said, matches: Sequence[Match], measures: Sequence[ViewColumn]
) -> tuple[ViewColumn, int | None]:
    """Return the column whose numbers are compared, with the place of the words that name it.

    Raise NoConditionError where none is certain: "more than 5 orders" compares no column.
    """
    words = said.words
    if max(one.numbers) < _FIRST_YEAR:
        measures = [column for column in measures if not set(column.keys) & _YEAR_KEYS]
        matches = [match for match in matches if not any(set(column.keys) & _YEAR_KEYS for column in match.columns)]
    for match in matches:
        numbers = [column for column in match.columns if column.kind == "number"] if match.kind == "column" else []
        gap = words[match.start].start - one.end
        if numbers and 0 <= gap <= 2:  # noqa: PLR2004
            return numbers[0], match.start
    after = next((word for word in words if word.start >= one.end), None)
    apart = after is None or not said.text[one.end : after.start].isspace() or after.key in FILLERS | COUNTED_AFTER
    if not apart and after is not None and not is_unit_of(after.text, measures):
        raise NoConditionError  # "more than 5 orders" compares no column
    near = [
        (gap, column, match.start)
        for match in matches
        if match.kind == "column" and 0 <= (gap := one.start - words[match.end - 1].end) <= _NEAR
        for column in match.columns
        if column.kind == "number"
    ]
    if near:
        return min(near, key=lambda found: found[0])[1:]
    if len(measures) == 1:
        return measures[0], None
    raise NoConditionError


def compared_columns(
    said: Said, view: View, matches: Sequence[Match]
) -> Iterator[tuple[Condition, ViewColumn, list[tuple[int, int]]]]:
    """Yield conditions that a column exceeds another, or not: "below the minimum stock", "paid after the due date".

    With each come the other column, and the places of the words. Raise NoConditionError where it is not certain
    which column is meant to be below.
    """
    for than in _THAN.finditer(said.text):
        dated = bool(than["after"] or than["before"])
        columns = [one for one in view.columns if one.kind == ("date" if dated else "number")]
        columns = [one for one in columns if not set(one.keys) & _YEAR_KEYS]
        following, end = [word for word in said.words if word.start >= than.end()], than.end()
        bounds = columns
        for word in following:
            if not (narrowed := [one for one in bounds if word.key in one.keys]):
                if dated and end > than.end() and word.key == _DATE:
                    end = word.end
                break
            bounds, end = narrowed, word.end
        if end == than.end() or len(bounds) != 1:
            continue
        [bound] = bounds
        others = [one for one in columns if one != bound]
        named = [(match, rest) for match in matches if (rest := [one for one in match.columns if one in others])]
        named = [one for one in named if one[0].kind == "column" and said.words[one[0].start].start < than.end()]
        places = [(than.start(), end)]
        if named:
            match, others = named[-1]
            places.append((said.words[match.start].start, said.words[match.end - 1].end))
        elif dated:
            others = [one for one in others if set(one.keys) & _DONE]
        else:
            others = [one for one in others if one.unit == bound.unit]
            others = [one for one in others if set(one.keys) < set(bound.keys)] or others
            others = [one for one in others if set(one.keys) & QUANTITY] if len(others) > 1 else others
        sign, words = ("<", "is before" if dated else "is less than")
        if than["after"] or than["over"]:
            sign, words = (">", "is after" if dated else "is more than")
        yield _exceeds(said, others, sign, bound, words), bound, places
    yield from _lateness(said, view, matches)


def _lateness(
    said: Said, view: View, matches: Sequence[Match]
) -> Iterator[tuple[Condition, ViewColumn, list[tuple[int, int]]]]:
    """Yield the condition that something was done late, where one date says until when, and another when."""
    late, dates = _LATE.search(said.text), [one for one in view.columns if one.kind == "date"]
    if late is None or any(said.words[one.start].start < late.end() <= said.words[one.end - 1].end for one in matches):
        return
    bounds, done = ([one for one in dates if set(one.keys) & words] for words in (_PROMISED, _DONE))
    named = [one for one in done if any(match.kind == "column" and one in match.columns for match in matches)]
    if len(bounds) == 1 and done:
        sign, words = (">", "is after") if late["late"] else ("<=", "is not after")
        yield _exceeds(said, named or done, sign, bounds[0], words), bounds[0], [late.span()]


def _exceeds(said: Said, columns: Sequence[ViewColumn], sign: str, bound: ViewColumn, words: str) -> Condition:
    """Return the condition that the only one of columns exceeds another; a row that lacks one of them does not."""
    if len(columns) != 1 or (bound.kind == "date" and (said.negations or _HOW_LATE.search(said.text))):
        raise NoConditionError
    sides = (value_of_sql(one).replace("{", "{{").replace("}", "}}") for one in (columns[0], bound))
    return Condition(columns[0], f" {sign} ".join(sides), (), f"{words} *{bound.name}*")


COUNTED_AFTER = keys_of("and or each with")


def is_unit_of(word: str, columns: Sequence[ViewColumn]) -> bool:
    """Return whether a word is the unit of one of the columns, or a currency."""
    units = {one.unit.lower() for one in columns}
    name = word.lower().rstrip("s")
    return word.lower() in units or name in units or name in {"eur", "euro", "usd", "dollar", "pound", "gbp", "chf"}


def numbers_beside(
    said: Said, unknown: Sequence[Word], matches: Sequence[Match]
) -> list[tuple[Word, Match, Condition]]:
    """Return a condition for each number that stands beside the name of a column of numbers: "a warranty of 24"."""
    found = list[tuple[Word, Match, Condition]]()
    for word in unknown:
        if not word.text.isdigit():
            continue
        for match in matches:
            numbers = [column for column in match.columns if column.kind == "number"] if match.kind == "column" else []
            last = said.words[match.end - 1]
            between = said.text[last.end : word.start].strip().lower() if last.end <= word.start else None
            if numbers and between in {"", "of", "is", "=", "was", "with"}:
                value = int(word.text)
                found.append((word, match, Condition(numbers[0], "{0} = ?", (value,), f"is {value}")))
                break
    return found


def either_of(conditions: Sequence[Condition]) -> list[Condition]:
    """Join conditions on one column, any of which may hold: two months."""
    by_column: dict[str, list[Condition]] = {}
    for one in conditions:
        by_column.setdefault(one.column.sql, []).append(one)
    return [
        some[0]
        if len(some) == 1
        else Condition(
            some[0].column,
            f"({' OR '.join(one.sql for one in some)})",
            tuple(value for one in some for value in one.parameters),
            " or ".join([some[0].words, *(one.words.removeprefix("is ") for one in some[1:])]),
        )
        for some in by_column.values()
    ]


def in_order(conditions: Iterable[Condition]) -> tuple[Condition, ...]:
    """Return conditions without doubles."""
    return tuple({(one.column.sql, one.sql, one.parameters): one for one in conditions}.values())
