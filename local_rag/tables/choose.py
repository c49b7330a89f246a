"""Choose the query that a question means in a view: operation, column, conditions and groups, all from closed lists.

A question is understood only if each of its words is something that is known: a name, a value, a time, an operation, or
a word that means nothing by itself. Where several columns may be meant, all readings are returned.
"""

import re
from collections.abc import Iterator
from itertools import pairwise, permutations

from local_rag.tables.conditions import QUANTITY, NoConditionError, date_column, in_order, joined_values
from local_rag.tables.matches import Match, Matcher
from local_rag.tables.meanings import RATIO, Extremes, NotReadError, Reading
from local_rag.tables.query import Condition, Direction, Operation, Query
from local_rag.tables.question_words import Said
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.roles import STRONG, YEARS, is_duration, is_summable, names_person
from local_rag.tables.views import View, ViewColumn, of_part, of_year, values_of
from local_rag.tables.vocabulary import MONEY_WORDS, TIME_UNITS

_THERE = re.compile(r"(?:(?:is|are|was|were) there|(?:do|did) we have|have we)\b", re.IGNORECASE)
_THAN = re.compile(r"(?<!other )(?<!rather )\bthan\b|\b(?:over|under|above|below) budget\b", re.IGNORECASE)
_GROWS = re.compile(r"\b(?:change|increase|decrease|rise|drop|grow|growth|fell|rose|grew)\b", re.IGNORECASE)
_LESS = re.compile(r"\b(?:less|fewer|lower|smaller|shorter|cheaper)\b", re.IGNORECASE)
_EXISTS = re.compile(
    r"\b(?:are|is) (?:there|in|listed)\b|\bdo we (?:have|sell|offer|use)\b"
    r"|\b(?:list|show|all|every|different|exist|distinct)\b",
    re.IGNORECASE,
)
_BESIDE = re.compile(
    r"\b(?:after|before|above|below|beneath|behind|next to|following|follows|followed|preced\w{1,5}"
    r"|on top of|under) (?:the )?",
    re.IGNORECASE,
)
_PRONOUN = re.compile(
    r"(?<!before )(?<!after )(?<!than )\b(?:(?:it|they|them|he|she|him)|(?P<whose>its|their|his|her))\b", re.IGNORECASE
)
_PRICE_OF = re.compile(r"how much (?:is|are|was|were) (?:an? |the |one )", re.IGNORECASE)
_ONLY = re.compile(r"\bonly\b", re.IGNORECASE)
_OF_TOP = re.compile(r"\b(?:of|for|by|in) (?:the |our )?(?:top|first|last|bottom|best) (?:\d|\w{3,5}\b)", re.IGNORECASE)
_AMOUNT = re.compile(
    r"\b(?:spend|spent|earn(?:ed)?|invoiced|bill(?:ed)?|pay|paid|charge[ds]?|revenue|turnover|sales|hours|quantity)\b",
    re.IGNORECASE,
)


def readings(said: Said, view: View, held: RelationSet) -> list[Reading]:
    """Return the meanings of a question in a view, none if it cannot be read there."""
    view = as_asked(view, said)
    matched = Matcher(said, held).match(view)
    try:
        return list(_Chooser(said, view, matched, held).read())
    except (NoConditionError, NotReadError):
        return []


def as_asked(view: View, said: Said) -> View:
    """Return a view for the year or part that a question names, where columns are of years or parts."""
    years = [one.year for one in said.periods if one.is_year]
    if len(said.periods) == len(years) == 1 and years[0]:
        view = of_year(view, years[0])
    return of_part(view, [word.key for word in said.words])


