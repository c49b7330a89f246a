"""What a question may be asked of: one relation, several with the same columns as one, or two joined on a column."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from pathlib import PurePath
from typing import Literal

from local_rag.document_records import BETWEEN_CAPTIONS
from local_rag.store.relation_query import quoted
from local_rag.tables.periods import find_periods, month_of
from local_rag.tables.relation_set import NamedRelation, RelationSet
from local_rag.text.tokens import word_keys

_MOST_VALUES = 50_000  # different ones of a column whose words are looked up
_LONGEST_VALUE, _MOST_WORDS = 120, 12  # of a value that a question may name
_MOST_JOINED = 8  # relations that are tried in pairs
_SHARED = 0.5  # of the values of a column that the other table must have
_COPIES = 0.3  # of the first values of two tables that are alike in versions of one table


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """A column that can be asked: its SQL, the tables that hold its values, and the SQL of its units if they differ."""

    name: str
    kind: Literal["number", "date", "text"]
    unit: str
    sql: str
    held_in: tuple[tuple[str, str], ...]
    constants: tuple[str, ...] = ()
    units: str = ""
    uncomputed: int = 0
    remarks: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the words of its name as they are compared."""
        return _keys_of_name(self.name)


@lru_cache(maxsize=10_000)  # a question asks for those of each column many times
def _keys_of_name(name: str) -> tuple[str, ...]:
    return tuple(word_keys(name))


@dataclass(frozen=True, slots=True)
class View:
    """Rows of one or more relations with all columns that can be asked; `names` are words for all of it.

    A SELECT begins with `head` and reads from `source`.
    """

    relations: tuple[NamedRelation, ...]
    source: str
    part: str
    row: str
    columns: tuple[ViewColumn, ...]
    names: frozenset[str]
    label: str
    kind: Literal["one", "union", "join"] = "one"
    head: str = ""


@dataclass(frozen=True, slots=True)
class Values:
    """The different texts of a column: by all their words, and by each one."""

    whole: Mapping[tuple[str, ...], tuple[str, ...]]
    by_word: Mapping[str, frozenset[str]]
    is_complete: bool

    @property
    def texts(self) -> list[str]:
        """Return the texts, those with the same words together."""
        return [text for some in self.whole.values() for text in some]


def view_of(one: NamedRelation) -> View:
    """Return a relation as it can be asked."""
    stored, table = one.stored, quoted(one.table)
    units = {f"{column.name} (unit)" for column in stored.columns if column.mixed}
    columns = tuple(
        ViewColumn(
            column.name,
            column.kind,
            column.unit,
            f"{table}.{quoted(name)}",
            ((one.table, name),),
            units=f"{table}.{quoted(f'{column.name} (unit)')}" if column.mixed else "",
            uncomputed=column.uncomputed,
            remarks=column.remarks,
        )
        for column, name in zip(stored.columns, one.columns, strict=True)
        if column.name not in units
    )
    caption = stored.name.partition(BETWEEN_CAPTIONS)[0]
    is_standard = word_keys(stored.sheet)[:1] in (["sheet"], ["tabell"], ["tabel"], ["feuil"])
    label = stored.sheet if stored.sheet and not is_standard else caption or stored.title
    return View((one,), table, "0", f"{table}.rowid", columns, _names(one), label)


def _names(one: NamedRelation) -> frozenset[str]:
    stored = one.stored
    texts = [PurePath(stored.path).stem, stored.sheet, stored.name, stored.title, PurePath(stored.path).parent.name]
    keys = {key for text in texts for key in word_keys(text.replace("_", " "))}
    return frozenset(keys)


def unions(relations: Sequence[NamedRelation]) -> Iterator[View]:
    """Yield relations of the same columns as one: the sheets of a workbook, or files side by side."""
    groups: dict[tuple[object, ...], list[NamedRelation]] = {}
    for one in relations:
        columns = tuple(
            (name.casefold(), column.kind) for name, column in zip(one.columns, one.stored.columns, strict=True)
        )
        groups.setdefault((str(PurePath(one.stored.path).parent), columns), []).append(one)
    for group in groups.values():
        if len(group) > 1:
            yield _union(group)


