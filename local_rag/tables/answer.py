"""Answer a question from the rows of tables, refuse what rows cannot say, or leave it to the passages."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import log

from local_rag.display import table_lines
from local_rag.errors import QuestionError
from local_rag.records import Answer, Citation, Passage, TableAnswer, TableSource, found_passage
from local_rag.store.database import Store
from local_rag.tables.choose import readings
from local_rag.tables.matches import INVOICE
from local_rag.tables.meanings import Reading
from local_rag.tables.periods import find_periods
from local_rag.tables.question_words import Said, read_words
from local_rag.tables.refusals import (
    FromRows,
    is_asked_of,
    refuse_attribute,
    refuse_bare_time,
    refuse_operation,
    refuse_time,
    refuse_unknown,
)
from local_rag.tables.relation_set import NamedRelation, RelationSet
from local_rag.tables.run import NoRowsError, run
from local_rag.tables.views import View, are_versions, joins, unions, view_of
from local_rag.tables.vocabulary import ALIASES, SMALL_WORDS, SYNONYMS

_MOST_RELATIONS = 12  # that are read closely
_MOST_READINGS = 8  # that are run
_MOST_VERSIONS = 3  # whose values are named beside the newest one's
_NAMED = 0.79  # the least of its names by which a question certainly means a table
_EVIDENCE = 0.79  # the least that a question must name of a view
_OF_NAMES = 1.6  # and of a question that looks up a text
_MOST_CITED = 10  # tables
# How a question that follows another one begins, and what makes it a whole one.
_LEAD = re.compile(
    r"(?:(?:and|but|or),? )?(?:(?:what|how) about |only |just |the same for |same for )?(?:and )?", re.IGNORECASE
)
_BEGINS = re.compile(r"(?:and|but|or|what about|how about|only|just|same for|in|for|from|per|by)\b", re.IGNORECASE)
_QUESTION = re.compile(
    r"\b(?:how (?:many|much)|which|what(?! about)|who|when|list|show|total|average)\b", re.IGNORECASE
)
_PREPOSITION = re.compile(r"(?:for|in|from|of|by|to|with|per|at|on|since|after|before|during)\b", re.IGNORECASE)
_LONGEST = 100  # characters of such a question
# What a table may have only in other words.
_REWORDED = (
    (
        re.compile(
            r"\b(?:un|non-?)(paid|damaged|billed|available|delivered|finished|confirmed|answered|signed|sold|approved"
            r"|resolved|shipped|billable|invoiced|completed|assigned|returned|passed|settled|verified|tested)\b",
            re.IGNORECASE,
        ),
        r"not \1",
    ),
    (re.compile(r"\b(?:is |are )?(?:still |yet )?(?:outstanding|unsettled)\b", re.IGNORECASE), "not paid"),
    (re.compile(r"\b(?:owes?|owed)(?: (?:us|to us))?\b", re.IGNORECASE), "has not paid"),
    (re.compile(r"\b(?:look(?:s|ed)?|looking) after\b", re.IGNORECASE), "keep"),
    (re.compile(r"\b(?:have |has |had )?(?:gone|went|go) out\b", re.IGNORECASE), "were sent"),
    (re.compile(r"\bincomplete\b", re.IGNORECASE), "not complete"),
)


def answer_from_rows(question: str, held: RelationSet, earlier: Sequence[str] = ()) -> FromRows | None:
    """Return what rows say; None if the question is none about rows, as far as code can tell."""
    found = [_answer_wording(wording, held, earlier) for wording in wordings(question)]
    return next((one for one in found if one and one.table), found[0])


def _answer_wording(question: str, held: RelationSet, earlier: Sequence[str]) -> FromRows | None:
    if not held.named or (said := read_words(question)) is None:
        return None
    if earlier and (joint := merged(earlier[-1], question)):
        follows = answer_from_rows(joint, held)
        if follows and follows.table:
            return follows
    candidates = _candidates(said, held)
    if not candidates:
        return refuse_bare_time(said, held)
    try:
        found = _answer(said, candidates, held)
    except QuestionError:  # a limit of time or rows
        return None
    if found is None:
        return None
    is_asked = not found.views or any(is_asked_of(said, view, held) for view in found.views)
    return replace(found, considered=_considered(candidates, held), is_asked=is_asked)


def _considered(candidates: Sequence[NamedRelation], held: RelationSet) -> tuple[str, ...]:
    """Return the paths of relations, and of those that are asked together with one of them."""
    beside = (view.relations for view in unions(held.named) if set(view.relations) & set(candidates))
    every = [*candidates, *(one for some in beside for one in some)]
    return tuple(dict.fromkeys(one.stored.path for one in every))


def _candidates(said: Said, held: RelationSet) -> list[NamedRelation]:
    """Return the relations that hold the words of a question, those with the rarest first."""
    keys = {word.key for word in said.words if word.key not in SMALL_WORDS or word.text[1:].isupper()}
    keys |= {INVOICE} if "invoiced" in keys else set()
    keys |= {key for word in said.words for key in ALIASES.get((word.key,), ())}
    wanted = keys | {same for key in keys for same in SYNONYMS.get(key, ())}
    known = {one.table: _words_of(one, held) for one in held.named}
    often = Counter(key for words in known.values() for key in wanted & words)
    scores = {
        one.table: sum(
            log(1 + len(held.named) / often[key]) * (1 if key in keys else 0.3) for key in wanted & known[one.table]
        )
        for one in held.named
    }
    found = [one for one in held.named if scores[one.table] > 0]
    return sorted(found, key=lambda one: (-scores[one.table], one.table))[:_MOST_RELATIONS]


def _words_of(one: NamedRelation, held: RelationSet) -> frozenset[str]:
    key = ("words", one.table)
    if key not in held.known:
        view = view_of(one)
        of_columns = {word for column in view.columns for word in column.keys}
        held.known[key] = one.stored.words | view.names | of_columns
    found: frozenset[str] = held.known[key]
    return found


def _views(relations: Sequence[NamedRelation], held: RelationSet) -> Iterator[View]:
    """Yield the relations, unions of those that are no versions of each other, and joins."""
    single = [view_of(one) for one in relations]
    yield from single
    groups = [view for view in unions(held.named) if set(view.relations) & set(relations)]
    for view in groups:
        parts = view.relations
        if not any(are_versions(one, other, held) for one, other in pairwise(parts)):
            yield view
    yield from joins(single, held)


def _answer(said: Said, relations: Sequence[NamedRelation], held: RelationSet) -> FromRows | None:
    found = [(one, view) for view in _views(relations, held) for one in readings(said, view, held)]
    understood = [one for one, _ in found if not one.unknown and _is_about(one, said)]
    if said.not_said:
        return refuse_operation(said, relations, held)
    timely = [one for one in understood if not one.no_time]
    if not timely:
        if understood:
            return refuse_time(_best(understood)[0])
        return refuse_unknown(said, [one for one, _ in found]) or refuse_attribute(said, relations, held)
    while timely:
        best = _best(timely)
        results, empty = list[tuple[Reading, TableAnswer]](), list[FromRows]()
        for one in best[:_MOST_READINGS]:
            try:
                results.append((one, run(one, held)))
            except NoRowsError as error:
                if said.computes or error.is_certain:
                    empty.append(FromRows(refusal=str(error), views=(one.query.view,)))
        if results:
            return _settled(results, said, held)
        if empty:
            return empty[0]
        timely = [one for one in timely if one not in best]  # the next best may look up a row of another table
    return None


def _is_about(one: Reading, said: Said) -> bool:
    """Return whether a reading rests on enough that is named of its view."""
    if one.doubts > 1:
        return False
    if said.computes:
        return one.evidence >= _EVIDENCE
    if said.focus == "whether":
        return one.evidence >= _OF_NAMES and not one.doubts
    if one.query.operation in {"sum", "mean"} and (one.query.group or one.query.conditions):
        return one.evidence >= _OF_NAMES
    if said.focus == "list" and one.query.operation == "list" and one.names + len(one.query.conditions) == 0:
        return one.evidence >= _EVIDENCE  # "List the carriers": every word is understood
    named = len(one.query.conditions) + (one.query.shown is not None or one.query.group is not None)
    return one.evidence >= _OF_NAMES and (named > 1 or said.focus in {"which", "list", "how much"})


def _best(understood: Sequence[Reading]) -> list[Reading]:
    """Return the readings with the fewest doubts and the most evidence, those of simple views first."""

    def order(one: Reading) -> tuple[float, ...]:
        joined = {"one": 0, "union": 0, "join": 1}[one.query.view.kind]
        named = one.names >= _NAMED  # a column that is inferred there is as good as a similar word elsewhere
        return (one.doubts - min(one.doubts, named), -round(one.evidence, 2), joined)

    ranked = sorted(understood, key=order)
    first = order(ranked[0])
    return [one for one in ranked if order(one) == first]


def _settled(results: Sequence[tuple[Reading, TableAnswer]], said: Said, held: RelationSet) -> FromRows | None:
    """Return the one answer of several readings: all say the same, one is of all parts, or of the newest version."""
    if len({_value_key(table) for _, table in results}) == 1:
        return FromRows(_newest(results, held) or results[0][1])
    whole = [one for one in results if one[0].query.view.kind == "union"]
    if whole and len({_value_key(table) for _, table in whole}) == 1:
        return FromRows(whole[0][1])
    views = {one.query.view.relations: one.query.view for one, _ in results}
    if len(views) == len(results) > 1 and (newest := _newest(results, held)):
        others = [table for _, table in results if table is not newest]
        notes = [f"{_file_of(table)} says {table_lines(table)[0]}." for table in others[:_MOST_VERSIONS]]
        return FromRows(replace(newest, notes=(*newest.notes, "This is the newest table.", *notes)))
    is_clear = said.computes or said.focus in {"what", "how much"}
    refusal = _ambiguous([table for _, table in results])
    return FromRows(refusal=refusal, views=tuple(one.query.view for one, _ in results)) if is_clear else None


def _value_key(table: TableAnswer) -> object:
    """Return what must be the same in two readings: the value, or the name of the highest."""
    if len(table.values) == 1 and table.value == table.values[0].label:
        return table.value
    return table.value, table.unit, table.values


def _newest(results: Sequence[tuple[Reading, TableAnswer]], held: RelationSet) -> TableAnswer | None:
    parts = [(reading.query.view.relations[0], table) for reading, table in results if reading.query.view.kind == "one"]
    if len(parts) != len(results):
        return None
    first = parts[0][0]
    if not all(one.columns == first.columns and (one is first or are_versions(one, first, held)) for one, _ in parts):
        return None
    return max(parts, key=lambda one: _version_order(one[0]))[1]


def _version_order(one: NamedRelation) -> tuple[list[int], str]:
    numbers = [int(part) for part in re.findall(r"\d{1,8}", f"{one.stored.path.rpartition('/')[2]} {one.stored.sheet}")]
    return numbers, one.stored.path


def _ambiguous(tables: Sequence[TableAnswer]) -> str:
    places = [", ".join(filter(None, [_file_of(one), *(source.place for source in one.sources[:1])])) for one in tables]
    different = list(dict.fromkeys(f"{one.said} ({place})" for one, place in zip(tables, places, strict=True)))
    ways = "; or ".join(different[:3])
    return f"The question can be read in {len(different)} ways: {ways}. Name the table or the column."


def _file_of(table: TableAnswer) -> str:
    return table.sources[0].path.rpartition("/")[2] if table.sources else ""


def merged(before: str, question: str) -> str:
    """Return the question before with what a follow-up changes, as "and in the UK?" does; empty if it is none."""
    text = " ".join(question.split()).rstrip("?!. ")
    if len(text) > _LONGEST or not _BEGINS.match(text) or _QUESTION.search(text):
        return ""
    rest, earlier = text[_LEAD.match(text).end() :].strip(), " ".join(before.split()).rstrip("?!. ")  # type: ignore[union-attr]
    if not rest:
        return ""
    if find_periods(rest):
        years = [period.first.year for period in find_periods(earlier) if period.first]
        if years and all(period.first is None for period in find_periods(rest)):  # "and in May?" means the same year
            rest = f"{rest} {years[-1]}"
        for period in reversed(find_periods(earlier)):
            earlier = (earlier[: period.start] + earlier[period.end :]).strip()
        rest = rest if _PREPOSITION.match(rest) else f"in {rest}"
    return f"{earlier} | {rest}"


def wordings(question: str) -> Iterator[str]:
    """Yield a question as it is, and in other words: of "unpaid", a table may have only that something is not paid."""
    yield question
    text = question
    for pattern, words in _REWORDED:
        text = pattern.sub(words, text)
    if text != question:
        yield text


def as_answer(question: str, found: FromRows, store: Store) -> Answer:
    """Return what rows say as an answer that cites the passages in which the rows begin."""
    if found.table is None:
        return Answer(question, found.refusal, "refused", named=found.considered)
    passages = [passage for one in found.table.sources[:_MOST_CITED] if (passage := _passage(one, store))]
    marks = "".join(f"[{number}]" for number in range(1, len(passages) + 1))
    head, *rest = table_lines(found.table)
    return Answer(
        question,
        "\n".join([f"{head} {marks}".rstrip(), *rest]),
        "answered",
        citations=tuple(Citation(number, passage) for number, passage in enumerate(passages, start=1)),
        passages=tuple(passages),
        table=found.table,
        named=found.considered,
    )


def _passage(source: TableSource, store: Store) -> Passage | None:
    """Return the passage of a document in which the first of its rows lies."""
    text = store.document_text(source.document_id)
    at = text.find(f"Row {source.row}: ", max(0, text.find(f"## {source.sheet}"))) if source.row else 0
    stored = store.chunk_at(source.document_id, max(0, at))
    return replace(found_passage(stored, 0.0, ()), terms="", sentence="") if stored else None
