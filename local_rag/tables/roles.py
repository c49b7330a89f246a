"""Give each part of a question its role in a view: conditions, groups, times, and the columns that may be measured."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

from local_rag.tables.conditions import (
    QUANTITY,
    NoConditionError,
    compared_columns,
    comparison_column,
    date_column,
    either_of,
    filled_word,
    in_order,
    is_attribute,
    is_filled,
    joined_values,
    numbers_beside,
    period_condition,
    value_conditions,
)
from local_rag.tables.matches import Match, Matched, is_done
from local_rag.tables.query import Condition, Part, Query, is_one_of, select, where
from local_rag.tables.question_words import Said, operations_of
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.views import View, ViewColumn, values_of
from local_rag.tables.vocabulary import (
    COUNTED,
    FILLERS,
    MONEY_WORDS,
    PERSONS,
    SMALL_WORDS,
    SYNONYMS,
    TIME_UNITS,
    keys_of,
)
from local_rag.text.cell_values import CURRENCY_CODES
from local_rag.text.tokens import key_of_word

_NAMES_OF_PARTS: tuple[Part, ...] = ("month", "quarter", "year")
_PARTS: dict[str, Part] = {key_of_word(f"{name}{end}"): name for name in _NAMES_OF_PARTS for end in ("", "ly")}
_PRICE = keys_of("price rate unit per each discount margin")
STRONG = 0.8  # of a match: all or the last words of a name
YEARS = frozenset({"year", "fy"})
_LIMITS = keys_of("minimum maximum min max most least highest lowest")
_LABELS = YEARS | keys_of("rank ranking position pos no nr number round week age season episode id")
_VERBS = frozenset("did does do was were is are has have had ordered bought".split())  # noqa: SIM905
_WHO = (
    tuple(
        "employe name person consult staff member worker colleagu assigne assign owner keeper respons driver".split()  # noqa: SIM905
    ),
    ("custom", "client", "buyer", "supplier", "vendor"),
    ("manag", "contact", "lead", "head", "rep"),
)
_WHERE = (keys_of("city town location office site place address"), keys_of("country region"))
_NUMBERING = keys_of("no nr id rank ranking")
_NUMBERED = frozenset({"game", "episode", "week", "round", "season", "stage", "lap", "match", "chapter"})
_MOST_NUMBERED = 200  # rows that tell whether a column numbers them
_MOST_WORDS_BETWEEN = 4
_OF_FILLED = frozenset("no missing empty blank lacking lack lacks set filled known entered".split())  # noqa: SIM905
_WHEN = key_of_word("date")
PREPOSITION = re.compile(r"(?:in|for|on|of|during|from|since|within|throughout)\b (?:the )?", re.IGNORECASE)
_STOCK = re.compile(
    r"\b(?:(?P<lacks>out of stock|sold out|not (?:\w+ )?in stock|no longer in stock|not on stock)|(?:in|on) stock)\b",
    re.IGNORECASE,
)
_STOCK_NAMES = keys_of("stock hand inventory available")


class Roles:
    """Give each match of a question its role."""

    def __init__(self, said: Said, view: View, matched: Matched, held: RelationSet) -> None:
        self.said, self.view, self.held = said, view, held
        self.matches = list(matched.matches)
        self._leave_names_whole()
        self.unknown = list(matched.unknown)
        self.used = set[int]()  # starts of matches that have a role
        self.doubts, self.bonus, self.lacks = 0, 0.0, False
        self.parts = self._parts_of_dates()
        self.values, labels = value_conditions(said, self.matches)
        self._replace_values()
        self.used |= labels | {match.start for match, _ in self.values}
        self.used |= {match.start for match in self.matches if match.kind == "name"}
        self.group, self.group_part = self._group()
        self.no_time = ""
        filled = self._filled()
        self.periods = self._periods([one.column for one in filled])
        of_periods = [one.column for one in self.periods]
        self.used |= {match.start for match in self._columns("date") if set(match.columns) & set(of_periods)}
        self.of_columns = self._of_columns()
        self.compared = [*(one for one, _ in self.of_columns), *self._compared(), *self._beside(), *self._in_stock()]
        self.compared += [one for one in filled if one.column not in of_periods]

    def _leave_names_whole(self) -> None:
        """Take no superlative and no operation out of a value or a column: "First aid", "Minimum order"."""
        named = (one for one in self.matches if one.kind == "value" or (one.kind == "column" and one.strength == 1))
        places = [self._place(one) for one in named if one.end - one.start > 1]
        left = frozenset(operations_of(self.said.text, places).values()) & self.said.operations
        self.said = replace(self.said, superlatives=self._superlatives_outside(places), operations=left)

    def _superlatives_outside(self, places: Sequence[tuple[int, int]]) -> tuple[tuple[int, int, str, str], ...]:
        return tuple(one for one in self.said.superlatives if not any(_overlap(place, one[:2]) for place in places))

    # What is named

    def _parts_of_dates(self) -> list[tuple[int, int, Part]]:
        """Take "month", "quarter" and "year" for parts of a date, unless they are columns."""
        if not any(column.kind == "date" for column in self.view.columns):
            return []
        columns = {at for match in self.matches if match.kind == "column" for at in range(match.start, match.end)}
        words = (word for at, word in enumerate(self.said.words) if word.key in _PARTS and at not in columns)
        found = [(word.start, word.end, _PARTS[word.key]) for word in words]
        places = {start for start, _, _ in found}
        self.unknown = [word for word in self.unknown if word.start not in places]
        return found

    def _replace_values(self) -> None:
        """Let what a follow-up names stand for that of the question before it, behind which it is written."""
        at = self.said.text.find("|")
        if at >= 0:
            columns = [one for one in self.matches if one.kind == "column" and one.columns[0].kind == "text"]
            if any(self._place(one)[0] > at for one in columns):
                before = [one for one in columns if self._place(one)[0] < at]
                self.matches = [one for one in self.matches if one not in before]
            later = {one.column.sql for match, one in self.values if self._place(match)[0] > at}
            self.values = [
                pair for pair in self.values if self._place(pair[0])[0] > at or pair[1].column.sql not in later
            ]

    def _place(self, match: Match) -> tuple[int, int]:
        return self.said.words[match.start].start, self.said.words[match.end - 1].end

    def _columns(self, *kinds: str) -> list[Match]:
        """Return the matches of columns without a role yet."""
        free = (match for match in self.matches if match.kind == "column" and match.start not in self.used)
        return [match for match in free if any(one.kind in kinds for one in match.columns)]

    def _group(self) -> tuple[ViewColumn | None, Part]:
        for _, end in self.said.groups:
            for match in self._columns("text", "date", "number"):
                start = self._place(match)[0]
                column = next((one for one in match.columns if one.kind != "number"), match.columns[0])
                if 0 <= start - end <= 1 and (column.kind != "number" or column.keys[-1:] == ("year",)):
                    self.used.add(match.start)
                    return column, ""
            for start, _, part in self.parts:
                if 0 <= start - end <= 1:
                    return date_column(self.view, self.said, None, self.matches), part
        for start, end, part in self.parts:
            if self.said.text[start:end].lower().endswith("ly") or self.said.text[:start].lower().endswith(" a "):
                return date_column(self.view, self.said, None, self.matches), part
        each = re.search(r"\beach\Z", self.said.text)
        if each and self.values:
            return self.values[0][1].column, ""
        return None, ""

    def _filled(self) -> list[Condition]:
        """Return the conditions that a cell is filled or empty, which also say that a thing was done or not."""
        found = list[Condition]()
        for match in self._columns("text", "date"):
            wanted = filled_word(self.said, match, self.view) if match.strength >= STRONG else ""
            dates = [one for one in match.columns if one.kind == "date"]
            columns = dates or [one for one in match.columns if one.kind == "text"]
            if not wanted:
                continue
            if wanted == "has" and self.said.periods and not is_attribute(self.said, match, self.view):
                continue  # the time is that of what was done
            self.used.add(match.start)
            self.lacks |= wanted == "lacks"
            found.append(is_filled(columns[0], negated=wanted == "lacks"))
        self.unknown = [word for word in self.unknown if word.text.lower() not in _OF_FILLED or not found]
        return found

    def _periods(self, apart: Sequence[ViewColumn]) -> list[Condition]:
        found = list[Condition]()
        for period in self.said.periods:
            inside = [match for match in self.matches if _overlap(self._place(match), (period.start, period.end))]
            if any(match.kind in {"column", "value"} for match in inside):
                continue
            try:
                found.append(period_condition(period, self.view, self.said, self.matches, apart))
            except NoConditionError:
                year = period.year or (period.first.year if period.first else None)
                named = str(year) in self.view.names
                if named and not period.is_year:
                    raise  # which part of the year it is of, only its text says
                if not named:
                    self.no_time = PREPOSITION.sub("", self.said.text[period.start : period.end])
        return found

    def _of_columns(self) -> list[tuple[Condition, ViewColumn]]:
        """Return the conditions that compare a column with another, whose words have no other role."""
        found = list(compared_columns(self.said, self.view, self.matches))
        places = [place for _, _, some in found for place in some]
        self.used |= {one.start for one in self.matches if any(_overlap(self._place(one), place) for place in places)}
        self.said = replace(self.said, superlatives=self._superlatives_outside(places))
        self.unknown = [
            one for one in self.unknown if not any(_overlap(place, (one.start, one.end)) for place in places)
        ]
        return [(condition, bound) for condition, bound, _ in found]

    def _compared(self) -> list[Condition]:
        found = list[Condition]()
        for one in self.said.comparisons:
            measures = self._inferred(
                money=bool(re.search(r"[€$£]|\b[A-Z]{3}\b", self.said.text[one.start : one.end])) or None
            )
            column, start = comparison_column(one, self.view, self.said, self.matches, measures)
            if start is not None:
                self.used.add(start)
            found.append(Condition(column, f"({one.sql} AND typeof({{0}}) <> 'text')", one.numbers, one.words))
        return found

    def _beside(self) -> list[Condition]:
        found = numbers_beside(self.said, self.unknown, self.matches)
        self.unknown = [word for word in self.unknown if word not in [one for one, _, _ in found]]
        self.used |= {match.start for _, match, _ in found}
        return [one for _, _, one in found]

    def _in_stock(self) -> list[Condition]:
        """Return the condition of "in stock" and "out of stock" on a number of pieces, or on a yes or no."""
        match = _STOCK.search(self.said.text)
        if not match or any(set(one.column.keys) & _STOCK_NAMES for _, one in self.values):
            return []
        self.unknown = [word for word in self.unknown if not match.start() <= word.start < match.end()]
        self.lacks = bool(match["lacks"])
        columns = [one for one in self.view.columns if set(one.keys) & _STOCK_NAMES]
        if number := next((one for one in columns if one.kind == "number"), None):
            self._use(number)
            sql, words = ("{0} = 0", "is 0") if self.lacks else ("{0} > 0", "is more than 0")
            return [Condition(number, sql, (), words)]
        for one in columns:
            if one.kind == "text" and (yes := values_of(one, self.held).yes):
                return [is_one_of(one, yes, negated=self.lacks)]
        raise NoConditionError

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Return all conditions, the values of one column joined."""
        named = joined_values([one for _, one in self.values])
        return in_order([*named, *either_of(self.periods), *self.compared])

    # What is measured

    def _numbers(self) -> list[ViewColumn]:
        return [one for one in self.view.columns if one.kind == "number" and not (set(one.keys) & YEARS)]

    def _inferred(self, *, money: bool | None = None) -> list[ViewColumn]:
        """Return the columns of numbers that may be meant where none is named, those of money if that is meant."""
        numbers = [one for one in self._numbers() if one.keys and not set(one.keys) & _LABELS]
        if money is None:
            money = any(word.key in MONEY_WORDS for word in self.said.words)
        if money and (of_money := [one for one in numbers if is_money(one)]):
            numbers = of_money
        sums = [one for one in numbers if is_summable(one)] or numbers
        if money and len(sums) > 1:
            totals = [one for one in sums if set(one.keys) & {"total", "net", "amount", key_of_word("amount")}]
            sums = totals or sums
        return sums

    def _measures(self, *, adds_up: bool = False) -> list[ViewColumn]:
        """Return the columns of numbers that may be meant: those that are named, or else what may be inferred."""
        named = sorted(self._columns("number"), key=lambda one: -one.strength)
        strong = [one for one in named if one.strength == named[0].strength] if named else []
        if strong:
            found = list[ViewColumn]()
            for match in strong[:1] if len(strong) > 1 and strong[0].strength < 1 else strong:
                numbers = [one for one in match.columns if one.kind == "number"]
                if adds_up and len(numbers) > 1:
                    numbers = [one for one in numbers if is_summable(one)] or numbers
                found += numbers
            for match in named:
                if set(match.columns) & set(found) or match.strength < STRONG:
                    self.used.add(match.start)
            unsummable = found and adds_up and strong[0].strength < 1 and not any(map(is_summable, found))
            product = self._product() if unsummable else None
            return [product] if product else list(dict.fromkeys(found))
        self.doubts += 1
        inferred = self._inferred()
        if adds_up and inferred and not any(map(is_summable, inferred)):
            product = self._product()
            return [product] if product else []
        return inferred

    def _money(self, *, of_one: bool) -> list[ViewColumn]:
        """Return the columns of money, of which "how much" asks where no column is named: prices for `of_one` thing."""
        self.doubts += 1
        money = [one for one in self._inferred(money=True) if is_money(one)]
        if of_one:
            return [one for one in money if not is_summable(one)]
        product = None if any(map(is_summable, money)) else self._product()
        return [product] if product else money

    def _product(self) -> ViewColumn | None:
        """Return quantity times price, where a table has both and no column of their product."""
        numbers = self._numbers()
        quantities = [one for one in numbers if set(one.keys) & QUANTITY and "price" not in one.keys]
        prices = [one for one in numbers if "price" in one.keys or ("cost" in one.keys and "unit" in one.keys)]
        if len(quantities) != 1 or len(prices) != 1:
            return None
        amount, price = quantities[0], prices[0]
        sql = f"({amount.sql} * {price.sql})"
        held = (*amount.held_in, *price.held_in)
        return ViewColumn(f"{amount.name} \u00d7 {price.name}", "number", price.unit, sql, held, units=price.units)

    # What is asked for

    def _is_next(self, match: Match) -> bool:
        """Return whether a match stands behind the question word, with only small words between."""
        start = self._place(match)[0]
        return all(word.key in SMALL_WORDS for word in self.said.words if self.said.focus_end <= word.start < start)

    def _names_rows(self) -> bool:
        """Return whether what stands after "how many" is the rows: a name of the table, or a word such as "entries"."""
        words = [word for word in self.said.words if word.start >= self.said.focus_end]
        named = {at for match in self.matches if match.kind == "name" for at in range(match.start, match.end)}
        times = [(one.start, one.end) for one in self.said.periods]
        if words and words[0].key in TIME_UNITS:
            return False
        for at, word in enumerate(words[:_MOST_WORDS_BETWEEN]):
            if any(_overlap(time, (word.start, word.end)) for time in times):
                continue
            place = len(self.said.words) - len(words) + at
            if is_done(word) and word.key not in COUNTED:
                continue  # "How many trackers were ordered"
            if place in named or word.key in COUNTED or word.key in self.view.names:
                return True
            if word.key in PERSONS and any(set(column.keys) & set(_WHO[0]) for column in self.view.columns):
                return True
        return self.said.text[: self.said.focus_end].lower().endswith("how often")

    def _subject(self) -> Match | None:
        """Return the column that is asked for: the first one after the question word, with small words between."""
        words = self.said.words
        for match in self.matches:
            start, _ = self._place(match)
            if start < self.said.focus_end or match.kind == "value":
                continue
            if match.kind == "name" and self.said.focus == "how many":
                # "How many training hours" asks for hours.
                behind = (one for one in self.matches if one.kind == "column" and one.start == match.end)
                return next((one for one in behind if one.columns[0].kind == "number"), None)
            between = [word.text.lower() for word in words if self.said.focus_end <= word.start < start]
            if len(between) > _MOST_WORDS_BETWEEN or not _VERBS.isdisjoint(between):
                return None
            if match.kind == "column":
                return match
        return None

    def _is_unique(self, column: ViewColumn) -> bool:
        key = ("unique", self.view.source, column.sql)
        if key not in self.held.known:
            head, _, source = self.view.source.rpartition("|")
            self.held.hold([one.table for one in self.view.relations])
            statement = f"{head}SELECT count({column.sql}), count(DISTINCT {column.sql}) FROM {source}"  # noqa: S608
            [(rows, different)] = self.held.select(statement).rows
            self.held.known[key] = rows == different
        return bool(self.held.known[key])

    def _is_mostly_unique(self, column: ViewColumn) -> bool:
        """Return whether half of the values or more are different, in the rows that are asked for."""
        self.held.hold([one.table for one in self.view.relations])
        query = Query(self.view, "count", conditions=self.conditions)
        statement = select(query, f"count({column.sql}), count(DISTINCT {column.sql})")
        [(rows, different)] = self.held.select(statement, where(query)[1]).rows
        return bool(rows > different >= rows / 2)

    def _counts_up(self, column: ViewColumn) -> bool:
        """Return whether the numbers of a column number its rows, so that their sum means nothing."""
        key = ("counts up", self.view.source, column.sql)
        if key not in self.held.known:
            head, _, source = self.view.source.rpartition("|")
            self.held.hold([one.table for one in self.view.relations])
            statement = f"{head}SELECT {column.sql} FROM {source} ORDER BY {self.view.row}"  # noqa: S608
            numbers = [row[0] for row in self.held.select(statement, most=_MOST_NUMBERED).rows if row[0] is not None]
            words = column.name.lower().split()
            named = "of" not in words and bool(set(column.keys) & _NUMBERING or words[-1] in _NUMBERED)
            steps = [_is_step(one, other) for one, other in pairwise(numbers)]
            self.held.known[key] = named or (len(steps) > 2 and all(steps))  # noqa: PLR2004
        return bool(self.held.known[key])

    def _names_label(self, match: Match, column: ViewColumn) -> bool:
        """Return whether a plural names a column of numbers in the singular, which are names: "wards" of *Ward*."""
        if column.kind != "number" or column.unit or match.end - match.start > 1:
            return False
        word, named = self.said.words[match.start].text.casefold(), column.name.casefold().split()
        return word.endswith("s") and word not in named and word[:-1] in named[-1:]

    def _after(self, end: int) -> int:
        """Return the word after a place, without small ones."""
        matched = {at for match in self.matches for at in range(match.start, match.end)}
        for at, word in enumerate(self.said.words):
            if word.start >= end and (word.key not in FILLERS or word.key in SYNONYMS or at in matched):
                return at
        return len(self.said.words)

    def _who(self) -> ViewColumn | None:
        return self._called(_WHO)

    def _where(self) -> ViewColumn | None:
        return self._called(_WHERE)

    def _called(self, groups: Iterable[Collection[str]]) -> ViewColumn | None:
        """Return the first column of texts that is called by a word of one of the groups, in their order."""
        texts = [one for one in self.view.columns if one.kind == "text"]
        return next((one for words in groups for one in texts if not set(words).isdisjoint(one.keys)), None)

    def _label(self) -> ViewColumn | None:
        return next((one for one in self.view.columns if one.kind == "text"), None)

    def _is_named_date(self) -> bool:
        return any(word.key in {_WHEN, "day"} for word in self.said.words)

    def _use(self, column: ViewColumn) -> None:
        self.used |= {match.start for match in self.matches if column in match.columns}

    def _named_text(self) -> ViewColumn | None:
        for match in self._columns("text"):
            self.used.add(match.start)
            return next(one for one in match.columns if one.kind == "text")
        return None


def _is_step(one: object, other: object) -> bool:
    return isinstance(one, int) and isinstance(other, int) and other - one in (0, 1) and one != other


def _overlap(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]


def names_person(column: ViewColumn) -> bool:
    """Return whether a column's name is a word for people."""
    return bool(set(column.keys) & set(_WHO[0]))


def is_money(column: ViewColumn) -> bool:
    """Return whether a column holds amounts of money, by its unit or its name."""
    unit = column.unit
    return (
        bool(column.units)
        or unit[-3:] in CURRENCY_CODES
        or unit in {"€", "$", "£"}
        or bool(set(column.keys) & MONEY_WORDS)
    )


def is_duration(column: ViewColumn) -> bool:
    """Return whether a column holds times, by its unit."""
    return key_of_word(column.unit) in TIME_UNITS


def is_summable(column: ViewColumn) -> bool:
    """Return whether the sum of a column means something: not of prices, rates, shares and limits."""
    return (
        not set(column.keys) & _LIMITS
        and column.unit != "%"
        and not (set(column.keys) & _PRICE and not {"total", "line"} & set(column.keys))
    )