class _Chooser(Extremes):
    """Choose the queries that a question means from the roles of its parts."""

    def read(self) -> Iterator[Reading]:
        """Yield the meanings of the question."""
        said, operations = self.said, self.said.operations
        self._require_column()
        unnegated = said.negations and not self.lacks and not any("NOT" in one.sql for _, one in self.values)
        compares = (
            _THAN.search(said.text) and not (said.comparisons or self.of_columns) and "difference" not in operations
        )
        ratios = list(RATIO.finditer(said.text)) if self.group is None else []
        several = ratios and any(one.strength >= STRONG for one in self._columns("number")[1:])
        if unnegated or compares or several or any(map(self._is_ratio, ratios)):
            raise NotReadError
        if self._goes_by_order() or self._adds_columns() or self._is_vague() or self._points_elsewhere():
            raise NotReadError
        if said.focus == "whether":
            yield from self._whether()
        elif self._compares_numbers() and (said.focus == "how much" or "difference" in operations):
            yield self._exceeds()
        elif "difference" in operations:
            yield from self._difference()
        elif said.superlatives or said.limit:
            yield from self._extreme()
        elif said.comparative:
            yield from self._which_of_two()
        elif said.focus == "how many" or ("count" in operations and "mean" not in operations):
            yield from self._how_many()
        elif "mean" in operations:
            yield from self._aggregate("mean")
        elif "sum" in operations:
            yield from self._aggregate("sum")
        elif self.group and (measures := self._measures(adds_up=True)):
            yield from self._each(measures, lambda one: self._query("sum" if is_summable(one) else "mean", one))
        elif said.focus in {"which", "list", "who", "what", "when", "where", "how much", ""}:
            yield from self._look_up()

    def _compares_numbers(self) -> bool:
        return any(bound.kind == "number" for _, bound in self.of_columns)

    def _goes_by_order(self) -> bool:
        """Return whether it asks for what stands before or behind a row: "the city after Tainan"."""
        ends = [found.end() for found in _BESIDE.finditer(self.said.text)]
        values = (self._place(one)[0] for one in self.matches if one.kind == "value")
        return any(0 <= place - end <= len("the ") for place in values for end in ends)

    def _is_vague(self) -> bool:
        """Return whether it asks for no condition: "only charter", "the sum of the top 10", "in 1996 and 1997"."""
        said = self.said
        if _ONLY.search(said.text) and not self.conditions and not said.limit:
            return True
        if said.focus == "how many" and any(self._is_part_of_text(match, one.column) for match, one in self.values):
            return True
        if "sum" in said.operations and said.limit > 1 and _OF_TOP.search(said.text):
            return True
        both = len(said.periods) > 1 and re.search(r"\band\b", said.text[said.periods[0].end : said.periods[1].start])
        return bool(both) and said.focus in {"who", "which", "list"} and not said.operations

    def _points_elsewhere(self) -> bool:
        """Return whether a pronoun stands for something that the question does not say: "What do we pay them?"."""
        places = [(one.kind, *self._place(one)) for one in self.matches]
        for found in _PRONOUN.finditer(self.said.text):
            before = [kind for kind, _, end in places if end <= found.start()]
            inside = any(start <= found.start() < end for _, start, end in places)
            if not (inside or "value" in before or (found["whose"] and before)):
                return True
        return False

    def _is_part_of_text(self, match: Match, column: ViewColumn) -> bool:
        """Return whether words are a part of texts that each row has its own, which other rows may say otherwise."""
        return match.strength < STRONG and self._is_unique(column)

    def _adds_columns(self) -> bool:
        """Return whether two columns of numbers are to be added: "apps and goals"."""
        places = [self._place(one) for one in self._columns("number") if one.strength >= STRONG]
        between = (self.said.text[one[1] : other[0]] for one, other in pairwise(places))
        return "difference" not in self.said.operations and any(one.strip().lower() == "and" for one in between)

    def _aggregate(self, operation: Operation) -> Iterator[Reading]:
        measures = self._measures(adds_up=operation == "sum")
        if not measures or any(set(one.keys) & YEARS for one in measures):
            raise NotReadError
        yield from self._each(measures, lambda one: self._query(operation, one))

    def _how_many(self) -> Iterator[Reading]:  # noqa: PLR0912
        """Count rows or different values, or sum what is named after "how many"."""
        said = self.said
        if "mean" in said.operations:
            yield from self._aggregate("mean")
            return
        subject, distinct = self._subject(), "distinct" in said.operations
        is_of_some = distinct or self.conditions or self.group is not None
        if not is_of_some and subject is not None and self._is_beside(subject):
            raise NotReadError
        if subject is None:
            first = self._first_asked()
            of_value = first is not None and first.kind == "value" and self._is_next(first)
            quantities = [one for one in self._numbers() if set(one.keys) & QUANTITY and is_summable(one)]
            if self._names_rows():
                yield self._done(self._query("count"))
            elif of_value and any(match.strength >= STRONG for match in self._columns("number")):
                yield from self._each(self._measures(adds_up=True), lambda one: self._query("sum", one))
            elif of_value and len(quantities) == 1:
                yield self._done(self._query("sum", quantities[0]))
            else:
                raise NotReadError
            return
        self.used.add(subject.start)
        if self._is_looked_up(subject):
            raise NotReadError  # "How many cylinders does the 5/9 have?", where a cell says "2 inline"
        numbers = [one for one in subject.columns if one.kind == "number"]
        if numbers:
            if self._names_label(subject, numbers[0]):
                raise NotReadError
            if set(numbers[0].keys) & YEARS:
                yield self._done(self._query("distinct", numbers[0]))
                return
            if self._counts_up(numbers[0]):
                yield self._done(self._query("count"))
                return
            if not distinct:
                columns = [one for one in numbers if is_summable(one)] or numbers
                yield from self._each(columns, lambda one: self._query("sum", one))
                return
        for column in [one for one in subject.columns if one.kind != "number"][:1]:
            weak = subject.strength < 0.6 and self._names_rows()  # noqa: PLR2004
            if not distinct and (weak or any(one.column == column for one in self.conditions)):
                yield self._done(self._query("count"))
            elif (
                not distinct
                and column is self._label()
                and not self._is_unique(column)
                and self._is_mostly_unique(column)
            ):
                raise NotReadError  # rows or different values
            elif distinct or not self._is_unique(column) or self.view.kind == "join" or self.compared:
                yield self._done(self._query("distinct", column))
            elif self.conditions and column is not self._label() and not self._names_rows():
                raise NotReadError  # its cells may hold several
            else:
                yield self._done(self._query("count"))

    def _is_beside(self, subject: Match) -> bool:
        """Return whether rows only mention what is counted: there may be more vets than a rota names, or hours."""
        columns = subject.columns
        if columns[0].kind == "number":
            return "sum" not in self.said.operations and not self._counts_up(columns[0])
        return columns[0] is not self._label() and not any(set(one.keys) & self.view.names for one in columns)

    def _first_asked(self) -> Match | None:
        """Return what is named first behind the question word."""
        return next((one for one in self.matches if self._place(one)[0] >= self.said.focus_end), None)

    def _is_looked_up(self, subject: Match) -> bool:
        """Return whether a column of texts is asked for of one row, so that its cell says how many."""
        if any(one.kind == "number" for one in subject.columns):
            return False
        of_number = any(
            {"number", "no", "count"} & set(one.keys[:1]) and "of" in one.keys[:2] for one in subject.columns
        )
        label = self._label()
        unique = any(len(one.values) == 1 and one.column == label and self._is_unique(label) for _, one in self.values)
        return of_number or (unique and not any(one.column in subject.columns for one in self.conditions))

    def _require_column(self) -> None:
        """Raise NotReadError if a value stands where "which" asks for a column: "which city" among kinds of places."""
        words, first = self.said.words, self._first_asked()
        if self.said.focus != "which" or first is None or first.kind != "value":
            return
        before = [word for word in words if self.said.focus_end <= word.start < self._place(first)[0]]
        after = next((one for one in self.matches if one.start == first.end), None)
        if not before and (after is None or after.kind == "value"):
            raise NotReadError

    def _which_of_two(self) -> Iterator[Reading]:
        """Return which of the values that are named has more or less: "Which has more seats, Oslo or Leeds?"."""
        columns = {one.column for _, one in self.values}
        named = [match for match in self._columns("number") if match.strength >= STRONG]
        if len(columns) != 1 or len(self.values) < 2 or len(named) != 1:  # noqa: PLR2004
            raise NotReadError
        [subject], measure = columns, named[0].columns[0]
        self._use(measure)
        self._use(subject)
        direction: Direction = (
            "min" if self.said.comparative in {"less", "fewer", "lower", "smaller", "shorter", "cheaper"} else "max"
        )
        operation: Operation = "sum" if is_summable(measure) else "mean"
        yield self._done(self._query(operation, measure, group=subject, direction=direction, limit=1))

    # Differences

    def _difference(self) -> Iterator[Reading]:
        said = self.said
        if len(said.superlatives) > 1 and {one[2] for one in said.superlatives} == {"max", "min"}:
            for measure in self._measures():
                yield self._done(self._query("max", measure), self._query("min", measure))
            return
        first, second = self._operands()
        if _GROWS.search(said.text) or _LESS.search(said.text):
            first, second = second, first
        yield self._done(first, second, absolute=bool(re.search(r"\bdiffer", said.text, re.IGNORECASE)))

    def _exceeds(self) -> Reading:
        """Ask by how much one column of the rows exceeds another: "By how much is Sales over its budget?"."""
        [(condition, bound), *others] = self.of_columns
        if others or not self.values:
            raise NotReadError
        rest = tuple(one for one in self.conditions if one != condition)
        both = [self._query("sum", column, conditions=rest) for column in (condition.column, bound)]
        first, second = both if ">" in condition.sql else reversed(both)
        return self._done(first, second)

    def _operands(self) -> tuple[Query, Query]:
        """Return the two queries whose values are subtracted: of two values, two columns, or two periods."""
        values = self.values
        columns = [match for match in self._columns("number") if match.strength >= STRONG]
        pairs = (pair for pair in permutations(values, 2) if pair[0][0].start < pair[1][0].start)
        if pair := next((pair for pair in pairs if pair[0][1].column == pair[1][1].column), None):
            (first, one), (second, other) = pair
            rest = [condition for match, condition in values if match not in (first, second)]
            if len(self.periods) > 1:
                raise NotReadError
            more = (*joined_values(rest), *self.periods, *self.compared)
            return self._pair((one, *more), (other, *more))
        if len(columns) == 2:  # noqa: PLR2004
            self.used |= {match.start for match in columns}
            return self._query("sum", columns[0].columns[0]), self._query("sum", columns[1].columns[0])
        if len(self.periods) == 2:  # noqa: PLR2004
            rest_of = (*joined_values([condition for _, condition in values]), *self.compared)
            return self._pair((self.periods[0], *rest_of), (self.periods[1], *rest_of))
        raise NotReadError

    def _pair(self, one: tuple[Condition, ...], other: tuple[Condition, ...]) -> tuple[Query, Query]:
        named = self._columns("number")
        counts = bool(re.search(r"\bhow many (?:more|fewer)\b|number of", self.said.text, re.IGNORECASE))
        if named and self._names_label(named[0], named[0].columns[0]):
            raise NotReadError
        operation: Operation = "count"
        measures = [None] if counts and not named else self._measures(adds_up=True)
        if len(measures) != 1:
            raise NotReadError
        if measures[0] is None:
            self.used |= {match.start for match in self._columns("text")[:1]}
        else:
            operation = "mean" if "mean" in self.said.operations or not is_summable(measures[0]) else "sum"
        first, second = (self._query(operation, measures[0], conditions=some) for some in (one, other))
        return first, second

    # Yes or no

    def _whether(self) -> Iterator[Reading]:
        """Ask whether rows that are named have what stands behind them, or whether there are such rows."""
        if self.said.operations or self.said.superlatives or self.group or re.search(r"\bor\b", self.said.text):
            raise NotReadError
        named = sorted(self.values, key=lambda one: one[0].start)
        if _THERE.match(self.said.text) and (self._names_rows() or self._columns("text")):
            self.used |= {match.start for match in self._columns("text")[:1]}
            if not self.conditions:
                raise NotReadError
            self.bonus += 1
            yield self._done(self._query("whether"))
            return
        asked, rest = list(self.compared), [one for _, one in named]
        if not asked:
            states = [one for one in rest if not self._is_unique(one.column)]
            if not states:
                raise NotReadError
            is_flag = [one for one in states if values_of(one.column, self.held).yes]
            asked = [(is_flag or states)[-1]]
            rest = [one for one in rest if one not in asked]
        if not any(match.strength == 1 for match, one in named if one in rest):
            raise NotReadError
        self.used |= {match.start for match in self._columns("number", "text")[:1]}
        self.bonus += 0.6
        conditions = in_order([*joined_values(rest), *self.periods])
        yield self._done(self._query("whether", conditions=conditions, asked=tuple(asked)))

    # Lists and cells

    def _look_up(self) -> Iterator[Reading]:  # noqa: PLR0912
        said, conditions = self.said, self.conditions
        subject = self._subject() if said.focus != "how much" else None
        if said.focus in {"who", "where"}:
            subject_column = self._named_text() or (self._who() if said.focus == "who" else self._where())
            if subject_column in [one.column for one in conditions]:
                raise NotReadError
            self.bonus += 0.7 if subject_column else 0
            self.bonus += 0.1 if subject_column and said.focus == "who" and names_person(subject_column) else 0
        elif said.focus == "when":
            subject_column = date_column(self.view, said, None, self.matches)
            if subject_column:
                self._use(subject_column)
        elif subject is not None and said.focus in {"which", "what", "list", ""}:
            self.used.add(subject.start)
            of_kind = [one for one in subject.columns if one.kind == "text" and said.focus != "what"]
            subject_column, *others = of_kind or subject.columns
            for column in others if len(of_kind) != 1 else ():
                yield self._done(self._query("cell" if said.focus == "what" else "list", shown=column))
        else:
            subject_column = None
        if subject_column is None and said.focus in {"how much", "what"}:
            # An amount may stand in several rows, such as what was spent.
            summed = said.focus == "how much" or _AMOUNT.search(said.text) is not None
            unnamed = said.focus == "how much" and not self._columns("number")
            priced = unnamed and _PRICE_OF.match(said.text)
            measures = self._money(of_one=bool(priced)) if unnamed else self._measures(adds_up=summed)
            summed = summed and not priced
            named = any(match.strength == 1 for match in self.matches if match.kind == "column")
            times = {match.start for match, _ in self.values if said.words[match.start].key in TIME_UNITS}
            if times and len(times) == len(self.values):
                raise NotReadError  # "per day" alone says of nothing how much it is
            if not measures or not (conditions or (summed and named and not self.doubts)):
                raise NotReadError
            if any(not self._is_unique(one.column) for one in conditions) and self.doubts <= 1:
                self.bonus += 0.6
            for one in measures:
                alone = not (summed and is_summable(one)) or (is_duration(one) and self._asks_money())
                yield self._done(self._query("cell", one, shown=one) if alone else self._query("sum", one))
            return
        if subject_column is None and said.focus in {"which", "list", ""} and self._names_rows() and conditions:
            yield self._done(self._query("list", shown=self._not_given(self._label())))
            return
        if subject_column is None:
            raise NotReadError
        if not conditions and not (said.focus in {"which", "list"} and _EXISTS.search(said.text)):
            raise NotReadError
        operation: Operation = "list" if said.focus in {"which", "list"} else "cell"
        yield self._done(self._query(operation, shown=self._not_given(subject_column)))

    def _not_given(self, column: ViewColumn | None) -> ViewColumn | None:
        """Return a column to show; the one beside it if its value is given, as in "ST-4480 accuracy"."""
        if not any(match.strength == 1 and one.column == column for match, one in self.values):
            return column
        others = [one for one in self.view.columns if one != column]
        if len(others) != 1:
            raise NotReadError
        return others[0]

    def _asks_money(self) -> bool:
        return any(word.key in MONEY_WORDS for word in self.said.words)
