"""The tools, none of which writes to the library, and what a host is told while it waits for one."""

import asyncio
import base64
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel

from local_rag.answer_records import Written
from local_rag.answering.remarks import remarks
from local_rag.asking import AskOptions, Filters
from local_rag.catalogue.contents import Location, WholeDocument
from local_rag.digests.brief import Line
from local_rag.digests.statements import Place
from local_rag.display import one_line, printable, shortened
from local_rag.errors import MissingError, ModelError, QuestionError
from local_rag.extraction.columns import parse_columns
from local_rag.extraction.extraction import Row, Table
from local_rag.extraction.saved_tables import SavedTable
from local_rag.feedback.gaps import closest_of
from local_rag.mcp import tool_arguments as takes
from local_rag.mcp import tool_results as gives
from local_rag.mcp.token_budget import MAX_FETCH, MAX_SEARCH, cost, fit_list, fit_page, fit_passages, fit_text
from local_rag.passage_records import Passage
from local_rag.retrieval.searcher import Trace
from local_rag.serving.answer_markdown import answer_as_markdown
from local_rag.serving.job import Failure, Job, PassagesFound, Ping, QueuePosition, Result
from local_rag.serving.requests import AskRequest, Caller, SearchRequest, ServedAnswer, VerifyRequest
from local_rag.serving.service import Service
from local_rag.verification.verdicts import Evidence
from local_rag.view import View

T = TypeVar("T")
Tell = Callable[[str], Awaitable[None]]
_PING_SECONDS = 10.0  # hosts give up on what says nothing
_WRITTEN_SECONDS = 0.25  # between two messages of the text as it is written


async def followed(job: Job[T], tell: Tell) -> T:
    """Return the result of a job, or raise its error; tell what stands before it, and an answer as it is written."""
    text, told = "", 0.0
    async with aclosing(job.events(_PING_SECONDS)) as events:
        async for event in events:
            match event:
                case QueuePosition(ahead, seconds) if ahead:
                    await tell(f"{ahead} before you" + (f", about {max(1, round(seconds))} s" if seconds else ""))
                case PassagesFound(passages):
                    await tell(f"Reading {len(passages)} passage{'s' if len(passages) != 1 else ''}")
                case Written(more, replaces):
                    text = more if replaces else text + more
                    if replaces or time.monotonic() - told >= _WRITTEN_SECONDS:
                        told = time.monotonic()
                        await tell(printable(text))
                case Ping():
                    await tell("Still at work")
                case Result(value):
                    if isinstance(value, ServedAnswer):
                        for remark in remarks(value.answer, str, value.changed):
                            await tell(one_line(remark))
                    return value
                case Failure(error):
                    raise error
    raise AssertionError("a job ends with a result or a failure")


_PAGE = 25  # documents
_MOST_STALE, _MOST_FOLDERS, _LONGEST = 10, 20, 300
_LONGEST_QUOTED = 1000  # characters of a quotation
_LOADING = "The models are still loading: this was found by keywords alone; search again in a while for more."
_CHANGED = ("changed", "missing")
_ID = re.compile(r"(passage|document)-([0-9]{1,18})")


async def search(service: Service, asked: takes.SearchArguments, caller: Caller, _tell: Tell) -> gives.SearchResults:
    """Find passages; by keywords alone while the models are loading or if they are missing."""
    filters = asked.filters()
    dense: gives.Dense = "ready"
    note: str | None = None
    passages: Sequence[Passage] = ()
    request = SearchRequest(question=asked.query, top=asked.limit, options=AskOptions(filters=filters))
    try:
        trace = await _patiently(service, service.search(request, caller))
        if trace is None:
            dense, note = "loading", _LOADING
            await service.aside(lambda: service.record(caller, question=asked.query))
        else:
            passages = trace.passages
    except ModelError as error:
        dense, note = "unavailable", one_line(f"Found by keywords alone: {error}")
    library = service.library_for(caller.person)
    if dense != "ready":
        passages = await service.aside(
            lambda: library.retrieval.search_keywords(asked.query, top=asked.limit, filters=filters)
        )
    if not passages:
        note = await service.aside(lambda: _no_document(library, filters)) or note
    return await service.aside(lambda: _results(library, passages, dense, note))


def _no_document(library: View, filters: Filters) -> str | None:
    """Say that no document passes the filters, which a mistyped folder looks like; None if some does."""
    if not filters or library.documents.listed(filters=filters, most=1):
        return None
    if filters.within and not library.documents.listed(filters=Filters(within=filters.within), most=1):
        return one_line(f"No document lies in {' or '.join(filters.within)}; `list_documents` tells what there is.")
    return "No document passes the filters; leave away one of in, type, since, before and tag."


async def _patiently(service: Service, job: Job[Trace]) -> Trace | None:
    """Wait for a search; stop it and return None if its models are not loaded after a while."""
    outcome = asyncio.ensure_future(job.outcome())
    try:
        while not (await asyncio.wait({outcome}, timeout=service.patience))[0]:
            if await service.aside(lambda: service.loading):
                return None
        return outcome.result()
    finally:
        outcome.cancel()


def _results(library: View, passages: Sequence[Passage], dense: gives.Dense, note: str | None) -> gives.SearchResults:
    results = [
        gives.FoundPassage(
            id=_document_id(location) if passage.kind == "document" else f"passage-{passage.chunk_id}",
            kind=passage.kind,
            document=_document_id(location),
            title=_short(passage.title),
            headings=[_short(heading) for heading in passage.headings],
            location=one_line(passage.location),
            text=printable(passage.text),
            generated_context=printable(passage.sentence),
            ranks={hit.list_name: gives.Rank(rank=hit.rank, score=round(hit.score, 3)) for hit in passage.hits},
            newest_version=one_line(passage.newest) if passage.newest else None,
            changed_since_indexed=location.state in _CHANGED,
        )
        for passage, location in zip(passages, library.documents.locate(passages), strict=True)
    ]
    return fit_passages(results, dense, note)


async def find(service: Service, asked: takes.FindArguments, caller: Caller, tell: Tell) -> gives.FindResults:
    """Count or list all documents."""
    filters = asked.filters()
    request = SearchRequest(question=asked.question, options=AskOptions(filters=filters))
    found = await followed(service.find(request, caller), tell)
    library = service.library_for(caller.person)
    lacking = None if found.count else await service.aside(lambda: _no_document(library, filters))
    listed = [
        gives.FoundDocument(
            path=one_line(place.passage.path),
            line=place.passage.line,
            text=printable(place.passage.text),
            occurrences=place.occurrences,
        )
        for place in found.places
    ]
    whole = gives.FindResults(
        kind=found.kind,
        rule=printable(found.rule),
        count=found.count,
        documents=listed,
        complete=found.complete,
        notes=[*([lacking] if lacking else []), *map(one_line, found.notes)],
    )
    return fit_list(whole, "documents")


def diff(library: View, asked: takes.DiffArguments) -> gives.Differences:
    """Compare two documents, or the two newest versions of one."""
    found = library.changes.diff(asked.before, asked.after or "")
    changes = [
        gives.DocumentChange(
            kind=one.kind,
            about=printable(one.about),
            values=[
                gives.ChangedValue(kind=value.kind, before=printable(value.before), after=printable(value.after))
                for value in one.values
            ],
            before=_place(one.before) if one.before else None,
            after=_place(one.after) if one.after else None,
        )
        for one in found.changes
    ]
    whole = gives.Differences(before=one_line(found.before), after=one_line(found.after), changes=changes)
    return fit_list(whole, "changes")


