"""What the pages show of an answer and of passages, with everything that a template needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from local_rag.answer_records import SHOWN_TABLE_ROWS, Answer, Found, TableAnswer, TableSource
from local_rag.answering.remarks import is_doubtful, place_of, remarks
from local_rag.catalogue.contents import Location, SeenState
from local_rag.display import Name, cell_as_text, found_headline, one_line, table_lines, version_lines
from local_rag.document_records import heading_path
from local_rag.models.choice import chosen
from local_rag.passage_records import Passage
from local_rag.plan_records import Kind
from local_rag.retrieval.highlights import marks, readable
from local_rag.text.sheet_rows import row_label
from local_rag.view import View
from local_rag.web.views.answer_html import show_answer
from local_rag.web.views.document_html import show_passage, show_quote
from local_rag.web.views.document_view import address_of

# What a page says of a document whose file is in this state.
STATES: dict[SeenState, str] = {
    "same": "",
    "changed": "changed since it was indexed",
    "missing": "file moved or deleted",
    "unknown": "whether it has changed is not known yet",
}
# As what a question can be asked again where it was understood otherwise.
CORRECTIONS: dict[Kind, str] = {"passages": "passages", "rows": "rows of tables", "documents": "a list of documents"}
_MOST_LEADING, _MOST_COLUMNS = 3, 30


@dataclass(frozen=True, slots=True)
class Card:
    """A passage as evidence.

    The answer cites it by `number`, which is 0 if the model did not read it; `anchor` is its element's id. One of the
    few that `leads` is seen at once. `best` is the span of what is marked strongest, `address` leads to it in its
    document, and `image` is that of its page.
    """

    passage: Passage
    anchor: str
    number: int
    cited: bool
    place: str
    headings: str
    text: Markup
    best: tuple[int, int]
    leads: bool = False
    newest: str = ""
    writer: str = ""
    change: str = ""
    address: str = ""
    image: str = ""


def view_list(found: Found, documents: Mapping[str, int], name: Name) -> dict[str, Any]:
    """Return a list as it is shown; `documents` are the ids of those that can be opened, by path."""
    rows = [
        {
            "place": one_line(name(place.passage.location)),
            "text": " ".join(place.passage.text.split()),
            "occurrences": place.occurrences,
            "chunk": place.passage.chunk_id,
            "document": documents.get(place.passage.path),
        }
        for place in found.places
    ]
    return {"headline": found_headline(found), "rows": rows, "notes": found.notes}


def view_answer(
    answer: Answer,
    *,
    again: bool = False,
    anchor: str = "source",
    found: int = 0,
    notice: str = "",
    changed: Sequence[str] = (),
    library: View | None = None,
    name: Name,
) -> dict[str, Any]:
    """Gather what the page shows of an answer; new fields of `Answer` reach the page only here.

    Citations lead to the cards whose ids begin with `anchor`, and what is listed leads to documents of the `library`.
    The files of the cited documents at the paths `changed` have changed; `notice` says what became of the conversation.
    """
    last = max((len(answer.read), *(one.number for one in answer.citations)))
    sources = range(1, last + 1) if answer.answered and not (answer.found or answer.table) else ()
    cited = {one.number: one.passage for one in answer.citations}
    documents = library.documents.contents().documents if library and answer.found else {}
    kind = answer.plan.kind if answer.plan else ""
    return {
        # Text of documents is shown as it is, not as Markdown.
        "text": show_answer(answer.text, sources, anchor=anchor)
        if answer.answered
        else Markup("<p>{}</p>").format(Markup("<br>").join(answer.text.splitlines())),
        "headline": one_line(answer.text.partition("\n")[0]),
        "outcome": answer.outcome,
        "understood": one_line(str(replace(answer.plan, query=""))) if answer.plan else "",  # the lines say the query
        "kind": kind,
        "kinds": [one for one in CORRECTIONS.items() if one[0] != (kind or "passages")],
        "judged": kind != "chat",  # which answers no question
        "reason": one_line(answer.reason),
        "anyway": answer.answered and is_doubtful(answer),
        "again": again,
        "read": len(answer.read),
        "found": max(len(answer.passages), len(answer.read), found),
        "quotes": [
            {
                "text": show_quote(cited[one.citation], one.text, one.start),
                "number": one.citation,
                "place": place_of(cited[one.citation], name, one.start),
                "anchor": f"{anchor}-{one.citation}",
            }
            for one in answer.quotes
        ],
        "remarks": remarks(replace(answer, reason=""), name, changed),  # which stands beside the quotations
        "notice": notice,
        "listed": view_list(answer.found, documents, name) if answer.found else None,
        "rows": _view_table(answer, answer.table, library, name, anchor) if answer.table else None,
        "versions": version_lines(answer.versions),
        "chunk": answer.citations[0].passage.chunk_id if answer.citations else None,  # that is cited first
    }


def cards(
    library: View | None,
    question: str,
    passages: Sequence[Passage],
    *,
    answer: Answer | None = None,
    anchor: str = "source",
    name: Name,
) -> list[Card]:
    """Make a card of each passage: first those that the answer read, by their numbers; none of what a list shows.

    Their ids begin with `anchor`. With a library, they lead to the documents that it still holds.
    """
    if answer and (answer.found or answer.table):
        return []
    made = _cards(question, passages, answer, anchor, name)
    return _link_cards(library, made) if library else made


def _link_cards(library: View, made: Sequence[Card]) -> list[Card]:
    """Add to cards what the library knows: their document, whether its file has changed, who wrote the context."""
    writer = Path(chosen(library.settings).get("context", "")).name
    return [
        replace(
            card,
            writer=writer if card.passage.sentence else "",
            change=STATES[location.state],
            address=address_of(location.document, card.passage, card.best) if location.document is not None else "",
            image=_image_of(location, card.passage),
        )
        for card, location in zip(made, library.documents.locate([card.passage for card in made]), strict=True)
    ]


def _image_of(location: Location, passage: Passage) -> str:
    """Return the address of the page of a PDF that a passage stands on, empty if there is none that can be drawn."""
    drawn = passage.page and passage.path.lower().endswith(".pdf") and location.state != "missing"
    if location.document is None or not drawn:
        return ""
    return f"/document/{location.document}/page/{passage.page}.png?chunk={passage.chunk_id}"


def _cited_beside(answer: Answer) -> list[Passage]:
    """Return the passages that an answer cites although the model did not read them: those of other versions."""
    beside = [one for one in answer.citations if one.number > len(answer.read)]
    return [] if answer.found else [one.passage for one in sorted(beside, key=lambda one: one.number)]


def _cards(question: str, passages: Sequence[Passage], answer: Answer | None, anchor: str, name: Name) -> list[Card]:
    read = [*answer.read, *_cited_beside(answer)] if answer else []
    known = {passage.chunk_id for passage in read}
    ordered = [*read, *(passage for passage in passages if passage.chunk_id not in known)]
    cited = {citation.number for citation in answer.citations} if answer and not answer.found else set()
    quoted = answer.quotes if answer else ()
    # What is cited is seen first, then what was read, in the order of their numbers.
    leading = sorted(range(1, len(read or ordered) + 1), key=lambda number: number not in cited)[:_MOST_LEADING]
    made = []
    for position, passage in enumerate(ordered, start=1):
        number = position if position <= len(read) else 0
        text = readable(passage)
        best = [(one.start, one.end) for one in quoted if one.citation == number] or [passage.best]
        marked = marks(text, question, best)
        made.append(
            Card(
                passage=passage,
                anchor=f"{anchor}-{number}" if number else f"{anchor}-found-{position}",
                number=number,
                cited=number in cited,
                place=one_line(name(passage.location)),
                newest=one_line(name(passage.newest)) if passage.newest else "",
                headings=one_line(heading_path(passage.title, passage.headings)),
                text=show_passage(passage, marked),
                best=next(((one.start, one.end) for one in marked if one.kind == "best"), (0, 0)),
                leads=position in leading,
            )
        )
    return made


def _view_table(answer: Answer, table: TableAnswer, library: View | None, name: Name, anchor: str) -> dict[str, Any]:
    """Return what was computed from rows as it is shown, with `name` for places.

    Of the parts of a line, every second one is a name or a value.
    """
    headline, *lines = table_lines(table)
    columns = table.columns[:_MOST_COLUMNS]
    numeric = [
        any(isinstance(row[at], int | float) for row in table.rows[:SHOWN_TABLE_ROWS]) for at in range(len(columns))
    ]
    return {
        "headline": headline,
        "lines": [one_line(line).split("*") for line in lines],
        "columns": [
            # A unit that stands in the name already is not repeated.
            (one_line(column), "" if unit and unit in column else unit, right)
            for column, unit, right in zip(columns, [*table.units, *[""] * len(columns)], numeric, strict=False)
        ],
        "rows": [
            [one_line(cell_as_text(value)) for value in row[:_MOST_COLUMNS]] for row in table.rows[:SHOWN_TABLE_ROWS]
        ],
        "count": table.count,
        "query": table.rows_sql,  # selects them
        "sources": _view_sources(answer, table, library, name, anchor),
    }


def _view_sources(
    answer: Answer, table: TableAnswer, library: View | None, name: Name, anchor: str
) -> list[dict[str, Any]]:
    """Return the tables that a value stands on: as evidence with a number, and the address of the first row of each."""
    left, shown = list(answer.citations), list[dict[str, Any]]()
    for source in table.sources:
        place = one_line(", ".join(filter(None, (name(source.path), source.place))))
        view = {"title": source.title, "place": place, "number": 0, "anchor": "", "address": ""}
        if cited := next((one for one in left if one.passage.path == source.path), None):
            left.remove(cited)
            view |= {"number": cited.number, "anchor": f"{anchor}-{cited.number}"}
            document = library.documents.locate([cited.passage])[0].document if library else None
            if document is not None:
                view["address"] = address_of(document, cited.passage, _row_in(cited.passage, source))
        shown.append(view)
    return shown


def _row_in(passage: Passage, source: TableSource) -> tuple[int, int]:
    """Return the span of the first row of a source in its passage, an empty one if the row is not numbered there."""
    start = passage.text.find(row_label(source.row)) if source.row else -1
    end = passage.text.find("\n", start)
    return (start, end if end >= 0 else len(passage.text)) if start >= 0 else (0, 0)
