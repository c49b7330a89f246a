"""Every way into a library, by which a person with limits might learn of what is hidden."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from local_rag.asking import EVERYTHING, HOST, Person
from local_rag.catalogue.browsing import Look
from local_rag.errors import LocalRagError
from local_rag.extraction.cells import person_cell
from local_rag.extraction.columns import parse_columns
from local_rag.library import Library
from local_rag.passage_records import Passage
from local_rag.serving.service import Service
from local_rag.serving.suggested_questions import SuggestedQuestions
from local_rag.store.people_file import list_people
from local_rag.tables.answer import answer_from_rows
from local_rag.tables.relation_set import relation_as_dict
from local_rag.view import View
from tests.support import served

WORDS = tuple(
    """harbour boat tide crew lantern rope anchor keeper window ladder barrel signal winter summer Ansty Lindum Harrow
    Quist Zanzibar Oslo payment parcel invoice refund meadow orchard railway station ticket luggage engine
    whistle""".split()  # noqa: SIM905
)
RARE = ["quixotic", "zephyr", "obsidian", "marzipan", "dodecahedron", "xylophone"]
ASKED = ("Where is the harbour boat?", "Who keeps the zephyr?", "What is the sum of the amounts of Quist?")
COLUMNS = ["Keeper: Who keeps the lantern? (name)", "Day: When is it kept? (date)"]
# Statements of SQL on what is seen, on what is hidden, and on what tells of tables.
STATEMENTS = (
    "SELECT * FROM orders",
    "SELECT * FROM orders_2",
    "SELECT * FROM wages",
    "SELECT Customer, sum(Amount), max(rowid) FROM orders GROUP BY 1",
    "SELECT * FROM orders, wages",
    "SELECT name FROM sqlite_master",
    "SELECT * FROM pragma_table_list",
    "SELECT * FROM seen_documents",
    "SELECT total_changes()",
)
ROWS = (
    "What is the sum of the amounts of Quist?",
    "What is the highest amount of Lindum?",
    "What is the wage of Harrow?",
    "How many orders are there?",
)
FILES = (
    "orders.csv",
    "log.md",
    "rules",
    "rules 2021.md",
    "rules 2023.md",
    "harbour",
    "boat",
    "tide",
    "vault",
    "hidden",
    "copy of",
)


def doors(folder: Path, name: str) -> dict[str, str]:
    """Return what each method of a library tells a person of this name, and what is suggested to this person."""
    person = next(one for one in list_people(folder) if one.name == name)
    suggested = {"suggestions": repr(_suggestions(folder, person))}
    with Library(folder, parts=served.parts(), profile="tiny") as library:
        view = library.seen_by(person.limits, person)
        return suggested | {name: _told(tell, view) for name, tell in DOORS.items()}


def _suggestions(folder: Path, person: Person) -> Sequence[str]:
    """Return the questions that are suggested to a person, once all drafts were tried."""
    held = served.worker(folder, served.parts(), profile="tiny")
    held.start()
    found = SuggestedQuestions(Service(held), quiet_seconds=0.0)
    try:
        held.wake()
        served.wait_until(lambda: held.loaded)
        for asks in (HOST, person):
            served.wait_until(partial(_has_tried, found, asks))
        return found.of(person)
    finally:
        found.close()
        held.close()


def _has_tried(found: SuggestedQuestions, person: Person) -> bool:
    return len(found.of(person)) == 3 or found._known(person.limits).tried == 6


def _told(tell: Callable[[View], Any], view: View) -> str:
    try:
        return repr(_plain(tell(view)))
    except LocalRagError as error:
        return repr(error)


def _plain(told: Any) -> Any:
    """Return all fields of records, of which some show only a few; no number of a document that nobody is told."""
    if is_dataclass(told) and not isinstance(told, type):
        return {one.name: _plain(getattr(told, one.name)) for one in fields(told) if one.name != "document_id"}
    return list(map(_plain, told)) if isinstance(told, list | tuple) else told


def _texts(passages: Iterable[Passage | None]) -> Any:
    return [one and (one.path, one.text, one.score) for one in passages]


def _queried(statement: str, view: View) -> Any:
    return view.tables.query(statement)


def _asked_of_rows(view: View, question: str) -> Any:
    with view.tables.held(EVERYTHING) as rows:
        return [one.table for one in rows.named], rows.answered(lambda: answer_from_rows(question, rows, [question]))


def _corrected(view: View) -> Any:
    column, document = parse_columns(COLUMNS)[0], next(iter(view.documents.contents().documents.values()))
    view.tables.correct_cell(document, column, person_cell(column, "Marlow"))
    found = view.extract([column], ask=False)
    view.tables.correct_cell(document, column, None)
    return found, view.extract([column], ask=False)


def _marked(question: str, view: View) -> Any:
    return (
        view.feedback.mark(question, "wrong", chunk_id=view.search(question)[0].chunk_id),
        view.feedback.marks(),
        view.search(question),
    )


def _summed_up(name: str, view: View) -> Any:
    return view.changes.brief([name])


def _compared(name: str, view: View) -> Any:
    return view.changes.diff(name)


# What each method of a view tells; the others are of who serves the library, or only open what these read.
DOORS: Mapping[str, Callable[[View], Any]] = {
    "plan": lambda view: [view.plan(one) for one in (*ASKED, *ROWS, "How many documents mention Quist?")],
    "tables.listed": lambda view: [relation_as_dict(one, str) for one in view.tables.listed()],
    "tables.query": lambda view: [_told(partial(_queried, one), view) for one in STATEMENTS],
    "tables.answer": lambda view: [view.tables.answer(one, earlier=[one]) for one in ROWS],
    "tables.held": lambda view: [_asked_of_rows(view, one) for one in ROWS],
    "documents.draft_questions": lambda view: view.documents.draft_questions(most=9),
    "extract": lambda view: view.extract(COLUMNS),
    "tables.saved": lambda view: view.tables.saved().all() if view.documents.are_all_seen else "of a person",
    "tables.correct_cell": _corrected,
    "verify": lambda view: [view.verify(f"The {one} is kept by Quist at 7:00 and by Zanzibar.") for one in RARE],
    "documents.names": lambda view: [replace(one, id=0) for one in view.documents.names(EVERYTHING)],
    "feedback.mark": lambda view: [_told(partial(_marked, one), view) for one in ASKED],
    "feedback.marks": lambda view: view.feedback.marks(),
    "feedback.gate_notice": lambda view: view.feedback.gate_notice(),
    "feedback.ship_gate": lambda view: view.feedback.ship_gate(),
    "feedback.gaps": lambda view: view.feedback.gaps(),
    "feedback.wrong_answers": lambda view: view.feedback.wrong_answers(),
    "search": lambda view: [view.search(one, top=50) for one in (*ASKED, *RARE, "zanzibr marzipn")],
    "retrieval.search_keywords": lambda view: [view.retrieval.search_keywords(one, top=50) for one in (*ASKED, *RARE)],
    "retrieval.trace": lambda view: [replace(view.retrieval.trace(one, top=50), seconds={}) for one in (*ASKED, *RARE)],
    "find": lambda view: [view.find(f"Which documents mention {one}?") for one in (*RARE, *WORDS)],
    "answering.shown": lambda view: [view.answering.shown(one) for one in ASKED],
    "ask": lambda view: [view.ask(one) for one in (*ASKED, *ROWS)],
    "changes.brief": lambda view: [_told(partial(_summed_up, one), view) for one in FILES],
    "changes.diff": lambda view: [_told(partial(_compared, one), view) for one in FILES],
    "documents.browse": lambda view: view.documents.browse(),
    "documents.looked_at": lambda view: view.documents.looked_at(Look()),
    "documents.contents": lambda view: view.documents.contents(),
    "documents.listed": lambda view: view.documents.listed(),
    "documents.get": lambda view: [view.documents.get(one) for one in view.documents.contents().documents.values()],
    "documents.passage": lambda view: [view.documents.passage(one.chunk_id) for one in view.search(ASKED[0])],
    "documents.locate": lambda view: view.documents.locate(view.search(ASKED[0])),
    "documents.changed": lambda view: view.documents.changed(view.ask(ASKED[0])),
    "documents.families": lambda view: view.documents.families(),
    "documents.overview": lambda view: view.documents.overview(),
    "status": lambda view: view.status(),
    "documents.unread": lambda view: view.documents.unread(),
    "documents.progress": lambda view: view.documents.progress(),
    "documents.missing_notice": lambda view: view.documents.missing_notice(),
    "documents.place_names": lambda view: list(map(view.documents.place_names(), view.documents.contents().documents)),
}
NOT_TOLD = {
    "folder", "settings",
    "retrieval.ranked", "retrieval.read", "retrieval.find", "retrieval.share_known", "retrieval.load",
    "retrieval.manifest", "retrieval.facts_version", "retrieval.reranks", "retrieval.knows_relevance",
    "answering.answerer", "answering.pipeline", "answering.read_ahead", "answering.load",
    "documents.are_all_seen",
    "documents.reading", "documents.named", "documents.require_any", "documents.is_of_a_title",
    "feedback.questions_file", "feedback.record_again", "feedback.record_question",
    "feedback.marking", "feedback.epoch", "feedback.record", "feedback.gate_base", "feedback.calibration",
}  # fmt: skip
