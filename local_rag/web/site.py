"""What all pages share: the service they ask, the templates, and the check that nothing can leave this process."""

import functools
import json
import threading
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from local_rag.asking import Person
from local_rag.display import display_path, one_line, printable_json
from local_rag.errors import QuestionError
from local_rag.offline import can_filter, left_open, open_ways
from local_rag.serving.http import caller_of as caller
from local_rag.serving.http import cookie_in
from local_rag.serving.http import person_of as person
from local_rag.serving.open_history import History
from local_rag.serving.requests import Caller
from local_rag.serving.service import WorkerService
from local_rag.view import View
from local_rag.web.gate.guard import ROOT
from local_rag.web.static_files import style

T = TypeVar("T")
Named = Sequence[tuple[str, str]]
THEME_COOKIE = "local_rag_theme"
THEMES = ("auto", "light", "dark")
_SEAL_SECONDS = 10.0
_MOST_FIELDS = 50
_LARGEST_ID = 10**18 - 1  # SQLite holds larger ones, no library has them


@dataclass(frozen=True, slots=True)
class Badge:
    """Whether the network is closed to this process, and what is open or cannot be closed."""

    sealed: bool
    ways: tuple[str, ...]
    notes: tuple[str, ...]


class Seal:
    """Try every way out of this process, and remember the result for a few seconds."""

    def __init__(self, port: int | None) -> None:
        self._port, self._lock = port, threading.Lock()
        self._badge, self._checked = Badge(False, (), ()), -_SEAL_SECONDS

    def badge(self) -> Badge:
        """Return the result of the check."""
        with self._lock:
            if time.monotonic() - self._checked >= _SEAL_SECONDS:
                ways = tuple(open_ways(serving=self._port))
                self._badge = Badge(not ways and can_filter(), ways, tuple(left_open()))
                self._checked = time.monotonic()
            return self._badge


class Site:
    """Answer requests with pages, or with JSON if the client asks for it.

    The addresses of its pages begin with `root`; `libraries` are those of the server, each with its root.
    """

    def __init__(
        self, service: WorkerService, *, port: int | None = None, root: str = "", libraries: Named = ()
    ) -> None:
        self.service, self.seal = service, Seal(port)
        self._templates = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {"root": root, "libraries": libraries}
        self._templates.filters |= {"one_line": one_line, "short_path": display_path, "number": "{:,}".format}
        self._templates.filters["breakable"] = breakable

    def fragment(self, template: str, **values: Any) -> str:
        """Render a part of a page; text from documents and models is escaped."""
        return self._templates.get_template(template).render(**values)

    @staticmethod
    def style() -> Markup:
        """Return the style sheet to put into a file."""
        return Markup(style())  # noqa: S704  it is our own

    def page(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        """Render a whole page; this blocks, because it checks the seal."""
        theme, visit = cookie_in(request.headers.getlist("cookie"), THEME_COOKIE), request.scope["local_rag"]
        shared = {
            "badge": self.seal.badge() if visit.known else replace(self.seal.badge(), notes=(), ways=()),
            "problem": self.service.worker.problem if visit.known else "",
            "theme": theme if theme in THEMES else "auto",
            "here": request.url.path,
            "back": f"{request.url.path}?{request.url.query}".rstrip("?") if request.method == "GET" else "/",
            "logged_in": visit.can_log_out,
            "person": person_of(request),
        }
        if (
            not visit.known and ROOT in request.scope
        ):  # the form looks alike below all roots, whether there is a library
            shared["root"] = request.scope[ROOT]
        return HTMLResponse(self.fragment(template, **shared | values), status)

    async def aside(self, work: Callable[[], T]) -> T:
        """Do what reads the library, a disk or a template beside the event loop; raise LateError if it takes long."""
        return await self.service.aside(work)

    async def show(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        """Render a page aside."""
        return await self.aside(lambda: self.page(request, template, status=status, **values))


def breakable(path: str) -> Markup:
    """Return a path that may be wrapped behind each slash, and not only in the middle of a word."""
    return Markup("/<wbr>").join(path.split("/"))


def site_of(request: Request) -> Site:
    """Return the site that a request is for."""
    return cast(Site, request.app.state.site)


def aside(handler: Callable[[Request], Response]) -> Callable[[Request], Awaitable[Response]]:
    """Turn a handler that reads the library, a disk or a template into one that the event loop can wait for."""

    @functools.wraps(handler)
    async def handle(request: Request) -> Response:
        return await site_of(request).aside(lambda: handler(request))

    return handle


def caller_of(request: Request) -> Caller:
    """Return who asks, and through which route."""
    return caller(request.scope, request.url.path)


def person_of(request: Request) -> Person:
    """Return the person who asks."""
    return person(request.scope)


def library_of(request: Request) -> View:
    """Return the library as the person who asks may see it."""
    return site_of(request).service.library_for(person_of(request))


def may_record(request: Request) -> bool:
    """Return whether this person may add questions to the library's own evaluation dataset."""
    return library_of(request).settings.retention.conversations and person_of(request).may("editor")


def history_of(request: Request) -> AbstractContextManager[History]:
    """Open the history of the person who asks."""
    return site_of(request).service.history(person_of(request).id)


def wants_json(request: Request) -> bool:
    """Return whether the client is a program, which wants no page."""
    asked = request.query_params.get("format") == "json"
    accepted = request.headers.get("accept", "")
    return asked or ("application/json" in accepted and "text/html" not in accepted)


def json_response(value: object, status: int = 200) -> Response:
    """Return records as JSON, as the command line prints it."""
    return Response(printable_json(value) + "\n", status, media_type=JSONResponse.media_type)


async def form_of(request: Request) -> dict[str, Any]:
    """Return the fields of a form or of a JSON object."""
    body = await request.body()
    try:
        if request.headers.get("content-type", "").startswith("application/json"):
            fields = json.loads(body or b"{}")
            json.dumps(fields, ensure_ascii=False).encode()  # half a surrogate pair can be written nowhere
            if isinstance(fields, dict):
                return fields
            raise QuestionError('The body is not a JSON object; send `{"question": ...}`.')
        return dict(parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_FIELDS))
    except (ValueError, RecursionError) as error:
        raise QuestionError("The form cannot be read; send UTF-8 as a form or as JSON.") from error


def local_address(text: str) -> str:
    """Return an address to go to if it lies on this server: a browser takes two slashes for another host."""
    return text if text.startswith("/") and text[1:2] not in ("/", "\\") and text.isprintable() else "/"


def text_field(fields: Mapping[str, Any], name: str) -> str:
    """Return a field that is text, empty if there is none."""
    value = fields.get(name, "")
    return value if isinstance(value, str) else ""


def number_field(fields: Mapping[str, Any], name: str, largest: int = 1000) -> int | None:
    """Return a field that is a number from 1 to `largest`, None if there is none; raise QuestionError for others."""
    text = str(fields.get(name) or "")
    if not text:
        return None
    number = parse_number(text, largest)
    if not number:
        raise QuestionError(f"The field {name} is {text[:20]!r}; give a number from 1 to {largest:,}.")
    return number


def parse_number(text: str, largest: int = _LARGEST_ID) -> int | None:
    """Return a number in ASCII digits from 0 to `largest`, None for any other text."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(largest))):
        return None
    return int(text) if int(text) <= largest else None