def _union(group: Sequence[NamedRelation]) -> View:
    of_sheets = len({one.stored.path for one in group}) == 1
    name = "Sheet" if of_sheets else "File"
    while name.casefold() in {one.casefold() for one in group[0].columns}:
        name += "_"
    parts = [one.stored.sheet if of_sheets else PurePath(one.stored.path).stem.replace("_", " ") for one in group]
    names = ", ".join(map(quoted, group[0].columns))
    selects = [
        f"SELECT {at} AS _part, rowid AS _row, {', '.join(map(quoted, one.columns))}, "  # noqa: S608
        f"'{part.replace(chr(39), chr(39) * 2)}' FROM {quoted(one.table)}"
        for at, (one, part) in enumerate(zip(group, parts, strict=True))
    ]
    head = f"WITH _all (_part, _row, {names}, {quoted(name)}) AS ({' UNION ALL '.join(selects)}) "
    first = view_of(group[0])
    columns = tuple(
        replace(
            column,
            sql=f"_all.{quoted(sql)}",
            held_in=tuple((one.table, other.columns[at]) for one, other in zip(group, group, strict=True)),
            units=f"_all.{quoted(f'{column.name} (unit)')}" if column.units else "",
            uncomputed=sum(one.stored.columns[at].uncomputed for one in group),
            remarks=tuple(dict.fromkeys(said for one in group for said in one.stored.columns[at].remarks)),
        )
        for at, (column, sql) in enumerate(zip(first.columns, group[0].columns, strict=False))
    )
    which = ViewColumn(name, "text", "", f"_all.{quoted(name)}", (), tuple(parts))
    shared = frozenset.intersection(*map(_names, group))
    label = PurePath(group[0].stored.path).stem.replace("_", " ") if of_sheets else ", ".join(parts[:3])
    return View(tuple(group), "_all", "_all._part", "_all._row", (*columns, which), shared, label, "union", head)


def name_of_part(one: NamedRelation) -> str:
    """Return the name of the sheet or file that a relation is."""
    return one.stored.sheet or PurePath(one.stored.path).stem.replace("_", " ")


def parts_named(question: str, view: View) -> list[NamedRelation]:
    """Return the sheets or files of a view that a question names, by words that not all of them have or by a month."""
    asked = set(word_keys(question))
    months = {month for one in find_periods(question) for month in one.months or one.months_of_year}
    words = [set(word_keys(name_of_part(one))) for one in view.relations]
    shared = set.intersection(*words)
    return [
        one
        for one, own in zip(view.relations, words, strict=True)
        if (own - shared) & asked or month_of(name_of_part(one)) in months
    ]


def joins(views: Sequence[View], held: RelationSet) -> Iterator[View]:
    """Yield pairs of relations, each row of the first with the one row of the second that has the same value."""
    for one, other in combinations(views[:_MOST_JOINED], 2):
        if one.kind != "one" or other.kind != "one" or one.relations == other.relations:
            continue
        for fact, side in ((one, other), (other, one)):
            if joined := _joined(fact, side, held):
                yield joined


def _joined(fact: View, side: View, held: RelationSet) -> View | None:
    by_name = _by_name(side)
    for left in fact.columns:
        for right in (*by_name.get(left.keys, ()), *_of_names(left, side, by_name)):
            if left.kind != right.kind or left.kind == "date":
                continue
            if left.kind == "number" and left.keys[-1:] != ("id",):
                continue
            if not _is_key(left, right, fact, side, held):
                continue
            mine = {column.keys for column in fact.columns}
            more = tuple(column for column in side.columns if column is not right and column.keys not in mine)
            if not more:
                return None
            source = f"{fact.source} LEFT JOIN {side.source} ON {left.sql} = {right.sql}"
            relations = (*fact.relations, *side.relations)
            return View(
                relations, source, "0", fact.row, (*fact.columns, *more), fact.names | side.names, fact.label, "join"
            )
    return None


def _by_name(view: View) -> dict[tuple[str, ...], list[ViewColumn]]:
    found = dict[tuple[str, ...], list[ViewColumn]]()
    for one in view.columns:
        found.setdefault(one.keys, []).append(one)
    return found


def _of_names(
    left: ViewColumn, side: View, by_name: Mapping[tuple[str, ...], Sequence[ViewColumn]]
) -> Sequence[ViewColumn]:
    """Return the columns of a table that may name what its rows are: "Name" of customers, "Item no" of items."""
    if not left.keys:
        return ()
    named = by_name.get(("name",), ()) if left.keys[-1] in side.names else ()
    longer = (one for one in side.columns if len(one.keys) > len(left.keys))
    return [*named, *(one for one in longer if one.keys[: len(left.keys)] == left.keys)]