def brief(library: View, asked: takes.BriefArguments) -> gives.BriefResults:
    """Sum up documents in quotations."""
    found = library.changes.brief(
        asked.documents, lines=asked.lines, filters=Filters.parse(within=takes.several(asked.within))
    )
    lists: list[tuple[str, Sequence[Line]]] = [("", found.lines), *found.lists.items()]
    lines = [
        gives.BriefLine(**dict(_place(line.place)), list=kind, value=printable(line.value))
        for kind, some in lists
        for line in some
    ]
    documents = [one_line(path) for path in found.documents[:_MOST_FOLDERS]]
    return fit_list(gives.BriefResults(documents=documents, lines=lines), "lines")


async def verify(service: Service, asked: takes.VerifyArguments, caller: Caller, tell: Tell) -> gives.VerifyResults:
    """Check the statements of a text from a number on, as many as a turn allows; the host's model judges the rest."""
    request = VerifyRequest(text=asked.text, filters=asked.filters(), model=False, first=asked.start)
    found = await followed(service.verify(request, caller), tell)
    statements = [
        gives.CheckedStatement(
            text=_short(one.text),
            verdict=one.verdict,
            quotes=[_statement_quote(each) for each in one.quotes],
            probability=one.probability,
        )
        for one in found.statements
    ]

    def page(shown: Sequence[gives.CheckedStatement]) -> gives.VerifyResults:
        goes_on = len(shown) < len(statements) or found.left_out
        return gives.VerifyResults(statements=list(shown), next=asked.start + len(shown) if goes_on else None)

    return fit_page(statements, page)


def _statement_quote(one: Evidence) -> gives.StatementQuote:
    differs = [gives.DifferingWords(said=_short(each.said), written=_short(each.written)) for each in one.differs]
    place = one.place
    return gives.StatementQuote(
        text=_short(place.text),
        location=one_line(place.location_by(str)),
        section=_short(place.section),
        differs=differs,
    )


async def gaps(service: Service, asked: takes.GapsArguments, caller: Caller, _tell: Tell) -> gives.GapsResults:
    """List what is missing, from a number on."""
    found = (await service.gaps(caller).outcome())[asked.start :]
    groups = [
        gives.MissingGroup(
            questions=[
                gives.MissedQuestion(
                    question=_short(one.question), asked=one.asked, outcome=one.outcome, times=one.times
                )
                for one in gap.questions[:_MOST_STALE]
            ],
            closest=one_line(closest_of(gap, str)) or None,
            would_answer=_short(gap.would_answer),
        )
        for gap in found[:_PAGE]
    ]

    def page(shown: Sequence[gives.MissingGroup]) -> gives.GapsResults:
        following = asked.start + len(shown) if len(shown) < len(found) else None
        return gives.GapsResults(gaps=list(shown), next=following)

    return fit_page(groups, page)


def marks(library: View, _asked: takes.Arguments) -> gives.MarksResults:
    """Return what marks come to."""
    return gives.MarksResults.model_validate(asdict(library.feedback.marks()))


def _place(place: Place) -> gives.QuotedPlace:
    return gives.QuotedPlace(
        text=printable(place.text[:_LONGEST_QUOTED]),
        location=one_line(place.location_by(str)),
        section=_short(place.section),
    )


def _document_id(location: Location) -> str:
    return f"document-{location.document}" if location.document is not None else ""


def fetch(library: View, asked: takes.FetchArguments) -> gives.Fetched:
    """Return as much of a text, from an offset on, as fits into a result."""
    document, passages = _named(library, asked)
    first = passages[0] if passages else None
    begin, end = (first.start, max(passage.end for passage in passages)) if first else (0, len(document.text))
    named = next((passage for passage in passages if f"passage-{passage.chunk_id}" == asked.id), None)
    if asked.offset and asked.offset >= end - begin:
        raise QuestionError(f"The offset {asked.offset} lies after the end of {asked.id}; call without it.")
    start = begin + asked.offset
    whole = gives.Fetched(
        id=asked.id,
        document=f"document-{document.id}",
        title=_short(document.title),
        headings=[_short(heading) for heading in named.headings] if named else [],
        location=one_line(first.location if first else document.path),
        text=printable(document.text[start:end]),
        generated_context=printable(named.sentence) if named else "",
        start=start,
        end=end,
        length=len(document.text),
        changed_since_indexed=document.state in _CHANGED,
    )

    def begun(part: str) -> gives.Fetched:
        goes_on = start + len(part) < end
        following = start + len(part) - begin if goes_on else None
        return whole.model_copy(update={"text": part, "end": start + len(part), "next": following})

    return begun(fit_text(whole.text, begun, MAX_FETCH))


