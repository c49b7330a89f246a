"""Answer a question from the rows of tables, or leave it to the passages."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from math import exp, log, log1p

from local_rag.answer_records import Answer, Citation, TableAnswer, TableSource
from local_rag.display import table_lines
from local_rag.errors import QuestionError
from local_rag.passage_records import Passage, found_passage
from local_rag.store.database import Store
from local_rag.store.relation_rows import paths_of_tables
from local_rag.tables.checker import Said, said
from local_rag.tables.computation import NotComputableError, computation
from local_rag.tables.mentions import ROWS, Mention, mentions
from local_rag.tables.periods import find_periods
from local_rag.tables.planner import Planner, Read, shipped_planner
from local_rag.tables.program import Program
from local_rag.tables.relation_set import MOST_ROWS, NamedRelation, RelationSet
from local_rag.tables.run import NoRowsError, run
from local_rag.tables.views import View, are_versions, joins, name_of_part, parts_named, unions, view_of
from local_rag.text.languages import FUNCTION_WORDS
from local_rag.text.sheet_rows import row_label
from local_rag.text.tokens import STOP_WORDS, key_of_word, word_keys

_MOST_RELATIONS = 6  # that are read closely
_MOST_PARTS = 400  # that SQLite takes as one table
_MOST_VERSIONS = 3  # whose values are named beside the newest one's
_MOST_CITED = 10  # tables
_MOST_BESIDE = 1  # words of a follow-up beside what it changes
_FIRST_COLUMNS, _NAMED_COLUMNS = 2, 6  # that are kept of a table too wide to be read
_SMALL = STOP_WORDS.union(*FUNCTION_WORDS.values())
_NOTHING = 1e-30  # a probability
_ALONE = 5.0  # the most that a score is said to be above the next one
# Results that are checked, how far from the best score they may be, and the least that the best one may have.
_MOST_CHECKED, _NEAR, _LEAST_SCORE = 10, 6.0, -5.0
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class FromRows:
    """What rows say to a question, with the probability that this is right, and the paths of the tables looked at."""

    table: TableAnswer
    probability: float
    considered: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """A view with what was planned for it, the best `program` of those that have a result, and that result.

    `total` is the log probability of all programs with the same result, and `results` how many different ones the view
    has. `odds` are what the checker says of the query, and `rival` by how much the score is above that of the next
    result.
    """

    view: View
    mentioned: tuple[Mention, ...]
    fits: float
    program: Program
    total: float
    table: TableAnswer
    results: int
    odds: float = 0.0
    rival: float = _ALONE

    @property
    def score(self) -> float:
        """Return the log probability that the view fits and that the result is right, with what the checker says."""
        return -log1p(exp(-max(-30.0, min(30.0, self.fits)))) + self.total + self.odds

    @property
    def said(self) -> Said:
        """Return its query and its result as the checker reads them."""
        table = self.table
        values = [str(table.value)] if table.value is not None else [one.label for one in table.values]
        return said(table.said, values, self.view.label, [column.name for column in self.view.columns])

    @property
    def result(self) -> tuple[object, ...]:
        """Return what is answered."""
        return _answered_by(self.table)

    def features(self, question: str, common: Collection[str]) -> dict[str, float]:
        """Return what the probability depends on; `common` are words that questions about any table have."""
        conditions = sum(map(bool, (*self.program.relations, *self.program.filled))) + bool(self.program.pair)
        names, words = unexplained(question, self)
        return {
            "fits": max(-8.0, min(8.0, self.fits)),
            "total": max(-8.0, self.total),
            "unused": float(unused(self.mentioned, self.program, self.view)),
            "names": float(len(names)),
            "words": float(len([word for word in words if word not in common])),
            "conditions": float(min(3, conditions)),
            "empty": float(not self.table.count),
            "several": float(bool(self.program.direction) and self.table.value is None),
            "counts": float(self.program.operation == "count"),
            "odds": max(-8.0, min(8.0, self.odds)),
            "rival": min(_ALONE, self.rival),
            "results": float(self.results),
            "listed": log(1 + self.table.count) if self.program.operation == "list" else 0.0,
        }


def answer_from_rows(
    question: str, held: RelationSet, earlier: Sequence[str] = (), planner: Planner | None = None
) -> FromRows | None:
    """Return what rows say; None if the question is none about rows, or the planner is not sure what it asks."""
    if not held.named:
        return None
    planner = planner or shipped_planner()
    views = list(views_for(question, held))
    found = _answered(question, best_candidate(question, views, held, planner), held, planner)
    if found is None and earlier:
        found = follow_up(question, earlier[-1], held, planner)
    return replace(found, considered=(*_paths_of(*views), *found.considered)) if found else None


def _paths_of(*views: View) -> tuple[str, ...]:
    return tuple(dict.fromkeys(relation.stored.path for view in views for relation in view.relations))


def _answered(question: str, best: Candidate | None, held: RelationSet, planner: Planner) -> FromRows | None:
    if best is None or (probability := _probability(question, best, planner)) < planner.answer_from:
        return None
    whole = _with_rows(best, held)
    return FromRows(_newest(question, whole, held), probability) if whole else None


def _probability(question: str, best: Candidate, planner: Planner) -> float:
    return planner.probability(best.features(question, planner.common))


def best_candidate(question: str, views: Sequence[View], held: RelationSet, planner: Planner) -> Candidate | None:
    """Return the most probable result of all views; None if there is none."""
    checked = candidates(question, views, held, planner)
    best = max(checked, key=lambda one: one.score, default=None)
    if best is None:
        return None
    others = (best.score - one.score for one in checked if one.result != best.result)
    return replace(best, rival=min(others, default=_ALONE))


def candidates(question: str, views: Sequence[View], held: RelationSet, planner: Planner) -> list[Candidate]:
    """Return the results that the planner finds most probable, with what the checker says of their queries.

    No results if even the best one is far from probable, as for most questions that are not about rows.
    """
    read = zip(views, planner.plan(question, views, held), strict=True)
    found = [one for view, each in read for one in _results(question, view, each, held, planner)]
    best = max((one.score for one in found), default=_LEAST_SCORE)
    if best < _LEAST_SCORE:
        return []
    near = (one for one in found if one.score >= best - _NEAR)
    found = sorted(near, key=lambda one: -one.score)[:_MOST_CHECKED]
    odds = planner.checker.odds(question, [one.said for one in found])
    return [replace(one, odds=each) for one, each in zip(found, odds, strict=True)]


def _results(question: str, view: View, read: Read | None, held: RelationSet, planner: Planner) -> Iterator[Candidate]:
    """Yield each different result of the programs of a view, with the most probable one of those that have it."""
    if read is None:
        view = _narrowed(question, view, held)
        [read] = planner.plan(question, [view], held)
    if read is None:
        return
    planned, mentioned = read
    results = dict[object, list[tuple[Program, float, TableAnswer]]]()
    for program, total in planned.programs:
        if table := _result(program, view, mentioned, held, with_rows=False):
            results.setdefault(_answered_by(table), []).append((program, total, table))
    for same in results.values():
        program, _, table = same[0]
        total = log(sum(exp(one) for _, one, _ in same) + _NOTHING)
        yield Candidate(view, tuple(mentioned), planned.fits, program, total, table, len(results))


def _with_rows(best: Candidate, held: RelationSet) -> Candidate | None:
    """Return a candidate with the rows that its result is computed from; None at a limit."""
    table = _result(best.program, best.view, best.mentioned, held)
    return replace(best, table=table) if table else None


def _narrowed(question: str, view: View, held: RelationSet) -> View:
    """Return a wide view with its first columns, and those that a question names, by themselves or by a value."""
    asked = set(word_keys(question))
    often = Counter(key for column in view.columns for key in set(column.keys) & asked)
    scores = [sum(1 / often[key] for key in set(column.keys) & asked) for column in view.columns]
    named = [at for at in sorted(range(len(scores)), key=lambda at: -scores[at]) if scores[at]]
    valued = [one.column for one in mentions(question, view, held) if one.kind == "value"]
    kept = sorted({*range(_FIRST_COLUMNS), *named[:_NAMED_COLUMNS], *valued[:_NAMED_COLUMNS]})
    return replace(view, columns=tuple(view.columns[at] for at in kept if at < len(view.columns)))


def _result(
    program: Program, view: View, mentioned: Sequence[Mention], held: RelationSet, *, with_rows: bool = True
) -> TableAnswer | None:
    """Return what a program computes; None if its choices do not go together, or no row has it."""
    try:
        return run(computation(program, view, mentioned, held), held, with_rows=with_rows)
    except (NoRowsError, NotComputableError, QuestionError):  # the last for a limit of time or rows
        return None


def unused(mentioned: Sequence[Mention], program: Program, view: View) -> int:
    """Return how many values, numbers and times of the question no condition uses, and no name of a column."""
    roles = (program.measure, program.shown, program.group, program.left, program.right)
    named = {key for at in roles if at >= 0 for key in word_keys(view.columns[at].name)}
    literal = [
        (one, said)
        for one, said in zip(mentioned, program.relations, strict=True)
        if one.end and (said or not named.issuperset(word_keys(one.words)))
    ]
    used = [one for one, said in literal if said]
    rest = {
        one.start for one, _ in literal if not any(one.start < other.end and other.start < one.end for other in used)
    }
    return len(rest)


def unexplained(question: str, best: Candidate) -> tuple[list[str], list[str]]:
    """Return the names and numbers of a question that nothing of the view explains, and its other words.

    A word is explained by a condition, by the name of a column that the program uses, or by the title of the view; a
    name by that of any column.
    """
    program, columns = best.program, best.view.columns
    used = [one for one, said in zip(best.mentioned, program.relations, strict=True) if said]
    roles = (program.measure, program.shown, program.group, program.left, program.right)
    at = {*roles, *(one.column for one in used), *(at for at, said in enumerate(program.filled) if said)}
    own = best.view.names.union(*(word_keys(columns[one].name) for one in at if one >= 0))
    known = best.view.names.union(*(word_keys(column.name) for column in columns))
    names, words = list[str](), list[str]()
    for match in _WORD.finditer(question):
        key = key_of_word(match[0])
        if match[0].lower() in _SMALL or any(one.start <= match.start() and match.end() <= one.end for one in used):
            continue
        is_name = (match[0][0].isupper() and match.start() > 0) or any(map(str.isdigit, match[0]))
        if is_name and key not in known:
            names.append(key)
        elif not is_name and key not in own:
            words.append(key)
    return names, words


def views_for(question: str, held: RelationSet) -> Iterator[View]:
    """Yield the relations that share the rarest words with a question, unions of sheets or files, and joins.

    A sheet or file of several alike is asked alone only if the question names it.
    """
    relations = _relations_for(question, held)
    wholes = [
        view
        for view in unions(held.named)
        if set(view.relations) & set(relations)
        and len(view.relations) <= _MOST_PARTS
        and sum(one.stored.rows for one in view.relations) <= MOST_ROWS
        and not any(are_versions(one, other, held) for one, other in pairwise(view.relations))
    ]
    parts = {part for view in wholes for part in view.relations}
    named = {part for view in wholes for part in parts_named(question, view)}
    single = [view_of(one) for one in relations]
    yield from (view for view in single if view.relations[0] not in parts - named)
    yield from wholes
    yield from joins(single, held)


def _relations_for(question: str, held: RelationSet) -> list[NamedRelation]:
    wanted = {key_of_word(word) for word in _WORD.findall(question) if word.lower() not in STOP_WORDS}
    known = {one.table: _words_of(one, held) for one in held.named}
    often = Counter(key for words in known.values() for key in wanted & words)
    scores = {
        one.table: sum(log(1 + len(held.named) / often[key]) for key in wanted & known[one.table]) for one in held.named
    }
    return sorted(held.named, key=lambda one: (-scores[one.table], one.table))[:_MOST_RELATIONS]


def _words_of(one: NamedRelation, held: RelationSet) -> frozenset[str]:
    key = ("words", one.table)
    if key not in held.known:
        view = view_of(one)
        held.known[key] = one.stored.words.union(view.names, *(word_keys(column.name) for column in view.columns))
    found: frozenset[str] = held.known[key]
    return found


def follow_up(question: str, before: str, held: RelationSet, planner: Planner) -> FromRows | None:
    """Return what rows say to the question before with the values, times and numbers that a follow-up names instead.

    None if the follow-up says more than that, or nothing that the table has.
    """
    best = best_candidate(before, list(views_for(before, held)), held, planner)
    if best is None or (probability := _probability(before, best, planner)) < planner.answer_from:
        return None
    new = [one for one in mentions(question, best.view, held) if one.end and one.column != ROWS]
    covered = [(one.start, one.end) for one in new]
    rest = [
        match
        for match in _WORD.finditer(question)
        if match[0].lower() not in _SMALL
        and not any(start <= match.start() and match.end() <= end for start, end in covered)
    ]
    if not new or len(rest) > _MOST_BESIDE:
        return None
    program, old = best.program, best.mentioned
    said = {one.column: relation for one, relation in zip(old, program.relations, strict=True) if relation}
    # A number or time of a column that the question before did not compare means nothing here.
    new = [one for one in new if one.kind == "value" or one.column in said]
    changed = {one.column for one in new}
    if not changed:
        return None
    kept = tuple("" if one.column in changed else word for one, word in zip(old, program.relations, strict=True))
    relations = (*kept, *("is" if one.kind == "value" else said[one.column] for one in new))
    program, mentioned = replace(program, relations=relations), (*old, *new)
    table = _result(program, best.view, mentioned, held)
    return FromRows(table, probability, _paths_of(best.view)) if table else None


def _newest(question: str, best: Candidate, held: RelationSet) -> TableAnswer:
    """Return what the newest version of a table says that has such rows, with what the others say in notes."""
    one = best.view.relations[0]
    if best.view.kind != "one":
        return best.table
    named = {period.words for period in find_periods(name_of_part(one))} & {
        period.words for period in find_periods(question)
    }
    if named:  # the year of this table is asked for
        return best.table
    same = [other for other in held.named if other is not one and other.columns == one.columns]
    versions = [(other, _of_version(other, question, best, held)) for other in same if are_versions(other, one, held)]
    versions = sorted([(one, best.table), *versions], key=lambda pair: _version_order(pair[0]))
    *others, newest = [table for _, table in versions if table]
    lacking = [_file_name(other) for other, _ in takewhile(lambda pair: pair[1] is None, reversed(versions))]
    notes = [f"{name}, which is newer, does not say it." for name in lacking[:_MOST_VERSIONS]]
    if others and not lacking:
        notes.append("This is the newest table.")
    told = [value for value in others if _answered_by(value) != _answered_by(newest)]
    notes += [f"{_file_of(value)} says {table_lines(value)[0]}." for value in told[-_MOST_VERSIONS:]]
    return replace(newest, notes=(*newest.notes, *notes))


def _of_version(other: NamedRelation, question: str, best: Candidate, held: RelationSet) -> TableAnswer | None:
    """Return what the query of a table gives for one with the same columns; None without such rows or values."""
    every, view = view_of(best.view.relations[0]).columns, view_of(other)
    view = replace(view, columns=tuple(view.columns[every.index(column)] for column in best.view.columns))
    used = {one: relation for one, relation in zip(best.mentioned, best.program.relations, strict=False) if relation}
    found = {(one.column, one.start, one.end): one for one in mentions(question, view, held) if one.end}
    # Of a place in the question, each version may hold other values.
    mentioned = [found.get((one.column, one.start, one.end), one) for one in used]
    return _result(replace(best.program, relations=tuple(used.values())), view, mentioned, held)


def _answered_by(table: TableAnswer) -> tuple[object, ...]:
    """Return what two answers have in common that say the same."""
    return table.value, table.unit, table.values


def _version_order(one: NamedRelation) -> tuple[list[int], str]:
    numbers = [int(part) for part in re.findall(r"\d{1,8}", f"{_file_name(one)} {one.stored.sheet}")]
    return numbers, one.stored.path


def _file_name(one: NamedRelation) -> str:
    return one.stored.path.rpartition("/")[2]


def _file_of(table: TableAnswer) -> str:
    return table.sources[0].path.rpartition("/")[2] if table.sources else ""


def as_answer(question: str, found: FromRows, store: Store) -> Answer:
    """Return what rows say as an answer that cites the passages in which the rows begin."""
    passages = [passage for one in found.table.sources[:_MOST_CITED] if (passage := _passage(one, store))]
    marks = "".join(f"[{number}]" for number in range(1, len(passages) + 1))
    head, *rest = table_lines(found.table)
    return Answer(
        question,
        "\n".join([f"{head} {marks}".rstrip(), *rest]),
        "answered",
        citations=tuple(Citation(number, passage) for number, passage in enumerate(passages, start=1)),
        passages=tuple(passages),
        probability=found.probability,
        table=found.table,
        named=tuple(dict.fromkeys((*found.considered, *_named_in(found.table.notes, store)))),
    )


def _named_in(notes: Sequence[str], store: Store) -> list[str]:
    """Return the documents that notes name by their files: versions, and tables left out, which are not looked at."""
    said = "\n".join(notes)
    return [path for path in paths_of_tables(store) if path.rpartition("/")[2] in said] if said else []


def _passage(source: TableSource, store: Store) -> Passage | None:
    """Return the passage of a document in which the first of its rows lies."""
    text = store.document_text(source.document_id)
    at = text.find(row_label(source.row), max(0, text.find(f"## {source.sheet}"))) if source.row else 0
    stored = store.chunk_at(source.document_id, max(0, at))
    return replace(found_passage(stored, 0.0, ()), terms="", sentence="") if stored else None
