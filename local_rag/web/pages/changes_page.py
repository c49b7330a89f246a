"""The page that changes the documents: files and folders are added, indexed again, watched, removed and erased."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from starlette.datastructures import UploadFile
from starlette.responses import Response
from starlette.routing import Route

from local_rag.catalogue.browsing import ORDERS, Look, Order
from local_rag.errors import ForbiddenError, MissingError, QuestionError
from local_rag.serving.http import json_response
from local_rag.web.changes.additions import MOST_BYTES, MOST_FILES, RefusedFileError, add_file, folder_of
from local_rag.web.changes.document_changes import ChangeView
from local_rag.web.forms import DOCUMENT, list_field, parse_number, text_field
from local_rag.web.site import PageRequest

_MOST_FIELDS = 20
_LONGEST_SEARCH = 200  # characters
_UNPROTECTED = (
    "Without a token everybody on this machine could change the documents; serve with a token, or name a folder with "
    "--may-add."
)


def may_change(request: PageRequest) -> bool:
    """Return whether this person may change documents; without a token, only where --may-add says so."""
    protected = request.visit.can_log_out or bool(request.site.allowed)
    return protected and request.person.may("editor")


def change_of(request: PageRequest) -> ChangeView:
    """Return what is being done, as this person may know it: numbers and names are of the whole library."""
    return request.site.changes.view(request.person.id, whole=request.library.documents.are_all_seen)


def look_of(fields: Mapping[str, Any]) -> Look:
    """Return which documents the fields of an address or a form ask for."""
    order: Order = next((one for one in ORDERS if one == fields.get("sort")), "path")
    return Look(
        folder=text_field(fields, "folder"),
        words=text_field(fields, "q")[:_LONGEST_SEARCH],
        part=fields.get("show") == "part",
        order=order,
        down=bool(fields.get("down")),
    )


def form(request: PageRequest) -> Response:
    """Show what may be added: files, and the folders of the server."""
    _require(request)
    return _page(request, below=request.query_params.get("below", ""))


async def add(request: PageRequest) -> Response:
    """Add files, or a file or folder of the server."""
    _require(request)
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        return await _add_files(request)
    named = text_field(await request.fields(), "path")
    if not named:
        raise QuestionError("Nothing was named; choose files, or a folder of the server.")
    if not request.library.documents.are_all_seen:
        raise ForbiddenError("You may see only a part of this library, so you add files and no folders of the server.")
    path = await request.aside(lambda: request.site.allowed.require(named))
    return await _added(request, [path], [], index=[path])


async def _add_files(request: PageRequest) -> Response:
    folder = folder_of(request.library.folder, request.person)
    async with request.form(max_files=MOST_FILES, max_fields=_MOST_FIELDS) as fields:
        files = [file for file in fields.getlist("files") if isinstance(file, UploadFile) and file.filename]
        if not files:
            raise QuestionError("No file was sent; choose some in the field `files`.")

        def write() -> tuple[list[tuple[Path, bool]], list[tuple[str, str]]]:
            added, refused = list[tuple[Path, bool]](), list[tuple[str, str]]()
            for file in files:
                try:
                    added.append(add_file(folder, file.filename or "", file.file))
                except RefusedFileError as error:
                    refused.append((file.filename or "", str(error)))
            return added, refused

        added, refused = await asyncio.to_thread(write)
    again = [path for path, known in added if known]  # perhaps removed from the library since
    return await _added(request, [path for path, _ in added], refused, index=[folder, *again])


async def _added(
    request: PageRequest, added: Sequence[Path], refused: Sequence[tuple[str, str]], *, index: Sequence[Path]
) -> Response:
    """Have what was added indexed, and say what was not."""
    if added:
        await request.aside(lambda: request.service.record(request.caller, change="add", paths=list(map(str, added))))
        request.site.changes.submit("index", index, request.person.id)
    if request.wants_json:
        reasons = [{"name": name, "reason": reason} for name, reason in refused]
        return json_response({"added": list(map(str, added)), "refused": reasons}, 200 if added else 400)
    if refused:
        return await request.aside(lambda: _page(request, added=added, refused=refused))
    return request.done("/library/add")


async def index(request: PageRequest) -> Response:
    """Bring the library up to date with all its folders."""
    _require(request)
    request.site.changes.submit("index", person=request.person.id)
    return _back(request)


async def watch(request: PageRequest) -> Response:
    """Index changes as they happen, or no longer."""
    _require(request)
    on = text_field(await request.fields(), "on") == "1"
    request.site.changes.watch(on=on, person=request.person.id)
    return _back(request)


async def stop(request: PageRequest) -> Response:
    """Stop what this person has ordered; what is finished is kept."""
    _require(request)
    request.site.changes.stop(request.person.id)
    return _back(request)


async def remove(request: PageRequest) -> Response:
    """Remove documents or an indexed folder from the library, or erase them, once that is confirmed."""
    _require(request)
    fields = await request.fields()
    chosen = list_field(fields, DOCUMENT)
    do = "erase" if text_field(fields, "how") == "erase" else "remove"
    if do == "erase":
        request.require("owner")

    def carry_out() -> Response:
        paths = _named(request, fields, chosen)
        changed = bool(fields.get("all")) and str(fields["all"]) != str(len(paths))
        if changed or not fields.get("confirmed"):
            return request.page("remove.html", paths=paths, chosen=_again(fields, chosen, len(paths)), changed=changed)
        request.service.record(request.caller, change=do, paths=paths)
        if do == "erase":
            request.service.library.upkeep.order_erasing(paths)
            request.site.changes.submit("erase")
        else:
            request.site.changes.submit("remove", paths, request.person.id)
        return _back(request)

    return await request.aside(carry_out)


def task(request: PageRequest) -> Response:
    """Return the part of the page that shows what is being done; a header says whether anything is."""
    change = change_of(request)
    return request.part("task.html", running=change.running, task=change, may_change=may_change(request))


ROUTES = (
    Route("/library/add", form),
    Route("/library/add", add, methods=["POST"]),
    Route("/library/index", index, methods=["POST"]),
    Route("/library/watch", watch, methods=["POST"]),
    Route("/library/stop", stop, methods=["POST"]),
    Route("/library/remove", remove, methods=["POST"]),
    Route("/library/task", task),
)


def _require(request: PageRequest) -> None:
    request.require("editor")
    if not may_change(request):
        raise ForbiddenError(_UNPROTECTED)


def _named(request: PageRequest, fields: Mapping[str, Any], chosen: Sequence[str]) -> list[str]:
    """Return the paths of what is to be removed; raise MissingError for what this person does not see."""
    library = request.library
    if fields.get("all"):
        return library.documents.looked_at(look_of(fields))
    root = text_field(fields, "root")
    if root and root in map(str, library.documents.contents().roots) and library.documents.are_all_seen:
        return [root]
    paths = {number: path for path, number in library.documents.contents().documents.items()}
    numbers = [parse_number(one) or 0 for one in chosen]
    if root or not all(number in paths for number in numbers):
        raise MissingError("This is no document or folder of the library; choose one of the page.")
    if not numbers:
        raise QuestionError("No document was chosen; tick some on the page.")
    return list(dict.fromkeys(paths[number] for number in numbers))


def _again(fields: Mapping[str, Any], chosen: Sequence[str], count: int) -> list[tuple[str, str]]:
    """Return the fields of a form that names the same once more."""
    if fields.get("all"):
        looked = [(name, text_field(fields, name)) for name in ("folder", "q", "show")]
        return [("all", str(count)), *((name, value) for name, value in looked if value)]
    root = text_field(fields, "root")
    return [("root", root)] if root else [("document", one) for one in chosen]


def _back(request: PageRequest) -> Response:
    return request.done("/library", change_of(request))


def _page(
    request: PageRequest, *, below: str = "", added: Sequence[Path] = (), refused: Sequence[tuple[str, str]] = ()
) -> Response:
    allowed, whole = request.site.allowed, request.library.documents.are_all_seen
    folder = allowed.require(below) if below and whole else None
    listed = allowed.below(folder) if folder and folder.is_dir() else list(allowed.folders) if whole else []
    return request.page(
        "add.html",
        task=change_of(request),
        may_change=True,
        folder=folder,
        up=folder.parent if folder and folder not in allowed.folders else None,
        listed=[(path, path.is_dir()) for path in listed],
        added=added,
        refused=refused,
        most_files=MOST_FILES,
        most_bytes=MOST_BYTES,
        uploads=folder_of(request.library.folder, request.person),
    )