def _named(library: View, asked: takes.FetchArguments) -> tuple[WholeDocument, Sequence[Passage]]:
    """Return the document that an id names, or the document and passages around the passage that it names."""
    named = _ID.fullmatch(asked.id)
    if named is None:
        raise QuestionError(f"The id {asked.id!r} is unknown; take one that search or list_documents gives.")
    kind, number = named[1], int(named[2])
    try:
        if kind == "document":
            return library.documents.get(number), ()
        owner = library.documents.locate([library.documents.passage(number)])[0].document
        if owner is None:
            raise MissingError("The document of this passage is no longer in the library.")
        document = library.documents.get(owner)
    except MissingError:
        raise QuestionError(f"{asked.id} is no longer in the library; search again.") from None
    position = next((index for index, passage in enumerate(document.passages) if passage.chunk_id == number), None)
    if position is None:  # the passage stands for the whole document
        return document, ()
    return document, document.passages[max(0, position - asked.around) : position + asked.around + 1]


def list_documents(library: View, asked: takes.ListArguments) -> gives.DocumentPage:
    """Return a page of the documents, by path."""
    filters = Filters.parse(within=takes.several(asked.within))
    listed = library.documents.listed(filters=filters, after=_path_of(asked.cursor), most=_PAGE + 1)
    ids, goes_on = library.documents.contents().documents, len(listed) > _PAGE
    here = [document for document in listed[:_PAGE] if document.path in ids]  # not what is removed meanwhile
    documents = [
        gives.ListedDocument(
            id=f"document-{ids[document.path]}",
            title=_short(document.title),
            location=one_line(document.path),
            about=_short(document.about),
            state=document.state,
            date=document.date,
            passages=document.chunks,
        )
        for document in here
    ]

    def page(shown: Sequence[gives.ListedDocument]) -> gives.DocumentPage:
        last = here[len(shown) - 1] if len(shown) < len(here) else listed[_PAGE - 1] if goes_on else None
        return gives.DocumentPage(results=list(shown), next=_cursor_of(last.path) if last else None)

    return fit_page(documents, page)


async def status(service: Service, _asked: takes.Arguments, caller: Caller, _tell: Tell) -> gives.LibraryStatus:
    """Return what the library holds and what is out of date."""
    held = await service.aside(service.library_for(caller.person).status)
    loading, problem = await service.aside(lambda: (service.loading, service.problem))
    return gives.LibraryStatus(
        library=one_line(held.library),
        folders=[one_line(root) for root in held.roots[:_MOST_FOLDERS]],
        documents=held.documents,
        passages=held.chunks,
        generated_contexts=held.contexts["by_model"],
        missing_contexts=held.contexts["missing"],
        models={role: one_line(Path(name).name) for role, name in held.models.items()},
        dense="unavailable" if problem else "loading" if loading else "ready",
        stale=[
            gives.StaleReason(reason=_short(stale.reason), command=one_line(stale.command))
            for stale in held.stale[:_MOST_STALE]
        ],
    )


