"""The page that changes the documents: files and folders are added, indexed again, watched, removed and erased."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from local_rag.errors import ForbiddenError, MissingError, QuestionError
from local_rag.serving.http import require_role
from local_rag.web.changes.allowed_folders import MayAdd
from local_rag.web.changes.document_changes import Tasks, TaskView
from local_rag.web.changes.uploads import MOST_BYTES, MOST_FILES, RefusedFileError, add_file, folder_of
from local_rag.web.site import (
    caller_of,
    form_of,
    json_response,
    library_of,
    parse_number,
    person_of,
    site_of,
    text_field,
    wants_json,
)

_MOST_FIELDS = 20


@dataclass(frozen=True, slots=True)
class Changes:
    """What changes the documents of a library that is served: its tasks, and the folders from which may be added."""

    tasks: Tasks
    may_add: MayAdd


def may_change(request: Request) -> bool:
    """Return whether this person may change documents; without a token, only where --may-add says so."""
    protected = request.scope["local_rag"].can_log_out or bool(_changes(request).may_add)
    return protected and person_of(request).may("editor")


def task_of(request: Request) -> TaskView:
    """Return what is being done, as this person may know it: numbers and names are of the whole library."""
    tasks, person = _changes(request).tasks, person_of(request).id
    if library_of(request).is_whole:
        return tasks.view(person)
    view = tasks.view(person, whole=False)
    return TaskView(view.running, view.what, waiting=view.waiting, watching=view.watching, mine=view.mine)


def form(request: Request) -> Response:
    """Show what may be added: files, and the folders of the server."""
    _require(request)
    return _page(request, below=request.query_params.get("below", ""))


async def add(request: Request) -> Response:
    """Add files, or a file or folder of the server."""
    _require(request)
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        return await _add_files(request)
    fields, library = await form_of(request), library_of(request)
    named = text_field(fields, "path")
    if not named:
        raise QuestionError("Nothing was named; choose files, or a folder of the server.")
    if not library.is_whole:
        raise ForbiddenError("You may see only a part of this library, so you add files and no folders of the server.")
    path = await site_of(request).aside(lambda: _changes(request).may_add.require(named))
    return await _added(request, [path], [], index=[path])


async def _add_files(request: Request) -> Response:
    folder = folder_of(library_of(request).folder, person_of(request))
    async with request.form(max_files=MOST_FILES, max_fields=_MOST_FIELDS) as fields:
        files = [one for one in fields.getlist("files") if isinstance(one, UploadFile) and one.filename]
        if not files:
            raise QuestionError("No file was sent; choose some in the field `files`.")

        def write() -> tuple[list[tuple[Path, bool]], list[tuple[str, str]]]:
            added, refused = list[tuple[Path, bool]](), list[tuple[str, str]]()
            for one in files:
                try:
                    added.append(add_file(folder, one.filename or "", one.file))
                except RefusedFileError as error:
                    refused.append((one.filename or "", str(error)))
            return added, refused

        added, refused = await asyncio.to_thread(write)
    again = [path for path, known in added if known]  # perhaps removed from the library since
    return await _added(request, [path for path, _ in added], refused, index=[folder, *again])


async def _added(
    request: Request, added: Sequence[Path], refused: Sequence[tuple[str, str]], *, index: Sequence[Path]
) -> Response:
    """Have what was added indexed, and say what was not."""
    site = site_of(request)
    if added:
        await site.aside(lambda: site.service.record_change("add", added, caller_of(request)))
        _changes(request).tasks.submit("index", index, person_of(request).id)
    if wants_json(request):
        said = {"added": list(map(str, added)), "refused": [{"name": name, "reason": why} for name, why in refused]}
        return json_response(said, 200 if added else 400)
    if refused:
        return await site.aside(lambda: _page(request, added=added, refused=refused))
    return RedirectResponse("/library/add", 303)


async def index(request: Request) -> Response:
    """Bring the library up to date with all its folders."""
    _require(request)
    _changes(request).tasks.submit("index", person=person_of(request).id)
    return _back(request)


async def watch(request: Request) -> Response:
    """Index changes as they happen, or no longer."""
    _require(request)
    fields = await form_of(request)
    _changes(request).tasks.watch(on=text_field(fields, "on") == "1", person=person_of(request).id)
    return _back(request)


async def stop(request: Request) -> Response:
    """Stop what this person has ordered; what is finished is kept."""
    _require(request)
    _changes(request).tasks.stop(person_of(request).id)
    return _back(request)


async def remove(request: Request) -> Response:
    """Remove a document or an indexed folder from the library, or erase it, once that is confirmed."""
    _require(request)
    site, fields = site_of(request), await form_of(request)
    path = await site.aside(lambda: _named(request, fields))
    erase = text_field(fields, "how") == "erase"
    if erase:
        require_role(request.scope, "owner")
    if not fields.get("confirmed"):
        shown = {"path": path, "document": fields.get("document", ""), "folder": fields.get("root", "")}
        return await site.show(request, "remove.html", **shown)
    await site.aside(
        lambda: site.service.record_change("erase" if erase else "remove", [Path(path)], caller_of(request))
    )
    if erase:
        await site.aside(lambda: site.service.library.order_erasing([path]))
        _changes(request).tasks.submit("erase")
    else:
        _changes(request).tasks.submit("remove", [path], person_of(request).id)
    return _back(request)


def task(request: Request) -> Response:
    """Return the part of the page that shows what is being done; a header says whether anything is."""
    view = task_of(request)
    html = site_of(request).fragment("task.html", task=view, may_change=may_change(request))
    return HTMLResponse(html, headers={"x-local-rag-running": "yes" if view.running else "no"})


ROUTES = (
    Route("/library/add", form),
    Route("/library/add", add, methods=["POST"]),
    Route("/library/index", index, methods=["POST"]),
    Route("/library/watch", watch, methods=["POST"]),
    Route("/library/stop", stop, methods=["POST"]),
    Route("/library/remove", remove, methods=["POST"]),
    Route("/library/task", task),
)


def _changes(request: Request) -> Changes:
    changes: Changes = request.app.state.changes
    return changes


def _require(request: Request) -> None:
    require_role(request.scope, "editor")
    if not may_change(request):
        raise ForbiddenError(
            "Without a token everybody on this machine could change the documents; serve with a token, or name a "
            "folder with --may-add."
        )


def _named(request: Request, fields: dict[str, Any]) -> str:
    """Return the path of the document or root that is to be removed; raise MissingError for any other."""
    library = library_of(request)
    if number := parse_number(str(fields.get("document") or "")):
        return library.document(number, with_text=False).path
    root = text_field(fields, "root")
    if root not in map(str, library.contents().roots) or not library.is_whole:
        raise MissingError("This is no document or folder of the library; choose one of the page.")
    return root


def _back(request: Request) -> Response:
    if wants_json(request):
        return json_response(task_of(request))
    return RedirectResponse("/library", 303)


def _page(
    request: Request, *, below: str = "", added: Sequence[Path] = (), refused: Sequence[tuple[str, str]] = ()
) -> Response:
    may_add, whole = _changes(request).may_add, library_of(request).is_whole
    folder = may_add.require(below) if below and whole else None
    listed = may_add.below(folder) if folder and folder.is_dir() else list(may_add.folders) if whole else []
    return site_of(request).page(
        request,
        "add.html",
        task=task_of(request),
        may_change=True,
        folder=folder,
        up=folder.parent if folder and folder not in may_add.folders else None,
        listed=[(path, path.is_dir()) for path in listed],
        added=added,
        refused=refused,
        most_files=MOST_FILES,
        most_bytes=MOST_BYTES,
        uploads=folder_of(library_of(request).folder, person_of(request)),
    )
