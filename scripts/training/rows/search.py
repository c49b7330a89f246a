"""Find the programs whose result is the known answer of a question: what the planner is trained with.

Several programs may give an answer by chance. Training weighs them by what the planner itself believes.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from local_rag.tables.mentions import ROWS, Mention
from local_rag.tables.periods import month_of
from local_rag.tables.program import NONE, OPERATIONS, Program
from local_rag.tables.query import Query, select, value_of_sql
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.views import View

_MOST_MASKS, _MOST_PROGRAMS = 320, 40
# What whoever wrote a question says that it asks, and the operations that compute it.
OPERATIONS_OF: dict[str, set[str]] = {
    "lookup": {"list"},
    "count": {"count"},
    "count2": {"count"},
    "sum": {"sum"},
    "sum2": {"sum"},
    "value_max": {"max", "min"},
    "average": {"mean"},
    "max_min": {"top", "max", "min"},
    "latest_earliest": {"top", "max", "min", "list"},
    "top_n": {"top", "sum", "count", "mean", "max", "min"},
    "list": {"list"},
    "yes_no": {"whether"},
    "group": {"sum", "count", "mean", "max", "min"},
    "share": {"share of rows", "share of sum"},
    "diff_sums": {"difference of rows", "difference of sums", "difference of columns"},
    "next_after": {"top", "min", "max", "list"},
    "distinct": {"distinct"},
    "range": {"range"},
}
_OF_GROUPS = {"", "group", "top_n"}  # kinds of questions that a value of each group may answer
_BOTH = 2  # conditions of a share: that of the part, and that of the whole


def number_of(text: object) -> float | None:
    plain = str(text).strip().lower()
    match = re.fullmatch(r"[^\d-]*(-?[\d,]*\d(?:\.\d+)?)\s*[^\d]*", plain)
    return float(match[1].replace(",", "")) if match and not re.fullmatch(r"\d{4}-\d\d-\d\d.*", plain) else None


def _plain(text: object) -> str:
    return re.sub(r"\W+", " ", str(text).lower()).strip()


@lru_cache(1 << 18)
def same(one: object, other: str) -> bool:
    first, second = number_of(one), number_of(other)
    if first is not None and second is not None and abs(first - second) <= 0.0101:
        return True
    return bool(_plain(one)) and _plain(one) == _plain(other)


def matches(found: Sequence[object], gold: Sequence[str]) -> bool:
    if len(found) != len(gold):
        return False
    left = list(gold)
    for value in found:
        known = next((one for one in left if same(value, one)), None)
        if known is None:
            return False
        left.remove(known)
    return True


class Rows:
    """The rows of a view in memory."""

    def __init__(self, view: View, held: RelationSet) -> None:
        held.hold([one.table for one in view.relations])
        columns = ", ".join(value_of_sql(one) for one in view.columns)
        raw = ", ".join(one.sql for one in view.columns)
        found = held.select(select(Query(view, "count"), f"{columns}, {raw}"), most=3000).rows
        width = len(view.columns)
        self.view, self.count = view, len(found)
        self.values = [[row[at] for row in found] for at in range(width)]
        self.raw = [[row[width + at] for row in found] for at in range(width)]
        self.numbers = [
            np.array([float(v) if isinstance(v, int | float) else np.nan for v in column])
            if one.kind == "number"
            else None
            for one, column in zip(view.columns, self.values, strict=True)
        ]
        self.codes = []
        for column in self.raw:
            known: dict[Any, int] = {}
            self.codes.append(np.array([-1 if v is None else known.setdefault(v, len(known)) for v in column]))
        self.present = [np.array([v is not None for v in column]) for column in self.raw]

    def mask(self, mention: Mention, relation: str) -> np.ndarray | None:
        if mention.column == ROWS:
            return None
        column, at = self.view.columns[mention.column], mention.column
        if mention.kind in {"value", "choice"}:
            wanted = set(mention.values)
            found = np.array([v in wanted for v in self.raw[at]])
            return ~found if relation == "is not" else found if relation == "is" else None
        if mention.kind == "number":
            numbers = self.numbers[at]
            if numbers is None:
                return None
            with np.errstate(invalid="ignore"):
                return {
                    "is": numbers == mention.number,
                    "more": numbers > mention.number,
                    "at least": numbers >= mention.number,
                    "less": numbers < mention.number,
                    "at most": numbers <= mention.number,
                    "is not": numbers != mention.number,
                }[relation]
        period = mention.period
        assert period is not None
        assert column.kind == "date"
        return np.array([_in_time(v, period, relation) for v in self.values[at]])


def _in_time(value: object, period: Any, relation: str) -> bool:
    if not isinstance(value, str) or len(value) < 4:
        return False
    if period.first is None:
        if len(value) < 7 or not period.months:
            return False
        month = int(value[5:7]) if value[5:7].isdigit() else 0
        if period.day:
            key = (month, int(value[8:10] or 0) if value[8:10].isdigit() else 0)
            wanted = (period.months[0], period.day)
            return {
                "is": key == wanted,
                "at least": key >= wanted,
                "more": key > wanted,
                "less": key < wanted,
                "at most": key <= wanted,
            }.get(relation, False)
        first, last = period.months[0], period.months[-1]
        return {
            "is": first <= month <= last,
            "at least": month >= first,
            "more": month > last,
            "less": month < first,
            "at most": month <= last,
        }.get(relation, False)
    text = value[:10]
    first, after = period.first.isoformat(), period.after.isoformat() if period.after else "9999"
    return {
        "is": first <= text < after,
        "at least": text >= first,
        "more": text >= after,
        "less": text < first,
        "at most": text < after,
    }.get(relation, False)


_ALLOWED = {
    "value": ("is", "is not"),
    "choice": ("is", "is not"),
    "number": ("more", "at least", "less", "at most", "is"),
    "time": ("is", "at least", "more", "less", "at most"),
}


def condition_sets(
    rows: Rows, mentioned: Sequence[Mention], *, empty: bool = False
) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
    """Yield masks with the part of a program that makes them."""
    view, width = rows.view, len(rows.view.columns)
    none_said, none_filled = ("",) * len(mentioned), ("",) * width
    everything = np.ones(rows.count, dtype=bool)
    yield everything, {"relations": none_said, "filled": none_filled}
    atoms = list[tuple[tuple[int, str], np.ndarray]]()
    for at, one in enumerate(mentioned):
        for relation in _ALLOWED.get(one.kind, ()):
            mask = rows.mask(one, relation)
            if mask is not None and mask.any() and not mask.all():
                atoms.append(((at, relation), mask))

    def made(some: Sequence[tuple[int, str]], **more: Any) -> dict[str, Any]:
        relations = list(none_said)
        for at, relation in some:
            relations[at] = relation
        return {"relations": tuple(relations), "filled": none_filled, **more}

    def together(one: tuple[int, str], other: tuple[int, str]) -> bool:
        a, b = mentioned[one[0]], mentioned[other[0]]
        if one[0] == other[0]:
            return False
        overlapping = a.end and b.end and a.start < b.end and b.start < a.end
        return not overlapping

    for key, mask in atoms:
        yield mask, made([key])
    for at in range(width):
        present = rows.present[at]
        if present.any() and not present.all():
            for name, mask in (("filled", present), ("empty", ~present)):
                filled = tuple(name if at == other else "" for other in range(width))
                yield mask, {"relations": none_said, "filled": filled}
                for key, other in atoms:
                    if mentioned[key[0]].column != at and (both := mask & other).any():
                        yield both, made([key], filled=filled)
    for left, right in itertools.permutations(range(width), 2):
        a, b = view.columns[left], view.columns[right]
        if a.kind != b.kind or (a.kind == "number" and a.unit != b.unit and a.unit and b.unit):
            continue
        pairs = list[tuple[str, np.ndarray]]()
        if a.kind == "number":
            with np.errstate(invalid="ignore"):
                pairs = [("more", rows.numbers[left] > rows.numbers[right])]
                if left < right:
                    pairs += [("is", rows.numbers[left] == rows.numbers[right])]
        elif a.kind == "date":
            pairs = [
                (
                    "more",
                    np.array(
                        [bool(x and y and x > y) for x, y in zip(rows.values[left], rows.values[right], strict=True)]
                    ),
                )
            ]
        elif left < right:
            equal = np.array([x is not None and x == y for x, y in zip(rows.raw[left], rows.raw[right], strict=True)])
            pairs = [("is", equal)] if equal.any() else []
        for name, mask in pairs:
            if mask.any() and not mask.all():
                how = {"left": left, "right": right, "pair": name}
                yield mask, {"relations": none_said, "filled": none_filled, **how}
                for key, other in atoms:
                    if (both := mask & other).any() or empty:
                        yield both, made([key], **how)
    for (one, first), (other, second) in itertools.combinations(atoms, 2):
        if not together(one, other):
            continue
        a, b = mentioned[one[0]], mentioned[other[0]]
        if one[1] == "is not" and other[1] == "is not" and a.column != b.column:
            continue
        joined = a.column == b.column and one[1] == other[1] == "is" and a.kind in {"value", "choice"}
        mask = first | second if joined else first & second
        if (mask.any() or empty) and not mask.all():
            yield mask, made([one, other])
        if not joined and a.column != b.column and (either := first | second).any() and not either.all():
            yield either, made([one, other], any_of=True)
    plain = [one for one in atoms if one[0][1] != "is not" and mentioned[one[0][0]].end]
    for some in itertools.combinations(plain, 3):
        keys = [key for key, _ in some]
        if not all(together(a, b) for a, b in itertools.combinations(keys, 2)):
            continue
        by_column: dict[tuple[int, bool], np.ndarray] = {}
        for key, mask in some:
            one = mentioned[key[0]]
            slot = (one.column, one.kind in {"value", "choice"} and key[1] == "is")
            by_column[slot] = (
                mask if slot not in by_column else (by_column[slot] | mask if slot[1] else by_column[slot] & mask)
            )
        mask = np.logical_and.reduce(list(by_column.values()))
        if mask.any() or empty:
            yield mask, made(keys)


def programs(rows: Rows, mentioned: Sequence[Mention], gold: Sequence[str], kind: str = "") -> list[Program]:
    """Return the programs whose result is the answer, those that use more of the question first.

    Of a question whose kind is known, those that compute something else are not looked for.
    """
    wanted_operations = OPERATIONS_OF.get(kind, set(OPERATIONS))
    view = rows.view
    numeric = len(gold) == 1 and number_of(gold[0]) is not None
    wanted = number_of(gold[0]) if numeric else None
    yes = len(gold) == 1 and _plain(gold[0]) in {"yes", "no"}
    limits = [(at, int(one.number)) for at, one in enumerate(mentioned) if one.kind == "limit"]
    found = list[Program]()
    sets = list(itertools.islice(condition_sets(rows, mentioned, empty=yes), 4000))

    def order(how: dict[str, Any]) -> tuple[int, int]:
        """Put conditions first that use more of the question, and those that nothing in it says last."""
        said = [mentioned[at] for at, relation in enumerate(how["relations"]) if relation]
        literal = len({one.start for one in said if one.end})
        return -literal, sum(not one.end for one in said) + sum(map(bool, how["filled"]))

    sets.sort(key=lambda one: order(one[1]))
    sets = sets[:_MOST_MASKS]
    dates = [at for at, one in enumerate(view.columns) if one.kind == "date"]
    for mask, how in sets:
        count = int(mask.sum())
        add = partial(_add, found, how)
        if yes and bool(count) == (_plain(gold[0]) == "yes"):
            add("whether")
        if not count:
            continue
        if numeric:
            if count == wanted:
                add("count")
            total = rows.count
            for at, one in enumerate(view.columns):
                codes = rows.codes[at][mask]
                codes = codes[codes >= 0]
                if len(codes) and len(np.unique(codes)) == wanted and one.kind != "number":
                    add("distinct", shown=at)
                numbers = rows.numbers[at]
                if numbers is None:
                    continue
                some = numbers[mask]
                some = some[~np.isnan(some)]
                if not len(some):
                    continue
                for name, value in (
                    ("sum", some.sum()),
                    ("mean", some.mean()),
                    ("min", some.min()),
                    ("max", some.max()),
                ):
                    if abs(value - wanted) <= 0.0101 and not (len(some) == 1 and name != "sum"):
                        add(name, measure=at) if len(some) > 1 else None
                whole = np.nansum(numbers)
                if whole and count < rows.count and abs(100 * some.sum() / whole - wanted) <= 0.0101:
                    asked = _one_column(how, mentioned)
                    if asked != NONE:
                        add("share of sum", measure=at, shown=asked)
            if (
                count < total
                and abs(100 * count / total - wanted) <= 0.0101
                and (asked := _one_column(how, mentioned)) != NONE
            ):
                add("share of rows", shown=asked)
            _shares(rows, mentioned, how, mask, wanted, add)
            _differences(rows, mentioned, how, mask, wanted, add)
        for at in range(len(view.columns)):
            codes = rows.codes[at][mask]
            different = np.unique(codes[codes >= 0])
            if len(different) == len(gold) and count <= 400:
                values = [
                    v for v in dict.fromkeys(v for v, m in zip(rows.raw[at], mask, strict=True) if m) if v is not None
                ]
                if matches(values, gold):
                    add("list", shown=at)
        if "top" in wanted_operations:
            _tops(rows, mask, how, gold, limits, found)
        if kind in _OF_GROUPS or (kind not in OPERATIONS_OF and not numeric):
            _groups(rows, mask, how, gold, limits, found)
        if not numeric:
            for at in dates:
                some = sorted(v for v, m in zip(rows.values[at], mask, strict=True) if m and v)
                if some and len(gold) == 1:
                    if same(some[0], gold[0]):
                        add("min", measure=at)
                    if same(some[-1], gold[0]):
                        add("max", measure=at)
        if len(found) > 600:
            break
    found.sort(key=lambda one: _cost(one, mentioned))
    return list(dict.fromkeys(found))[:_MOST_PROGRAMS]


def _add(found: list[Program], how: dict[str, Any], operation: str, **more: Any) -> None:
    found.append(Program(operation, **how | more))


def _cost(one: Program, mentioned: Sequence[Mention]) -> float:
    used = {mentioned[at].start for at, relation in enumerate(one.relations) if relation and mentioned[at].end}
    silent = sum(1 for at, relation in enumerate(one.relations) if relation and not mentioned[at].end)
    negated = sum(relation == "is not" for relation in one.relations)
    return (
        -1.5 * len(used)
        + 0.7 * silent
        + 0.8 * negated
        + 0.7 * sum(map(bool, one.filled))
        + 0.8 * bool(one.pair)
        + one.any_of
        + 0.3 * (one.group != NONE)
        + 0.5 * one.operation.startswith(("difference", "range"))
        + 0.3 * (one.operation in {"min", "max", "distinct"})
    )


def _one_column(how: dict[str, Any], mentioned: Sequence[Mention]) -> int:
    columns = {mentioned[at].column for at, relation in enumerate(how["relations"]) if relation}
    columns |= {at for at, name in enumerate(how["filled"]) if name}
    if how.get("pair"):
        columns.add(how["left"])
    return columns.pop() if len(columns) == 1 else NONE


def _shares(
    rows: Rows, mentioned: Sequence[Mention], how: dict[str, Any], mask: np.ndarray, wanted: float, add: Any
) -> None:
    """Shares among the rows of the other conditions."""
    if how.get("any_of") or how.get("pair"):
        return
    active = [at for at, relation in enumerate(how["relations"]) if relation]
    parts = [(mentioned[at].column, rows.mask(mentioned[at], how["relations"][at])) for at in active]
    parts += [
        (at, rows.present[at] if name == "filled" else ~rows.present[at])
        for at, name in enumerate(how["filled"])
        if name
    ]
    if len(parts) != _BOTH or parts[0][0] == parts[1][0]:
        return
    for (asked, _), (_, whole) in (parts, parts[::-1]):
        if whole is None or not whole.any():
            continue
        if abs(100 * mask.sum() / whole.sum() - wanted) <= 0.0101:
            add("share of rows", shown=asked)
        for at, numbers in enumerate(rows.numbers):
            if (
                numbers is not None
                and (total := np.nansum(numbers[whole]))
                and abs(100 * np.nansum(numbers[mask]) / total - wanted) <= 0.0101
            ):
                add("share of sum", measure=at, shown=asked)


def _differences(
    rows: Rows, mentioned: Sequence[Mention], how: dict[str, Any], mask: np.ndarray, wanted: float, add: Any
) -> None:
    """Differences between two values of one column, and between the highest and the lowest."""
    active = [at for at, relation in enumerate(how["relations"]) if relation]
    for at, numbers in enumerate(rows.numbers):
        if numbers is not None and len(active) <= 1:
            some = numbers[mask]
            some = some[~np.isnan(some)]
            if len(some) > 1 and abs(some.max() - some.min() - wanted) <= 0.0101 and wanted:
                add("range", measure=at)
    if not how.get("pair") and len(active) <= 2:
        for left, right in itertools.combinations(range(len(rows.numbers)), 2):
            a, b = rows.numbers[left], rows.numbers[right]
            if (
                a is not None
                and b is not None
                and wanted
                and abs(abs(np.nansum(a[mask]) - np.nansum(b[mask])) - wanted) <= 0.0101
            ):
                add("difference of columns", left=left, right=right)
    if how.get("any_of") or len(active) < 2 or any(how["filled"]) or how.get("pair"):
        return
    for one, other in itertools.combinations(active, 2):
        a, b = mentioned[one], mentioned[other]
        if a.column != b.column or how["relations"][one] != "is" or how["relations"][other] != "is":
            continue
        first, second = rows.mask(a, "is"), rows.mask(b, "is")
        first, second = first & mask, second & mask
        if not first.any() or not second.any():
            continue
        if abs(abs(int(first.sum()) - int(second.sum())) - wanted) <= 0.0101:
            add("difference of rows", shown=a.column)
        for at, numbers in enumerate(rows.numbers):
            if (
                numbers is not None
                and abs(abs(np.nansum(numbers[first]) - np.nansum(numbers[second])) - wanted) <= 0.0101
            ):
                add("difference of sums", measure=at, shown=a.column)


def _tops(
    rows: Rows,
    mask: np.ndarray,
    how: dict[str, Any],
    gold: Sequence[str],
    limits: list[tuple[int, int]],
    found: list[Program],
) -> None:
    where = np.flatnonzero(mask)
    if len(where) < 2:
        return
    options = [(NONE, 1), *limits] if len(gold) == 1 else limits or []
    if len(gold) > 1 and not any(number == len(gold) for _, number in options):
        return
    for at, one in enumerate(rows.view.columns):
        if one.kind == "text":
            continue
        keyed = [(rows.values[at][row], row) for row in where if rows.values[at][row] is not None]
        if len(keyed) < 2:
            continue
        for direction in ("max", "min"):
            ordered = (
                sorted(keyed, key=lambda pair: pair[0], reverse=direction == "max")
                if all(isinstance(k, int | float) for k, _ in keyed) or all(isinstance(k, str) for k, _ in keyed)
                else []
            )
            if not ordered:
                continue
            for limit_at, number in options:
                if (
                    number != len(gold)
                    or number >= len(ordered)
                    or (number < len(ordered) and ordered[number][0] == ordered[number - 1][0])
                ):
                    continue
                top = [row for _, row in ordered[:number]]
                relations = how["relations"]
                if limit_at != NONE:
                    if relations[limit_at]:
                        continue
                    relations = tuple("is" if spot == limit_at else relation for spot, relation in enumerate(relations))
                for shown in range(len(rows.view.columns)):
                    if shown != at and matches([rows.raw[shown][row] for row in top], gold):
                        found.append(
                            Program(
                                "top", **how | {"relations": relations}, measure=at, shown=shown, direction=direction
                            )
                        )


def _groups(
    rows: Rows,
    mask: np.ndarray,
    how: dict[str, Any],
    gold: Sequence[str],
    limits: list[tuple[int, int]],
    found: list[Program],
) -> None:
    options = [(NONE, 1), *limits] if len(gold) == 1 else limits
    options = [one for one in options if one[1] == len(gold)]
    if not options:
        return
    where = np.flatnonzero(mask)
    for at, one in enumerate(rows.view.columns):
        if one.kind == "number":
            continue
        for part in ("month", "year", "") if one.kind == "date" else ("",):
            labels: dict[Any, list[int]] = {}
            for row in where:
                value = rows.raw[at][row] if one.kind == "text" else rows.values[at][row]
                if value is not None:
                    label = value[:7] if part == "month" else value[:4] if part == "year" else value
                    labels.setdefault(label, []).append(row)
            if not 2 <= len(labels) <= 200 or not any(_label(label, part, text) for label in labels for text in gold):
                continue
            aggregates = [("count", NONE, {label: float(len(some)) for label, some in labels.items()})]
            if len(labels) == len(where) and one.kind == "text":
                aggregates = []  # each row is a group
            for column, numbers in enumerate(rows.numbers):
                if numbers is None or len(labels) == len(where):
                    continue
                for name, work in (("sum", np.nansum), ("mean", np.nanmean)):
                    with np.errstate(all="ignore"):
                        values = {
                            label: float(work(numbers[some]))
                            for label, some in labels.items()
                            if not np.isnan(numbers[some]).all()
                        }
                    aggregates.append((name, column, values))
            for name, column, values in aggregates:
                for direction in ("max", "min"):
                    ordered = sorted(values.items(), key=lambda pair: pair[1], reverse=direction == "max")
                    for limit_at, number in options:
                        if len(ordered) <= number or abs(ordered[number - 1][1] - ordered[number][1]) < 1e-9:
                            continue
                        if not all(any(_label(label, part, text) for text in gold) for label, _ in ordered[:number]):
                            continue
                        relations = how["relations"]
                        if limit_at != NONE:
                            if relations[limit_at]:
                                continue
                            relations = tuple(
                                "is" if spot == limit_at else relation for spot, relation in enumerate(relations)
                            )
                        found.append(
                            Program(
                                name,
                                **how | {"relations": relations},
                                measure=column,
                                group=at,
                                part=part,
                                direction=direction,
                            )
                        )


def _label(label: Any, part: str, text: str) -> bool:
    if same(label, text):
        return True
    if part == "month":
        month = int(label[5:7]) if str(label)[5:7].isdigit() else 0
        return month_of(text) == month or text.strip() in {str(month), f"{month:02}"}
    return False
