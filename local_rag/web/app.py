"""Put the pages together behind the guard."""

import asyncio
import sys
import traceback
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import MappingProxyType

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount
from starlette.staticfiles import StaticFiles

from local_rag.errors import BusyError, LocalRagError, QuestionError
from local_rag.serving.worker import Owner
from local_rag.web.desk import Desk, Face
from local_rag.web.guard import Guard, Limits, TooLargeError
from local_rag.web.pages.ask import asking_routes
from local_rag.web.pages.base import Site, json_response, wants_json
from local_rag.web.pages.documents import reading_routes
from local_rag.web.pages.history import history_routes
from local_rag.web.pages.inspect import inspector_routes
from local_rag.web.shell import Shell

_STATUS: dict[type[Exception], int] = {QuestionError: 400, TooLargeError: 413, BusyError: 429}
_STATIC = Path(__file__).parent / "static"


def make_app(
    owner: Owner,
    *,
    hosts: Collection[str],
    token: str = "",
    tls: bool = False,
    port: int | None = None,
    shell: Shell | None = None,
    limits: Limits = Limits(),  # noqa: B008
    faces: Mapping[str, Face] = MappingProxyType({}),
) -> Guard:
    """Return the whole application; it starts the owner, and closes it at the end.

    `faces` are other rooms' routes, each by the name under which the audit log has what is asked there.
    """
    site = Site(owner, port=port)
    added = [face(Desk(site, route)) for route, face in faces.items()]

    @asynccontextmanager
    async def life(_app: Starlette) -> AsyncIterator[None]:
        owner.start()
        if shell:
            await shell.open(site)
        async with AsyncExitStack() as stack:
            for _, life_of_face in added:
                await stack.enter_async_context(life_of_face())
            yield
        if shell:
            await shell.close()
        await asyncio.to_thread(owner.close)

    async def expected(request: Request, error: Exception) -> Response:
        status = _STATUS.get(type(error), 503)
        return await _message(site, request, str(error), status)

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        text = "There is no such page." if error.status_code == 404 else error.detail  # noqa: PLR2004
        return await _message(site, request, text, error.status_code)

    async def failed(request: Request, error: Exception) -> Response:
        traceback.print_exception(error, file=sys.stderr)
        return await _message(site, request, "This failed; see what `local-rag serve` has printed.", 500)

    app = Starlette(
        routes=[
            *asking_routes(site),
            *reading_routes(site),
            *inspector_routes(site),
            *history_routes(site),
            *(route for routes, _ in added for route in routes),
            Mount("/static", StaticFiles(directory=_STATIC)),
        ],
        exception_handlers={LocalRagError: expected, HTTPException: refused, Exception: failed},
        lifespan=life,
    )
    return Guard(app, hosts=hosts, token=token, tls=tls, limits=limits)


async def _message(site: Site, request: Request, message: str, status: int) -> Response:
    if wants_json(request):
        return json_response({"error": message}, status)
    return await site.show(request, "message.html", status=status, message=message)