def _is_key(left: ViewColumn, right: ViewColumn, fact: View, side: View, held: RelationSet) -> bool:
    """Return whether each value stands in one row of the second table, and most of those of the first do."""
    key = ("join", left.sql, right.sql)
    if key not in held.known:
        held.hold([fact.relations[0].table, side.relations[0].table])
        [(rows, different)] = held.select(
            f"SELECT count({right.sql}), count(DISTINCT {right.sql}) FROM {side.source}"  # noqa: S608
        ).rows
        [(values, shared)] = held.select(
            f"SELECT count(*), sum(v IN (SELECT {right.sql} FROM {side.source})) "  # noqa: S608
            f"FROM (SELECT DISTINCT {left.sql} AS v FROM {fact.source} WHERE {left.sql} IS NOT NULL)"
        ).rows
        held.known[key] = rows > 0 and rows == different and values > 0 and (shared or 0) >= _SHARED * values
    return bool(held.known[key])


def values_of(column: ViewColumn, held: RelationSet) -> Values:
    """Return the different texts of a column, which are read once."""
    key = ("values", column.held_in, column.constants)
    if key not in held.known:
        texts = dict.fromkeys(column.constants)
        complete = True
        for table, name in column.held_in:
            held.hold([table])
            found = held.select(
                f"SELECT DISTINCT {quoted(name)} FROM {quoted(table)} WHERE typeof({quoted(name)}) = 'text'",  # noqa: S608
                most=_MOST_VALUES,
            )
            complete &= found.is_complete
            texts |= dict.fromkeys(row[0] for row in found.rows)
        whole_values: dict[tuple[str, ...], list[str]] = {}
        by_word: dict[str, set[str]] = {}
        for text in texts:
            if len(text) > _LONGEST_VALUE or not (keys := tuple(word_keys(text))) or len(keys) > _MOST_WORDS:
                continue
            whole_values.setdefault(keys, []).append(text)
            for word in keys:
                by_word.setdefault(word, set()).add(text)
        held.known[key] = Values(
            {keys: tuple(some) for keys, some in whole_values.items()},
            {word: frozenset(some) for word, some in by_word.items()},
            complete,
        )
    known: Values = held.known[key]
    return known


def holds_exactly(column: ViewColumn, text: str, held: RelationSet) -> list[str]:
    """Return the values of a column that are a text, whatever its case; for columns of too many values."""
    found = list[str]()
    for table, name in column.held_in:
        held.hold([table])
        statement = f"SELECT DISTINCT {quoted(name)} FROM {quoted(table)} WHERE {quoted(name)} = ? COLLATE NOCASE"  # noqa: S608
        found += [row[0] for row in held.select(statement, (text,), most=10).rows]
    return found


def are_versions(one: NamedRelation, other: NamedRelation, held: RelationSet) -> bool:
    """Return whether two relations of the same columns hold much the same rows, by the texts in them.

    Tables of different months, by the names of their sheets or files, are none.
    """
    if len({month_of(name_of_part(part)) for part in (one, other)}) > 1:
        return False
    key = ("versions", one.table, other.table)
    if key not in held.known:
        held.hold([one.table, other.table])
        texts = [name for name, column in zip(one.columns, one.stored.columns, strict=True) if column.kind == "text"]
        name = quoted((texts or list(one.columns))[0])
        [(count, shared)] = held.select(
            f"SELECT count(*), sum({name} IN (SELECT {name} FROM {quoted(other.table)})) "  # noqa: S608
            f"FROM (SELECT DISTINCT {name} FROM {quoted(one.table)})"
        ).rows
        held.known[key] = count > 0 and (shared or 0) > _COPIES * count and _is_first_key(name, one, held)
    return bool(held.known[key])


def _is_first_key(name: str, one: NamedRelation, held: RelationSet) -> bool:
    statement = f"SELECT count({name}), count(DISTINCT {name}) FROM {quoted(one.table)}"  # noqa: S608
    [(rows, different)] = held.select(statement).rows
    return bool(different > 0.9 * rows)
