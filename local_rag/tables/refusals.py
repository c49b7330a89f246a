"""Refuse what rows cannot say, and name what there is: a word, an attribute or a time that no table has."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from local_rag.reading.relations import MOST_COLUMNS
from local_rag.records import TableAnswer
from local_rag.tables.choose import as_asked
from local_rag.tables.matches import Match, Matcher
from local_rag.tables.meanings import Reading
from local_rag.tables.query import value_of_sql
from local_rag.tables.question_words import Said, Word
from local_rag.tables.relation_set import NamedRelation, RelationSet
from local_rag.tables.roles import PREPOSITION, STRONG, is_money
from local_rag.tables.views import View, view_of
from local_rag.tables.vocabulary import CAN, COUNTED, FILLERS, NO, SMALL_WORDS, YES, keys_of
from local_rag.text.tokens import word_keys

_REFUSED_WORDS, _REFUSED_EVIDENCE = 2, 0.79  # unknown at most, where a computation is refused and not left to passages
_MONEY = keys_of("price cost costs salary budget revenue fee wage")
_MOST_ATTRIBUTE = 3  # words that no table has, where the row is certain
_MOST_SHOWN = 8  # columns of a table, and a half of them tables
_MOST_TABLES = 12  # whose times are looked up


@dataclass(frozen=True, slots=True)
class FromRows:
    """What rows say to a question: an answer, or a refusal in words; `unknown` are the words that no table has.

    `about` are the values of a table that the question names beside them. `considered` are the paths of the documents
    that either may name. A refusal is about the `views`; unless the question `is_asked` of one, it is not to be said.
    """

    table: TableAnswer | None = None
    refusal: str = ""
    unknown: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    considered: tuple[str, ...] = ()
    views: tuple[View, ...] = ()
    is_asked: bool = True


def is_asked_of(said: Said, view: View, held: RelationSet) -> bool:
    """Return whether a question names a view, or a column of it beside a value: others may hold a word by chance."""
    sheets = [PurePath(one.stored.path).stem for one in view.relations if one.stored.cells]
    asked = {word.key for word in said.words}
    for name in (view.label, *sheets):
        words = {key for key in word_keys(name) if key not in SMALL_WORDS and not any(map(str.isdigit, key))}
        if words and 2 * len(words & asked) >= len(words):
            return True
    matches = Matcher(said, held).match(as_asked(view, said)).matches
    named = any(one.kind == "column" and one.strength >= STRONG for one in matches)
    return named and any(one.kind == "value" and (one.strength == 1 or len(one.values[0]) == 1) for one in matches)


def refuse_operation(said: Said, relations: Sequence[NamedRelation], held: RelationSet) -> FromRows | None:
    """Refuse what no query here can say, if the question certainly is about rows."""
    for one in relations[:3]:
        matched = Matcher(said, held).match(view_of(one))
        strong = sum(match.strength >= 0.8 for match in matched.matches)  # noqa: PLR2004
        rest = [word for word in matched.unknown if word.text.lower() not in said.not_said.lower()]
        if strong and not rest:
            refusal = f"Code cannot compute “{said.not_said}” over rows; it can {CAN}."
            return FromRows(refusal=refusal, views=(view_of(one),))
    return None


def refuse_unknown(said: Said, found: Sequence[Reading]) -> FromRows | None:
    """Refuse a question about rows of which a word or two, or a name, are in no row, column or name of the tables."""
    if not said.computes and not said.focus:
        return None
    almost = [
        one
        for one in found
        if one.doubts <= 1 and one.evidence >= _REFUSED_EVIDENCE and 0 < len(one.unknown) <= _REFUSED_WORDS
    ]
    if not almost:
        return None
    best = min(almost, key=lambda one: (len(one.unknown), -one.evidence))
    if not said.computes and not all(map(_is_name, best.unknown)):
        return None
    if best.evidence < _REFUSED_EVIDENCE * len(best.unknown) or not _may_be_value(best.unknown, said):
        return None
    words = " ".join(f"“{word.text}”" for word in best.unknown)
    view, named = best.query.view, [value for one in best.query.conditions for value in one.values]
    refusal = f"No row, column or name of the table {view.label} is {words} (its columns: {_columns_of(view)})."
    words_unknown = tuple(word.text for word in best.unknown)
    return FromRows(refusal=refusal, unknown=words_unknown, about=tuple(named), views=(view,))


def _may_be_value(unknown: Sequence[Word], said: Said) -> bool:
    """Return whether unknown words stand together, as one name would."""
    places = [said.words.index(word) for word in unknown]
    return places == list(range(places[0], places[0] + len(places))) and not all(
        word.key in COUNTED for word in unknown
    )


def _is_name(word: Word) -> bool:
    return word.text[:1].isupper() or any(map(str.isdigit, word.text))


def refuse_attribute(said: Said, relations: Sequence[NamedRelation], held: RelationSet) -> FromRows | None:
    """Refuse what no column says of a row that is named in full: "What bonus did Ann Oak get?"."""
    if said.focus in {"", "list"}:
        return None
    found = list[tuple[list[str], tuple[Word, ...], View]]()
    for one in relations:
        view = as_asked(view_of(one), said)
        matched = Matcher(said, held).match(view)
        named = [value for match in matched.matches if _is_sure_value(match, said) for value in match.values[0][:1]]
        unknown = matched.unknown or tuple(_money_not_there(said, view, matched.matches))
        asks = any(match.kind != "value" for match in matched.matches)
        asks = asks and not any(word.key in other.stored.words for word in unknown for other in held.named)
        if (named or (asks and unknown and all(map(_is_name, unknown)))) and 0 < len(unknown) <= _MOST_ATTRIBUTE:
            found.append((named, unknown, view))
    if not found:
        return None
    named, unknown, view = min(found, key=lambda one: (len(one[1]), -len(one[0])))
    words = " ".join(f"\u201c{word.text}\u201d" for word in unknown)
    has = f"{view.label} has {', '.join(named)}, but no row or column with" if named else f"No row of {view.label} has"
    refusal = f"{has} {words} (its columns: {_columns_of(view)})."
    words_unknown = tuple(word.text for word in unknown)
    return FromRows(refusal=refusal, unknown=words_unknown, about=tuple(named), views=(view,))


def _money_not_there(said: Said, view: View, matches: Sequence[Match]) -> Iterator[Word]:
    """Yield the words for an amount of money, of a table that holds none."""
    if any(column.kind == "number" and is_money(column) for column in view.columns):
        return
    known = {at for match in matches for at in range(match.start, match.end)}
    yield from (word for at, word in enumerate(said.words) if at not in known and word.key in _MONEY)


def _is_sure_value(match: Match, said: Said) -> bool:
    """Return whether words are a value: all of it, or a part that is written as a name."""
    if match.kind != "value" or match.values[0][0].casefold() in YES | NO:
        return False
    return match.strength == 1 or (len(match.values[0]) == 1 and _is_name(said.words[match.start]))


def refuse_time(one: Reading) -> FromRows:
    """Refuse a time that no column of a table can have."""
    view = one.query.view
    refusal = f"The table {view.label} has no row or column of {one.no_time} (its columns: {_columns_of(view)})."
    named = [value for condition in one.query.conditions for value in condition.values]
    return FromRows(refusal=refusal, unknown=(one.no_time,), about=tuple(named), views=(view,))


def refuse_bare_time(said: Said, held: RelationSet) -> FromRows | None:
    """Refuse a computation that names nothing but a time, if each table has dates, and all are of other times."""
    periods = [one for one in said.periods if one.first and one.after]
    words = [word for word in said.words if not any(one.start <= word.start < one.end for one in said.periods)]
    meant = [word for word in words if word.key not in FILLERS and word.key not in COUNTED]
    if not said.computes or len(periods) != 1 or meant or not periods[0].first or not periods[0].after:
        return None
    first, after, spans = periods[0].first.isoformat(), periods[0].after.isoformat(), list[str]()
    for one in held.named[:_MOST_TABLES]:
        view = view_of(one)
        for column in view.columns:
            if column.kind != "date":
                continue
            held.hold([one.table])
            value = value_of_sql(column)
            [(least, most)] = held.select(f"SELECT min({value}), max({value}) FROM {view.source}").rows  # noqa: S608
            if least and least < after and most >= first:
                return None
            spans.append(f"*{column.name}* of {view.label} from {least} to {most}")
    if not spans:
        return None
    time = PREPOSITION.sub("", said.text[periods[0].start : periods[0].end])
    shown = "; ".join(spans[: _MOST_SHOWN // 2])
    paths = tuple(dict.fromkeys(one.stored.path for one in held.named[:_MOST_TABLES]))
    return FromRows(refusal=f"No table has a date of {time}: {shown}.", unknown=(time,), considered=paths)


def _columns_of(view: View) -> str:
    names = ", ".join(column.name for column in view.columns[:_MOST_SHOWN])
    more = f" and {len(view.columns) - _MOST_SHOWN} more" if len(view.columns) > _MOST_SHOWN else ""
    cut = any(len(one.stored.columns) >= MOST_COLUMNS for one in view.relations)
    return f"{names}{more}{f'; only the first {MOST_COLUMNS} can be asked' if cut else ''}"
