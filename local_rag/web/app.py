"""The web application: pages and other interfaces behind the guard."""

import asyncio
import sys
import traceback
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from local_rag.errors import BusyError, LocalRagError, QuestionError
from local_rag.serving.http import Interface, LateBodyError
from local_rag.serving.service import WorkerService
from local_rag.serving.unix_socket import SocketServer
from local_rag.serving.worker import LibraryWorker
from local_rag.web.guard import Guard, Limits, TooLargeError
from local_rag.web.pages import ask, documents, history, inspect, library
from local_rag.web.pages.base import Site, json_response, site_of, wants_json

_STATUS: dict[type[Exception], int] = {QuestionError: 400, LateBodyError: 400, TooLargeError: 413, BusyError: 429}
_STATIC = Path(__file__).parent / "static"


def make_app(
    worker: LibraryWorker,
    *,
    hosts: Collection[str],
    token: str = "",
    tls: bool = False,
    port: int | None = None,
    with_socket: bool = False,
    limits: Limits = Limits(),  # noqa: B008
    interfaces: Sequence[Interface] = (),
) -> Guard:
    """Return the whole application; it starts the worker and closes it at the end.

    `with_socket` answers the command line of the same user, `interfaces` are those beside the page.
    """
    service = WorkerService(worker)
    added = [interface(service) for interface in interfaces]

    @asynccontextmanager
    async def life(_app: Starlette) -> AsyncIterator[None]:
        worker.start()
        worker.wake()
        socket = SocketServer(service) if with_socket else None
        if socket:
            await socket.open()
        async with AsyncExitStack() as stack:
            for _, life_of_interface in added:
                await stack.enter_async_context(life_of_interface())
            yield
        if socket:
            await socket.close()
        await asyncio.to_thread(worker.close)

    pages = (route for page in (ask, documents, library, inspect, history) for route in page.ROUTES)
    others = (route for routes, _ in added for route in routes)
    app = Starlette(
        routes=[*pages, *others, Mount("/static", StaticFiles(directory=_STATIC))],
        exception_handlers={LocalRagError: _expected, HTTPException: _refused, Exception: _failed},
        lifespan=life,
    )
    app.state.site, app.state.pace = Site(service, port=port), library.Pace()
    app.state.drawing = asyncio.Semaphore(documents.DRAWN_AT_ONCE)
    return Guard(app, hosts=hosts, token=token, tls=tls, limits=limits)


async def _expected(request: Request, error: Exception) -> Response:
    return await _message(request, str(error), _STATUS.get(type(error), 503))


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = "There is no such page." if error.status_code == 404 else error.detail  # noqa: PLR2004
    return await _message(request, text, error.status_code)


async def _failed(request: Request, error: Exception) -> Response:
    traceback.print_exception(error, file=sys.stderr)
    return await _message(request, "This failed; see what `local-rag serve` has printed.", 500)


async def _message(request: Request, message: str, status: int) -> Response:
    if wants_json(request):
        return json_response({"error": message}, status)
    return await site_of(request).show(request, "message.html", status=status, message=message)