async def ask(service: Service, asked: takes.AskArguments, caller: Caller, tell: Tell) -> gives.Answered:
    """Answer a question with the library's own model."""
    request = AskRequest(question=asked.question, options=AskOptions(filters=asked.filters()))
    served = await followed(service.ask(request, caller), tell)
    answer = served.answer
    return gives.Answered(
        question=printable(answer.question),
        outcome=answer.outcome,
        answered=answer.answered,
        understood_as=printable(str(answer.plan or "")),
        text=await service.aside(lambda: answer_as_markdown(answer, changed=served.changed, escape=printable)),
        remarks=remarks(answer, str, served.changed),
        probability=answer.probability,
        quotes=[gives.Quotation(text=printable(quote.text), citation=quote.citation) for quote in answer.quotes],
        citations=[_cited(citation.passage, citation.number) for citation in answer.citations],
        closest=[_cited(passage, None) for passage in answer.closest],
    )


async def extract(service: Service, asked: takes.ExtractArguments, caller: Caller, tell: Tell) -> gives.ExtractResults:
    """Ask some of what is missing in a table, and return the rows from a number on."""
    filters = Filters.parse(within=takes.several(asked.within), types=takes.several(asked.types))
    table = SavedTable("", "", parse_columns(asked.columns), filters, asked.newest)
    await followed(service.extract(table, caller), tell)
    library = service.library_for(caller.person)

    def stored() -> gives.ExtractResults:
        found = library.extract(table.columns, filters=filters, newest=asked.newest, ask=False)
        return _extracted_from(found, asked.start)

    return await service.aside(stored, client=caller.key)


def _extracted_from(table: Table, start: int) -> gives.ExtractResults:
    """Return as many rows from a number on as fit, at least one if there is any."""
    whole = gives.ExtractResults(rows=[], documents=len(table.rows), missing=table.missing)
    rows, used = list[gives.ExtractedRow](), cost(whole)
    for row in islice(table.rows, start, None):
        extracted = _extracted(table, row)
        used += cost(extracted) + 1
        if rows and used > MAX_SEARCH:
            return whole.model_copy(update={"rows": rows, "next": start + len(rows)})
        rows.append(extracted)
    return whole.model_copy(update={"rows": rows})


def _extracted(table: Table, row: Row) -> gives.ExtractedRow:
    cells = [
        gives.ExtractedCell(
            column=_short(column.name),
            state=cell.state if cell else "not asked yet",
            value=_short(cell.text) if cell else "",
            quotation=_short(cell.quotation) if cell else "",
            remark=_short(cell.note) if cell and cell.note else None,
        )
        for column, cell in zip(table.columns, row.cells, strict=True)
    ]
    return gives.ExtractedRow(
        document=f"document-{row.document}", title=_short(row.title), location=one_line(row.path), cells=cells
    )


Handler = Callable[[Service, Any, Caller, Tell], Awaitable[BaseModel]]


def _reading(read: Callable[[View, Any], BaseModel]) -> Handler:
    """Return a handler that only reads the library."""

    async def handle(service: Service, asked: Any, caller: Caller, _tell: Tell) -> BaseModel:
        return await service.aside(lambda: read(service.library_for(caller.person), asked), client=caller.key)

    return handle


HANDLERS: Mapping[str, Handler] = {
    "search": search,
    "find": find,
    "diff": _reading(diff),
    "brief": _reading(brief),
    "verify": verify,
    "fetch": _reading(fetch),
    "list_documents": _reading(list_documents),
    "status": status,
    "gaps": gaps,
    "marks": _reading(marks),
    "ask": ask,
    "extract": extract,
}


def _cited(passage: Passage, number: int | None) -> gives.CitedPassage:
    return gives.CitedPassage(
        number=number,
        id=f"passage-{passage.chunk_id}",
        title=_short(passage.title),
        location=one_line(passage.location),
    )


def _short(text: str) -> str:
    return shortened(text, _LONGEST)


def _cursor_of(path: str) -> str:
    return base64.urlsafe_b64encode(path.encode("utf-8", "surrogatepass")).decode()


def _path_of(cursor: str | None) -> str:
    """Return the path after which a page begins."""
    try:
        return base64.b64decode((cursor or "").encode(), altchars=b"-_", validate=True).decode("utf-8")
    except ValueError:
        raise QuestionError("list_documents gave no such cursor; leave it away to start again.") from None
