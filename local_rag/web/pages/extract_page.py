"""The pages of extracted tables: columns are typed, three documents are tried, then all; cells can be corrected."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from local_rag.errors import MissingError, QuestionError
from local_rag.extraction.cells import person_cell
from local_rag.extraction.columns import MOST_COLUMNS, parse_columns
from local_rag.extraction.extraction import Table
from local_rag.extraction.saved_tables import SavedTable, SavedTables
from local_rag.serving.background_runs import RunView
from local_rag.serving.extracted_files import FORMS, cell_text, row_as_dict
from local_rag.serving.http import json_response
from local_rag.web.forms import filters_of, number_field, parse_number, query_fields, text_field
from local_rag.web.pages.sources_page import view_scope
from local_rag.web.site import TABLE_TYPES, PageRequest, attachment
from local_rag.web.views.thread_view import say_scope

_PREVIEW, _SHOWN = 3, 100  # documents of a preview, and of one page of a table
_LONGEST_NAME = 100
_STATES = {"not-stated": "not stated", "unsure": "unsure"}


@dataclass(frozen=True, slots=True)
class TableView:
    """A saved table, what is stored of it, how its asking goes, and how many cells have each state."""

    saved: SavedTable
    table: Table
    run: RunView
    counts: Counter[str]

    @property
    def total(self) -> int:
        """Return the number of its cells."""
        return len(self.table.rows) * len(self.table.columns)


def tables(request: PageRequest) -> Response:
    """Show the form, and the tables of this person."""
    saved = _tables(request).all()
    if request.wants_json:
        return json_response([{"id": one.id, "name": one.name, "columns": len(one.columns)} for one in saved])
    return request.page("tables.html", saved=saved, scope=_scope(request), most=MOST_COLUMNS)


async def begin(request: PageRequest) -> Response:
    """Save a table, and ask its first documents."""
    fields = await request.fields()
    lines = [line.strip() for line in text_field(fields, "columns").splitlines() if line.strip()]
    filters, named = filters_of(fields), " ".join(text_field(fields, "name").split())[:_LONGEST_NAME]

    def start() -> SavedTable:
        columns = parse_columns(lines)
        name = named or f"{len(columns)} columns"
        saved = _tables(request).add(name, columns, filters, newest=bool(fields.get("newest")))
        request.site.tables.start(saved, request.caller, most=_PREVIEW)
        return saved

    saved = await request.aside(start)
    return request.done(f"/tables/{saved.id}", {"id": saved.id, "columns": len(saved.columns)})


def table(request: PageRequest) -> Response:
    """Show a table: a part of its rows, or those with a cell of one state."""
    view, wanted = _view(request), _STATES.get(request.query_params.get("show", ""), "")
    if request.wants_json:
        name = request.library.documents.place_names()
        listed = [row_as_dict(view.table.columns, row, name) for row in view.table.rows]
        return json_response({"name": view.saved.name, "running": view.run.running, "rows": listed})
    rows = [row for row in view.table.rows if not wanted or any(one and one.state == wanted for one in row.cells)]
    start = parse_number(request.query_params.get("from", "")) or 0
    return request.page(
        "table.html",
        view=view,
        rows=[(row, list(zip(view.table.columns, row.cells, map(cell_text, row.cells), strict=True)))
              for row in rows[start : start + _SHOWN]],
        wanted=request.query_params.get("show", "") if wanted else "",
        state=wanted,
        start=start,
        more=start + _SHOWN if len(rows) > start + _SHOWN else 0,
        asked_of=say_scope(view.saved.filters),
    )  # fmt: skip


def progress(request: PageRequest) -> Response:
    """Return the part of the page that shows how far a table is; a header says whether it is being asked."""
    view = _view(request)
    return request.part("table_progress.html", running=view.run.running, view=view)


def go(request: PageRequest) -> Response:
    """Ask all that is missing, of all documents."""
    saved = _saved(request)
    if not saved.whole:
        saved = _tables(request).put(replace(saved, whole=True))
    request.site.tables.start(saved, request.caller)
    return request.done(f"/tables/{saved.id}")


def stop(request: PageRequest) -> Response:
    """Stop asking; what is stored is kept."""
    identifier = _saved(request).id
    request.site.tables.stop(identifier)
    return request.done(f"/tables/{identifier}")


def forget(request: PageRequest) -> Response:
    """Delete a saved table; its cells stay stored with their documents."""
    identifier = _saved(request).id
    request.site.tables.stop(identifier)
    _tables(request).forget(identifier)
    return request.done("/tables")


async def correct(request: PageRequest) -> Response:
    """Put a person's value in place of the model's, or take it back."""
    fields = await request.fields()
    document, number = number_field(fields, "document", 10**18), number_field(fields, "column", MOST_COLUMNS)
    typed, takes_back = text_field(fields, "value"), bool(fields.get("take_back"))
    request.require("editor")

    def write() -> str:
        saved = _saved(request)
        if not document or not number or number > len(saved.columns):
            raise QuestionError("Name the document and the number of the column.")
        column = saved.columns[number - 1]
        stored = request.library.extract([column], filters=saved.filters, newest=saved.newest, ask=False)
        row = next((one for one in stored.rows if one.document == document), None)
        if row is None:
            raise MissingError("This document is not in the table, or not any more.")
        cell = None if takes_back else person_cell(column, typed, row.cells[0])
        request.library.tables.correct_cell(document, column, cell)
        return saved.id

    return request.done(f"/tables/{await request.aside(write)}")


def download(request: PageRequest) -> Response:
    """Return a table as a file."""
    suffix = f".{request.path_params['form']}"
    if suffix not in FORMS:
        raise QuestionError("Tables are written as csv, xlsx or jsonl.")
    content = FORMS[suffix](_view(request).table, request.library.documents.place_names())
    return attachment(content, f"table{suffix}", TABLE_TYPES[suffix])


ROUTES = (
    Route("/tables", tables),
    Route("/tables", begin, methods=["POST"]),
    Route("/tables/{table}", table),
    Route("/tables/{table}/progress", progress),
    Route("/tables/{table}/go", go, methods=["POST"]),
    Route("/tables/{table}/stop", stop, methods=["POST"]),
    Route("/tables/{table}/forget", forget, methods=["POST"]),
    Route("/tables/{table}/cell", correct, methods=["POST"]),
    Route("/tables/{table}/table.{form}", download),
)


def _scope(request: PageRequest) -> dict[str, Any]:
    return view_scope(filters_of(query_fields(request.query_params.multi_items())), back="/tables")


def _tables(request: PageRequest) -> SavedTables:
    return request.library.tables.saved(request.person.id)


def _saved(request: PageRequest) -> SavedTable:
    """Return the table that the address names; raise MissingError if this person has none of this id."""
    return _tables(request).get(str(request.path_params["table"]))


def _view(request: PageRequest) -> TableView:
    saved = _saved(request)
    most = 0 if saved.whole else _PREVIEW
    stored = request.library.extract(saved.columns, filters=saved.filters, newest=saved.newest, most=most, ask=False)
    counts = Counter("not asked" if cell is None else cell.state for row in stored.rows for cell in row.cells)
    return TableView(saved, stored, request.site.tables.view(saved.id, stored.missing), counts)
