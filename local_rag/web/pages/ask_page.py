"""The pages that ask: what is seen first, an answer, passages alone, lists, anything by its name; and the colours."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from heapq import nsmallest
from typing import Any

from starlette.background import BackgroundTask
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from local_rag.answer_records import BeingRead, FoundPlace, Written
from local_rag.asking import AskOptions, KeptConversation, KeptTurn
from local_rag.display import answer_as_dict, found_as_csv, found_as_dict, passage_as_dict, printable_json, rows_as_csv
from local_rag.errors import LocalRagError
from local_rag.passage_records import Passage
from local_rag.serving.http import EventStream, json_response
from local_rag.serving.job import Event, Failure, Job, PassagesFound, Ping, QueuePosition, Result, failure
from local_rag.serving.requests import AskRequest, SearchRequest, ServedAnswer
from local_rag.web.forms import as_query, filters_of, local_address, number_field, query_fields, text_field
from local_rag.web.pages.history_page import side_list
from local_rag.web.pages.sources_page import view_scope
from local_rag.web.site import THEME_COOKIE, THEMES, PageRequest, attachment
from local_rag.web.views.answer_view import CORRECTIONS, cards, view_list
from local_rag.web.views.thread_view import Thread, anchor_of, view_new, view_thread

_YEAR = 365 * 24 * 3600
_PING_SECONDS = 10.0
_MOST_TURNS = 100_000
_MOST_NAMED = 12  # documents, and conversations
_SORTS: Mapping[str, Callable[[FoundPlace], Any]] = {
    "place": lambda place: (place.passage.path, place.passage.start),
    "text": lambda place: place.passage.text.casefold(),
    "occurrences": lambda place: place.occurrences,
}


def home(request: PageRequest) -> Response:
    """Show the form, with a conversation if one is named; what the address chooses counts for the next question."""
    request.service.wake()
    fields = query_fields(request.query_params.multi_items())
    question, thread = text_field(fields, "q"), Thread()
    if conversation := text_field(fields, "conversation"):
        with request.history() as history:
            thread = view_thread(history.turns(conversation), request.library, request.name_of, conversation)
    filters = filters_of(fields)
    if filters or fields.get("scope"):
        thread = replace(thread, filters=filters)
    return _page(request, question, thread)


async def ask(request: PageRequest) -> Response:
    """Answer the question of the form: as a stream of events, as JSON or as a page."""
    fields = await request.fields()
    if fields.get("do") == "search":
        return RedirectResponse(f"/search?{as_query('q', text_field(fields, 'question'), filters_of(fields))}", 303)
    asked = AskRequest(
        question=text_field(fields, "question") or text_field(fields, "q"),
        options=AskOptions(
            passages=number_field(fields, "passages"),
            filters=filters_of(fields),
            anyway=bool(fields.get("anyway")),
            kind=next((kind for kind in CORRECTIONS if kind == fields.get("kind")), None),
        ),
        in_history=True,
        conversation=str(fields.get("conversation") or "") or None,
        new_subject=bool(fields.get("new_subject")),
    )
    if "text/event-stream" in request.headers.get("accept", ""):
        return answer_stream(request, asked, shown=number_field(fields, "shown", _MOST_TURNS) or 0)
    before = await request.aside(lambda: turns_before(request, asked)) if asked.conversation else []
    served = await request.outcome(request.service.ask(asked, request.caller))

    def show() -> Response:
        library, kept = request.library, before if served.conversation == asked.conversation else []
        if request.wants_json:
            more = {"again": served.again, "conversation": served.conversation, "notice": served.notice}
            return json_response(answer_as_dict(served.answer, request.name_of) | more)
        thread = view_thread(kept, library, request.name_of, served.conversation or asked.conversation or "")
        turns = [*thread.turns, view_new(asked, served, len(kept) + 1, library, request.name_of)]
        return _page(request, "", replace(thread, turns=turns, filters=asked.options.filters))

    return await request.aside(show)


async def search(request: PageRequest) -> Response:
    """Show the passages that fit a question."""
    fields = query_fields(request.query_params.multi_items())
    if not text_field(fields, "q").strip() and not request.wants_json:
        return RedirectResponse("/", 303)
    asked = SearchRequest(
        question=text_field(fields, "q"),
        top=number_field(fields, "top") or 10,
        options=AskOptions(rerank=fields.get("rerank", "1") != "0", filters=filters_of(fields)),
    )
    trace = await request.outcome(request.service.search(asked, request.caller))

    def show() -> Response:
        library = request.library
        if request.wants_json:
            reranked = library.retrieval.reranks and asked.options.rerank
            passages = [passage_as_dict(passage, request.name_of) for passage in trace.passages]
            return json_response({"question": asked.question, "reranked": reranked, "passages": passages})
        evidence = cards(library, asked.question, trace.passages, name=request.name_of)
        return _page(request, asked.question, Thread(filters=asked.options.filters), cards=evidence, searched=True)

    response = await request.aside(show)
    if not request.wants_json:
        response.background = BackgroundTask(request.service.read_ahead, asked, request.caller)
    return response


async def rows(request: PageRequest) -> Response:
    """Return all rows that a query selects from the tables that the caller sees, as CSV."""

    def select() -> Response:
        result = request.library.tables.query(request.query_params.get("query", ""))
        return attachment(rows_as_csv(result.columns, result.rows), "rows.csv", "text/csv")

    return await request.service.queries(select, client=request.caller.key)


async def find(request: PageRequest) -> Response:
    """Show what all documents hold for a question that counts or lists, sorted as its links say, or as a file."""
    fields = query_fields(request.query_params.multi_items())
    if not text_field(fields, "q").strip() and not request.wants_json:
        return RedirectResponse("/", 303)
    asked = SearchRequest(question=text_field(fields, "q"), options=AskOptions(filters=filters_of(fields)))
    found = await request.outcome(request.service.find(asked, request.caller))
    sort, down = fields.get("sort", ""), bool(fields.get("down"))

    def show() -> Response:
        library = request.library
        if request.wants_json:
            return json_response(found_as_dict(found, request.name_of))
        places = sorted(found.places, key=_SORTS[sort], reverse=down) if sort in _SORTS else found.places
        ordered = replace(found, places=tuple(places))
        if fields.get("format") == "csv":
            return attachment(found_as_csv(ordered, request.name_of), "found.csv", "text/csv")
        listed = view_list(ordered, library.documents.contents().documents, request.name_of)
        address = f"/find?{as_query('q', asked.question, asked.options.filters)}"
        return request.page("find.html", question=asked.question, listed=listed, address=address, sort=sort, down=down)

    return await request.aside(show)


async def theme(request: PageRequest) -> Response:
    """Choose between the light and the dark page."""
    fields = await request.fields()
    chosen = text_field(fields, "theme")
    response = RedirectResponse(local_address(text_field(fields, "back")), 303)
    if chosen in THEMES:
        response.set_cookie(THEME_COOKIE, chosen, max_age=_YEAR, httponly=True, samesite="strict", path="/")
    return response


def open_anything(request: PageRequest) -> Response:
    """List the documents and conversations whose names hold what is typed."""
    wanted = request.query_params.get("q", "").strip().casefold()
    with request.history() as history:
        kept: list[KeptConversation] = history.conversations(count=_MOST_NAMED, containing=wanted)
    documents = _documents(request, wanted)
    conversations = [{"name": one.title, "address": f"/?conversation={one.id}"} for one in kept]
    if request.wants_json:
        return json_response({"documents": documents, "conversations": conversations})
    shown: dict[str, Any] = {"wanted": wanted, "documents": documents, "conversations": conversations}
    return request.page_or_part("open.html", "named.html", **shown)


ROUTES = (
    Route("/", home),
    Route("/ask", ask, methods=["POST"]),
    Route("/search", search),
    Route("/find", find),
    Route("/rows", rows),
    Route("/open", open_anything),
    Route("/theme", theme, methods=["POST"]),
)


def _page(request: PageRequest, question: str, thread: Thread, **shown: Any) -> Response:
    usual: dict[str, Any] = {"cards": [], "searched": False, "may_record": request.may_rate}
    if not thread.turns and not shown:
        usual["start"] = view_start(request)
    scope = view_scope(thread.filters, thread.id)
    listed = side_list(request, thread.id)
    return request.page("ask.html", question=question, thread=thread, scope=scope, **listed, **usual | shown)


def view_start(request: PageRequest) -> dict[str, Any]:
    """Return what the library holds, None if that cannot be read, and questions to begin with."""
    try:
        held = request.library.documents.overview()
        questions = request.app.state.suggested.of(request.person) if held.documents else ()
    except LocalRagError:
        return {"held": None, "questions": ()}
    return {"held": held, "questions": questions}


def _documents(request: PageRequest, wanted: str) -> list[dict[str, str]]:
    """Return documents by the place of what is typed: in the name of the file before one of its folders."""
    name, words = request.library.documents.place_names(), wanted.split()
    found = []
    for path, number in request.library.documents.contents().documents.items():
        shown = name(path)
        folded = shown.casefold()
        if all(word in folded for word in words):
            in_name = all(word in folded.rpartition("/")[2] for word in words)
            found.append((not in_name, folded, {"name": shown, "address": f"/document/{number}"}))
    return [page for *_, page in nsmallest(_MOST_NAMED, found, key=lambda one: one[:2])]


def answer_stream(request: PageRequest, asked: AskRequest, *, shown: int = 0) -> EventStream:
    """Ask, and return the response that tells what happens; raise BusyError where too many wait.

    The page shows the first `shown` turns of the conversation already. The events, each with JSON as data: `earlier`
    (`html`, `after`) in a conversation, `queue` (`ahead`, `seconds`), `passages` (`count`, `passages`, `html`),
    `reading` (`passages`, and `seconds` until it is answered, perhaps null), `token` (`text`, and `replaces` if that is
    all that stands from now on), `done` (`answer`, `again`, `conversation`, `notice`, `anchor`, `html`, `cards`),
    `error` (`message`), and `ping` while nothing else happens. Everything in `html` was rendered here, and text from
    documents and models was escaped.
    """
    job = request.service.ask(asked, request.caller)
    return EventStream(job, _events(request, asked, job, shown))


async def _events(request: PageRequest, asked: AskRequest, job: Job[ServedAnswer], shown: int) -> AsyncGenerator[bytes]:
    try:
        before = await request.aside(lambda: turns_before(request, asked)) if asked.conversation else []
        number = len(before) + 1
        if asked.conversation:
            html = await request.aside(lambda: _earlier(request, asked, before, shown))
            yield _event("earlier", {"html": html, "after": shown})
        async with aclosing(job.events(_PING_SECONDS)) as events:
            async for event in events:
                match event:
                    case PassagesFound(passages):
                        found = await request.aside(partial(_passages, request, asked, passages, number))
                        yield _event("passages", found)
                    case Result(served):
                        if asked.conversation and not served.notice:
                            now = await request.aside(lambda: _turns_before_own(request, asked))
                            if len(now) > len(before):  # another tab asked in the same conversation before this one
                                html = await request.aside(partial(_earlier, request, asked, now, len(before)))
                                yield _event("earlier", {"html": html, "after": len(before)})
                                number = len(now) + 1
                        done = await request.aside(partial(_done, request, asked, served, number))
                        yield _event("done", done)
                        if served.answer.outcome == "quoted" and not asked.conversation:
                            # "Answer anyway" may follow; what a follow-up is about is not known to a search alone.
                            again = SearchRequest(question=asked.question, options=asked.options)
                            request.service.read_ahead(again, request.caller)
                    case _:
                        if told := _told(event):
                            yield _event(*told)
    except Exception as error:  # noqa: BLE001  the conversation was forgotten, or rendering failed
        yield _event("error", {"message": failure(error).message})


def _told(event: Event[ServedAnswer]) -> tuple[str, dict[str, object]] | None:
    """Return the name and the data of an event that needs nothing of the library."""
    match event:
        case QueuePosition(ahead, seconds):
            return "queue", {"ahead": ahead, "seconds": seconds}
        case BeingRead(passages, seconds):
            return "reading", {"passages": passages, "seconds": seconds}
        case Written(text, replaces):
            return "token", {"text": text, "replaces": replaces}
        case Ping():
            return "ping", {}
        case Failure():
            return "error", {"message": event.message}
    return None


def turns_before(request: PageRequest, asked: AskRequest) -> list[KeptTurn]:
    """Return the turns that stand before the answer; a question that is asked again replaces the last one."""
    conversation = asked.conversation or ""
    with request.history() as history:
        turns = history.turns(conversation) if history.holds(conversation) else []
    again = turns and not asked.new_subject and turns[-1].question == asked.question
    return turns[:-1] if again else turns


def _turns_before_own(request: PageRequest, asked: AskRequest) -> Sequence[KeptTurn]:
    """Return the turns that stand before the one that was just answered."""
    with request.history() as history:
        turns = history.turns(asked.conversation or "")
    return turns[: max((place for place, turn in enumerate(turns) if turn.question == asked.question), default=0)]


def _event(name: str, data: object) -> bytes:
    return f"event: {name}\ndata: {printable_json(data)}\n\n".encode()


def _earlier(request: PageRequest, asked: AskRequest, before: Sequence[KeptTurn], shown: int) -> str:
    thread = view_thread(before, request.library, request.name_of, asked.conversation or "", start=shown)
    return request.site.fragment("thread.html", thread=thread, may_record=request.may_rate)


def _passages(request: PageRequest, asked: AskRequest, passages: Sequence[Passage], number: int) -> dict[str, object]:
    name, anchor = request.name_of, f"{anchor_of(number)}-source"
    evidence = cards(request.library, asked.question, passages, anchor=anchor, name=name)
    html = request.site.fragment("cards.html", cards=evidence)
    return {"count": len(passages), "passages": [passage_as_dict(passage, name) for passage in passages], "html": html}


def _done(request: PageRequest, asked: AskRequest, served: ServedAnswer, number: int) -> dict[str, object]:
    library, fragment = request.library, request.site.fragment
    turn = view_new(asked, served, number, library, request.name_of)
    return {
        "answer": answer_as_dict(served.answer, request.name_of),
        "again": served.again,
        "conversation": served.conversation,
        "notice": served.notice,
        "anchor": turn.anchor,
        "html": fragment(
            "answer.html",
            view=turn.view,
            question=asked.question,
            fields=turn.fields,
            conversation=served.conversation,
            may_record=request.may_rate,
        ),
        "cards": fragment(
            "evidence.html", view=turn.view, cards=turn.cards, question=asked.question, fields=turn.fields
        ),
    }
