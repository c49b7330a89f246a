"""What every page shares: the owner of the library, the templates, the badge of the seal, the log of who asked what."""

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from local_rag.display import display_path, one_line, printable_json
from local_rag.errors import LibraryError, LocalRagError, StoppedError
from local_rag.library import Library
from local_rag.offline import can_filter, left_open, open_ways
from local_rag.serving.worker import Job, Owner
from local_rag.store.history import History
from local_rag.web.guard import client_of

AUDIT_FILE = "audit.jsonl"
THEME_COOKIE = "local_rag_theme"
THEMES = ("auto", "light", "dark")
_FOLDER = Path(__file__).parents[1]
_SEAL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Badge:
    """Whether nothing can leave this process, as its own check has just found, and what is open or cannot be closed."""

    sealed: bool
    ways: tuple[str, ...]
    notes: tuple[str, ...]


class Seal:
    """Try every way out of this process, at most every ten seconds."""

    def __init__(self, port: int | None) -> None:
        self._port, self._lock = port, threading.Lock()
        self._badge, self._checked = Badge(False, (), ()), -_SEAL_SECONDS

    def badge(self) -> Badge:
        """Return what the check finds."""
        with self._lock:
            if time.monotonic() - self._checked >= _SEAL_SECONDS:
                ways = tuple(open_ways(serving=self._port))
                self._badge = Badge(not ways and can_filter(), ways, tuple(left_open()))
                self._checked = time.monotonic()
            return self._badge


class Site:
    """Answer requests with pages, or with JSON where that is asked for."""

    def __init__(self, owner: Owner, *, port: int | None = None) -> None:
        self.owner, self.seal = owner, Seal(port)
        self._unkept: History | None = None
        self._templates = Environment(
            loader=FileSystemLoader(_FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters |= {"one_line": one_line, "short_path": display_path, "number": "{:,}".format}

    def fragment(self, template: str, **values: Any) -> str:
        """Render a part of a page; whatever comes from documents and models is escaped."""
        return self._templates.get_template(template).render(**values)

    @contextmanager
    def history(self) -> Iterator[History]:
        """Yield the history; where none may be kept, one that lasts as long as the server."""
        library, kept = self.owner.library, None
        with suppress(LibraryError):  # one that is damaged is no reason not to answer
            kept = History(library.folder, kept=library.settings.history)
        if kept and kept.kept:
            with closing(kept):
                yield kept
        else:
            self._unkept = self._unkept or kept or History(library.folder, kept=False)
            yield self._unkept

    @staticmethod
    def style() -> Markup:
        """Return the style sheet, which is ours, to be put into a file."""
        return Markup((_FOLDER / "static" / "page.css").read_text(encoding="utf-8"))  # noqa: S704

    def page(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        """Render a whole page; it runs the check of the seal, which blocks."""
        theme = request.cookies.get(THEME_COOKIE, "auto")
        shared = {
            "badge": self.seal.badge(),
            "problem": self.owner.problem,
            "theme": theme if theme in THEMES else "auto",
            "here": request.url.path,
            "back": f"{request.url.path}?{request.url.query}".rstrip("?") if request.method == "GET" else "/",
            "logged_in": request.scope.get("local_rag", {}).get("needs_token", False),
            "library_name": self.owner.library.folder.parent.name or "library",
        }
        return HTMLResponse(self.fragment(template, **shared | values), status)

    async def show(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        """Render a page in a thread of its own."""
        return await asyncio.to_thread(lambda: self.page(request, template, status=status, **values))

    async def outcome(self, request: Request, work: Callable[[Library, Job], Any]) -> Any:
        """Do work on the library and return its result; it is stopped where whoever asked goes away."""
        job = self.owner.submit(work, client=client_of(request.scope))
        try:
            return await unless_gone(request.receive, asyncio.wrap_future(job.result))
        finally:
            self.owner.stop(job)

    def audit(self, request: Request, question: str) -> None:
        """Write down who asked what, where the setting says so."""
        self.audit_as(client_of(request.scope), request.url.path, question)

    def audit_as(self, client: str, route: str, question: str) -> None:
        """Write a line of the audit log."""
        library = self.owner.library
        if not library.settings.audit_log:
            return
        line = {"time": datetime.now(UTC).isoformat(timespec="seconds"), "client": client, "route": route}
        path = library.folder / AUDIT_FILE
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with os.fdopen(descriptor, "a", encoding="utf-8") as file:
                file.write(json.dumps(line | {"question": question}) + "\n")
        except OSError as error:
            raise LocalRagError(
                f"{path} cannot be written ({error.strerror}), so that no question is answered; make it writable or "
                "turn the setting audit_log off."
            ) from None


def wants_json(request: Request) -> bool:
    """Say whether a program asks, which wants no page."""
    asked = request.query_params.get("format") == "json"
    accepted = request.headers.get("accept", "")
    return asked or ("application/json" in accepted and "text/html" not in accepted)


def json_response(value: object, status: int = 200) -> Response:
    """Return records as JSON, as the command line prints it."""
    return Response(printable_json(value) + "\n", status, media_type=JSONResponse.media_type)


async def unless_gone(receive: Callable[[], Any], done: asyncio.Future[Any]) -> Any:
    """Wait for what was asked for; it is stopped where whoever asked goes away."""
    gone = asyncio.ensure_future(until_gone(receive))
    try:
        await asyncio.wait({done, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not done.done():
            raise StoppedError("The answer was stopped.")
        return done.result()
    finally:
        gone.cancel()
        with suppress(BaseException):
            done.cancel() or done.exception()


async def until_gone(receive: Callable[[], Any]) -> None:
    """Wait until whoever asked has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass
