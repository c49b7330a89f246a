"""The web application: pages and other interfaces behind the guard."""

import asyncio
import json
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from local_rag.errors import LocalRagError
from local_rag.serving.background_runs import QuestionLists, TableRuns
from local_rag.serving.http import Interface, client_of, json_response, person_of, status_of
from local_rag.serving.service import Service
from local_rag.serving.suggested_questions import SuggestedQuestions
from local_rag.serving.threads import LateError, Shared, Threads
from local_rag.serving.unix_socket import SocketServer
from local_rag.serving.worker import LibraryWorker
from local_rag.web import site
from local_rag.web.changes.additions import AllowedFolders, clear_uploads
from local_rag.web.changes.document_changes import COMMAND, DocumentChanges
from local_rag.web.gate.authentication import Access
from local_rag.web.gate.guard import Guard, Limits, Scope
from local_rag.web.pages import (
    ask_page,
    changes_page,
    digest_pages,
    document_page,
    extract_page,
    gaps_page,
    history_page,
    inspect_page,
    library_page,
    login_page,
    operations_page,
    people_page,
    questions_page,
    sources_page,
    verify_page,
    work_page,
)
from local_rag.web.pages.document_page import PageDrawings
from local_rag.web.pages.operations_page import Check, Checkup, check_as_served
from local_rag.web.site import Named, PageRequest, Site, page_route

Log = Callable[[str], None]
_PAGES = (
    ask_page,
    questions_page,
    extract_page,
    document_page,
    changes_page,
    operations_page,
    library_page,
    inspect_page,
    history_page,
    digest_pages,
    verify_page,
    gaps_page,
    people_page,
    login_page,
    sources_page,
    work_page,
    site,
)
_LONGEST_PATH = 200  # characters of a path in the log
_METHODS = ("GET", "HEAD", "POST")


def make_app(
    worker: LibraryWorker,
    *,
    hosts: Collection[str],
    origins: Collection[str] | None = None,
    access: Access | None = None,
    behind_proxy: bool = False,
    port: int | None = None,
    with_socket: bool = False,
    limits: Limits = Limits(),  # noqa: B008
    interfaces: Sequence[Interface] = (),
    check: Check = check_as_served,
    may_add: Sequence[Path] = (),
    maintain: Sequence[str] = COMMAND,
    log: Log | None = None,
    root: str = "",
    libraries: Named = (),
) -> Guard:
    """Return the whole application; it starts the worker and closes it at the end.

    `origins` are those of its pages, by default over HTTP at the `hosts`. Without `access` everyone may come in.
    `with_socket` answers the command line of the same user, `interfaces` are those beside the page, and `check` is the
    health check. Documents may be added from below the folders `may_add`, by the process that `maintain` starts. Each
    request is a line of the `log`. Of several `libraries`, each with its root, this is the one at `root`.
    """
    service = Service(worker, {at: name for name, at in libraries}.get(root, ""))
    library = worker.library
    changes = DocumentChanges(
        library.folder, maintain, library.upkeep.erases_later, unwritten=library.upkeep.count_unwritten
    )
    worker.on_answering = changes.give_way
    lists, tables, drawings = QuestionLists(service), TableRuns(service), PageDrawings()
    suggested = SuggestedQuestions(service)
    added = [interface(service) for interface in interfaces]
    looks = Threads()  # at the people: before the checks, nothing takes a place of those who have passed them

    def told(scope: Scope, status: int, seconds: float) -> None:
        method = scope["method"] if scope["method"] in _METHODS else "other"
        service.metrics.count("local_rag_requests_total", method=method, status=str(status))
        if log:
            log(_log_line(scope, status, seconds))

    @asynccontextmanager
    async def life(_app: Starlette) -> AsyncIterator[None]:
        worker.start()
        worker.wake()
        await asyncio.to_thread(changes.start)
        await asyncio.to_thread(clear_uploads, worker.library.folder)
        socket = SocketServer(service) if with_socket else None
        if socket:
            await socket.open()
        async with AsyncExitStack() as stack:
            for _, life_of_interface in added:
                await stack.enter_async_context(life_of_interface())
            yield
        if socket:
            await socket.close()
        await asyncio.to_thread(changes.close)
        lists.close()
        tables.close()
        drawings.close()
        await asyncio.to_thread(suggested.close)
        await asyncio.to_thread(worker.close)

    pages = (page_route(route) for page in _PAGES for route in page.ROUTES)
    others = (route for routes, _ in added for route in routes)
    app = Starlette(
        routes=[*pages, *others],
        exception_handlers={
            LocalRagError: _expected,
            HTTPException: _refused,
            ClientDisconnect: _left,
            Exception: _failed,
        },
        lifespan=life,
    )
    allowed = AllowedFolders(may_add)
    app.state.site = Site(service, changes, allowed, lists, tables, port=port, root=root, libraries=libraries)
    app.state.suggested = suggested
    app.state.pace, app.state.checkup = library_page.Pace(), Checkup(check)
    app.state.reading_questions = questions_page.Reading()
    app.state.drawings = drawings
    return Guard(
        app,
        hosts=hosts,
        origins={f"http://{host}" for host in hosts} if origins is None else origins,
        access=access or Access(),
        people=Shared(lambda: looks(service.library.people.now)),
        behind_proxy=behind_proxy,
        limits=limits,
        told=told,
    )


def _log_line(scope: Scope, status: int, seconds: float) -> str:
    """Return a request and the status of its response as a line of JSON; what was asked stands in no path."""
    line = {
        "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "client": client_of(scope),
        "person": person_of(scope).name or None,
        "method": scope["method"],
        "path": scope["path"][:_LONGEST_PATH],
        "status": status,
        "seconds": round(seconds, 3),
    }
    return json.dumps(line)


async def _expected(request: Request, error: Exception) -> Response:
    return await _message(request, str(error), status_of(error), bare=isinstance(error, LateError))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = "There is no such page." if error.status_code == 404 else error.detail  # noqa: PLR2004
    return await _message(request, text, error.status_code)


async def _left(_request: Request, _error: Exception) -> Response:
    return Response(status_code=400)  # which nobody gets: the client has left before its request was whole


async def _failed(request: Request, error: Exception) -> Response:
    traceback.print_exception(error, file=sys.stderr)
    return await _message(request, "This failed; see what `local-rag serve` has printed.", 500)


async def _message(request: Request, message: str, status: int, *, bare: bool = False) -> Response:
    """Say what is wrong, as JSON or on a page; on a `bare` one where a page might be late too."""
    asked = PageRequest(request.scope, request.receive)
    if asked.wants_json:
        return json_response({"error": message}, status)
    if bare:
        return PlainTextResponse(f"{message}\n", status)
    return await asked.aside(lambda: asked.page("message.html", status=status, message=message))
