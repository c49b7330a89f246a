"""What all pages share: their requests, the templates, the style, and the check that nothing can leave this process."""

import asyncio
import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from local_rag.asking import KeptWork, Person, PersonRole
from local_rag.display import Name, display_path, duration, one_line
from local_rag.document_records import page_number
from local_rag.errors import ForbiddenError, LibraryError
from local_rag.offline import can_filter, left_open, open_ways
from local_rag.serving.background_runs import QuestionLists, TableRuns
from local_rag.serving.cached_answers import OpenHistory
from local_rag.serving.http import caller_of, cookie_in, json_response, person_of, unless_gone
from local_rag.serving.job import Job
from local_rag.serving.requests import Caller
from local_rag.serving.service import Service
from local_rag.view import View
from local_rag.web.changes.additions import AllowedFolders
from local_rag.web.changes.document_changes import DocumentChanges
from local_rag.web.forms import read_form
from local_rag.web.gate.guard import ROOT, Visit
from local_rag.web.views.document_html import show_line

T = TypeVar("T")
Named = Sequence[tuple[str, str]]
THEME_COOKIE = "local_rag_theme"
THEMES = ("auto", "light", "dark")
_SEAL_SECONDS = 10.0
# The four places, and what is done in the third: each address with its name and what it is for.
PLACES = {"Ask": "/", "Library": "/library", "Work": "/work", "People": "/people"}
WORK = (
    ("/tables", "Table of answers", "Ask every document the same questions; each cell has its quotation."),
    ("/questions", "Questions of a file", "Answer all questions of a spreadsheet or a list, one after the other."),
    ("/verify", "Check a text", "Compare each statement of a text with the documents; the text is not kept."),
    ("/diff", "What changed", "Compare two documents, or the two newest versions of one."),
    ("/brief", "Brief", "What documents say, in a few lines that are all quotations."),
)
_PLACE_OF = {"library": "Library", "document": "Library", "work": "Work", "people": "People"}
_PLACE_OF |= {address[1:]: "Work" for address, *_ in WORK}
TABLE_TYPES = {
    ".csv": "text/csv; charset=utf-8",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".jsonl": "application/x-ndjson",
}
# The page's own style and script are read once, and sent without a look at the disk.
_TYPES = {".css": "text/css", ".js": "text/javascript"}
_FILES = {path.name: path.read_bytes() for path in (Path(__file__).parent / "static").glob("page.*")}
_VERSIONS = {name: hashlib.sha256(content).hexdigest()[:24] for name, content in _FILES.items()}


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
    """What the pages ask and change, and their templates.

    `changes` are those of the documents, which may be added from below the `allowed` folders; `lists` are those of
    questions, and `tables` those that are extracted. The addresses of the pages begin with `root`; `libraries` are
    those of the server, each with its root.
    """

    def __init__(
        self,
        service: Service,
        changes: DocumentChanges,
        allowed: AllowedFolders,
        lists: QuestionLists,
        tables: TableRuns,
        *,
        port: int | None = None,
        root: str = "",
        libraries: Named = (),
    ) -> None:
        self.service, self.changes, self.allowed = service, changes, allowed
        self.lists, self.tables = lists, tables
        self.seal, self.root = Seal(port), root
        self._templates = Environment(
            loader=FileSystemLoader(Path(__file__).parent / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals |= {"root": root, "libraries": libraries, "versions": _VERSIONS}
        self._templates.filters |= {"one_line": one_line, "short_path": display_path, "number": "{:,}".format}
        self._templates.filters["page_number"] = page_number
        # A path may be wrapped behind each slash, and not only in the middle of a word.
        self._templates.filters["breakable"] = lambda path: Markup("/<wbr>").join(path.split("/"))
        self._templates.filters |= {"duration": duration, "struck": show_line}

    def fragment(self, template: str, **values: Any) -> str:
        """Render a part of a page; text from documents and models is escaped."""
        return self._templates.get_template(template).render(**values)


def style() -> Markup:
    """Return the style sheet to put into a file."""
    return Markup(_FILES["page.css"].decode())  # noqa: S704  it is our own


class PageRequest(Request):
    """A request for a page: who sends it, what this person may see, and how it is answered."""

    @property
    def site(self) -> Site:
        """Return the site that it is for."""
        return cast(Site, self.app.state.site)

    @property
    def service(self) -> Service:
        """Return what is asked."""
        return self.site.service

    @property
    def visit(self) -> Visit:
        """Return what the checks before every route have found out."""
        return cast(Visit, self.scope["local_rag"])

    @property
    def person(self) -> Person:
        """Return the person who asks."""
        return person_of(self.scope)

    @property
    def caller(self) -> Caller:
        """Return who asks, and through which route."""
        return caller_of(self.scope, self.url.path)

    @property
    def library(self) -> View:
        """Return the library as the person who asks may see it."""
        return self.service.library_for(self.person)

    @cached_property
    def _names(self) -> Name:
        return self.library.documents.place_names()

    def name_of(self, path: Path | str) -> str:
        """Return a path or place as it is named to everybody: from its indexed folder on, as in JSON."""
        return self._names(path)

    def history(self) -> OpenHistory:
        """Open the history of the person who asks."""
        return self.service.history(self.person.id)

    def epoch(self) -> int:
        """Return what says until when something that begins now may be kept; nothing may if that is not known."""
        with suppress(LibraryError), self.history() as history:
            return history.epoch()
        return -1

    def remember(self, form: str, query: Any, name: str, said: str, documents: Sequence[str], *, epoch: int) -> None:
        """Keep what this person did with a form, for the place of work; no page fails where that cannot be."""
        work = KeptWork(form, f"{form}?{urlencode(query)}", name, said, tuple(documents))
        with suppress(LibraryError), self.history() as history:
            history.put_work(work, epoch=epoch)

    @property
    def may_record(self) -> bool:
        """Return whether this person may add questions to the library's own evaluation dataset."""
        return self.library.settings.retention.conversations and self.person.may("editor")

    @property
    def may_manage(self) -> bool:
        """Return whether this person may say who uses the library: an owner of all of it, where tokens count."""
        return self.visit.can_log_out and self.person.may("owner") and not self.person.limits

    @property
    def may_rate(self) -> bool:
        """Return whether it can be said of an answer whether it was right, which is kept in a file."""
        return self.library.settings.retention.conversations

    def require(self, role: PersonRole) -> None:
        """Raise ForbiddenError unless the person who asks may do what this role may do."""
        if not self.person.may(role):
            article = "an" if role[0] in "aeiou" else "a"
            raise ForbiddenError(f"This needs the role of {article} {role}; ask who serves this library.")

    @property
    def wants_json(self) -> bool:
        """Whether the client is a program, which wants no page."""
        accepted = self.headers.get("accept", "")
        wants = "application/json" in accepted and "text/html" not in accepted
        return wants or self.query_params.get("format") == "json"

    async def fields(self) -> dict[str, Any]:
        """Return the fields of a form or of a JSON object."""
        is_json = self.headers.get("content-type", "").startswith("application/json")
        return read_form(await self.body(), is_json=is_json)

    async def aside(self, work: Callable[[], T]) -> T:
        """Do what reads the library, a disk or a template beside the event loop; raise LateError if it takes long."""
        return await self.service.aside(work, client=self.caller.key)

    async def outcome(self, job: Job[T]) -> T:
        """Return the result of a job, which is stopped once the client has gone."""
        return await unless_gone(self.receive, job.outcome())

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Render a whole page; this blocks, because it checks the seal."""
        badge, known = self.site.seal.badge(), self.visit.known
        theme = cookie_in(self.headers.getlist("cookie"), THEME_COOKIE)
        path = self.url.path
        place = _PLACE_OF.get(path.split("/")[1], "" if path in ("/login", "/health") else "Ask")
        shared = {
            "places": [(at, name) for name, at in PLACES.items() if name != "People" or (known and self.may_manage)],
            "place": place,
            "work": WORK,
            "badge": badge if known else replace(badge, notes=(), ways=()),
            "problem": self.service.worker.problem if known else "",
            "theme": theme if theme in THEMES else "auto",
            "here": self.site.root + path,
            "back": f"{path}?{self.url.query}".rstrip("?") if self.method == "GET" else "/",
            "logged_in": self.visit.can_log_out,
            "person": self.person,
            "known": known,
            "name_of": self.name_of,
        }
        if not known and ROOT in self.scope:  # the form looks alike below all roots, whether there is a library
            shared["root"] = self.scope[ROOT]
        return HTMLResponse(self.site.fragment(template, **shared | values), status)

    def part(self, template: str, *, running: bool, **values: Any) -> Response:
        """Render a part of a page that is asked for again and again while something is `running`."""
        html = self.site.fragment(template, **values)
        return HTMLResponse(html, headers={"x-local-rag-running": "yes" if running else "no"})

    def page_or_part(self, page: str, part: str, **values: Any) -> Response:
        """Render a whole page, or where the address asks for it that part alone."""
        is_part = self.query_params.get("part")
        return self.part(part, running=False, **values) if is_part else self.page(page, **values)

    def done(self, page: str, value: object = None) -> Response:
        """Lead to a page that shows what has been done, or return a value to a program that wants one."""
        return json_response(value) if value is not None and self.wants_json else RedirectResponse(page, 303)


def page_route(route: Route) -> Route:
    """Return a route whose handler gets a PageRequest, and does beside the event loop what does not wait."""
    handler = route.endpoint

    async def handle(request: Request) -> Response:
        asked = PageRequest(request.scope, request.receive)
        if asyncio.iscoroutinefunction(handler):
            return cast(Response, await handler(asked))
        return await asked.aside(lambda: cast(Response, handler(asked)))

    return Route(route.path, handle, methods=list(route.methods or ()))


def attachment(content: str | bytes, name: str, media_type: str, policy: str = "") -> Response:
    """Return a file to be saved; what a browser that opens it may do is told by the policy."""
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    return Response(
        content, media_type=media_type, headers=headers | ({"content-security-policy": policy} if policy else {})
    )


async def own_file(request: PageRequest) -> Response:
    """Return the style or the script, which a browser may keep if the address names the version that it got."""
    name = request.path_params["name"]
    if (content := _FILES.get(name)) is None:
        raise HTTPException(404)
    version = _VERSIONS[name]
    tag, lasts = f'"{version}"', request.query_params.get("v") == version
    # Of another address, a browser asks whether its copy is still the same.
    headers = {"etag": tag, "cache-control": "max-age=31536000, immutable" if lasts else "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=_TYPES[Path(name).suffix], headers=headers)


ROUTES = (Route("/static/{name}", own_file),)
