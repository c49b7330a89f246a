"""The pages of a document: its text with one passage marked, its pages as images, and its file."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from local_rag.errors import LibraryError, MissingError, QuestionError, ReadError
from local_rag.files import open_in_place
from local_rag.reading.mailbox import mailbox_of
from local_rag.reading.read import read_bytes
from local_rag.view import View
from local_rag.web.forms import parse_number
from local_rag.web.page_drawings import PageDrawings
from local_rag.web.site import PageRequest
from local_rag.web.views.answer_view import STATES
from local_rag.web.views.document_view import path_key, view_document

_BLOCK = 256 * 1024
_MOVED = "The file was moved or deleted after indexing; its text is in the library."


class _Identifier(IntegerConvertor):
    """A number that SQLite can hold."""

    regex = "[0-9]{1,18}"


register_url_convertor("identifier", _Identifier())


async def document_list(_request: PageRequest) -> Response:
    """Lead to the page of the library, which lists the documents."""
    return RedirectResponse("/library", 303)


def document(request: PageRequest) -> Response:
    """Show a part of a document."""
    library, query = request.library, request.query_params
    chunk, place, of = known(request, "chunk"), query.get("at", ""), query.get("of", "")
    try:
        whole = library.document(request.path_params["document"])
    except MissingError:
        if (newer := _newer(library, of)) is None:
            raise
        return RedirectResponse(f"/document/{newer}?{urlencode({'at': place, 'of': of})}", 303)
    # The passage that stands for a whole document is none of its chunks.
    named = chunk and not place and not any(passage.chunk_id == chunk for passage in whole.passages)
    if named and library.passage(chunk).path != whole.path:
        raise MissingError("This passage belongs to another document; search again.")
    plain = query.get("view") == "lines"
    view = view_document(
        whole, chunk_id=chunk, place=place, start=offset(request, "from"), page=known(request, "page"), plain=plain
    )
    size = (0, 0)
    if (is_pdf := _is_pdf(whole.path)) and view.page is not None and not plain:
        marked = view.chunk.text if view.chunk else ""
        size = request.app.state.drawings.size(Path(whole.path), view.page, marked)
    return request.page("document.html", view=view, change=STATES[whole.state], is_pdf=is_pdf, plain=plain, size=size)


def _newer(library: View, of: str) -> int | None:
    """Return the document that a link leads to by its path, after it was indexed again."""
    documents = library.contents().documents if of else {}
    return next((number for path, number in documents.items() if path_key(path) == of), None)


async def page_image(request: PageRequest) -> Response:
    """Draw a page of a PDF with the words of a passage marked."""
    drawings: PageDrawings = request.app.state.drawings
    drawing = await request.aside(lambda: drawings.draw(*_page_of(request)))
    try:
        image = await asyncio.wrap_future(drawing)
    except ReadError as error:
        raise LibraryError(f"The page cannot be drawn: the file {error}.") from None
    return Response(image, media_type="image/png")


def original(request: PageRequest) -> Response:
    """Return the file itself, to be saved."""
    path = Path(request.library.document(request.path_params["document"], with_text=False).path)
    name = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._-") else "_" for sign in path.name)
    headers = {"content-disposition": f'attachment; filename="{name}"', "content-security-policy": "sandbox"}
    if mailbox_of(path) is not None and not path.parent.is_dir():
        try:
            return Response(read_bytes(path), media_type="application/octet-stream", headers=headers)
        except ReadError:
            raise MissingError(_MOVED) from None
    return StreamingResponse(_blocks(path, _size_of(path)), media_type="application/octet-stream", headers=headers)


ROUTES = (
    Route("/document/", document_list),
    Route("/document/{document:identifier}", document),
    Route("/document/{document:identifier}/page/{page:identifier}.png", page_image),
    Route("/document/{document:identifier}/file", original),
)


def _blocks(path: Path, size: int) -> Iterator[bytes]:
    with open_in_place(path) as file:
        while size > 0 and (block := file.read(min(_BLOCK, size))):
            size -= len(block)
            yield block


def _size_of(path: Path) -> int:
    """Return the size of a file that can be read; raise MissingError for any other."""
    try:
        with open_in_place(path) as file:
            return file.seek(0, 2)
    except OSError:
        raise MissingError(_MOVED) from None


def _is_pdf(path: str) -> bool:
    return path.lower().endswith(".pdf")


def _page_of(request: PageRequest) -> tuple[Path, int, str]:
    """Return the file of a PDF, the page, and the text of the passage to mark, empty if none is named."""
    library, chunk, page = request.library, known(request, "chunk"), int(request.path_params["page"])
    path = library.document(request.path_params["document"], with_text=False).path
    if not _is_pdf(path):
        raise MissingError("Only pages of a PDF are drawn.")
    _size_of(Path(path))
    try:
        passage = library.passage(chunk)
    except MissingError:
        return Path(path), page, ""
    return Path(path), page, passage.text if passage.path == path else ""


def offset(request: PageRequest, name: str) -> int:
    """Return a number from the address, 0 if there is none; raise QuestionError for what is no number."""
    text = request.query_params.get(name, "0")
    if (number := parse_number(text)) is None:
        raise QuestionError(f"{name} is {text[:20]!r} in this address; give a number.")
    return number


def known(request: PageRequest, name: str) -> int:
    """Return the number of a passage or page from the address, 0 if there is none; raise MissingError for no number."""
    try:
        return offset(request, name)
    except QuestionError:
        raise MissingError(f"There is no such {name}; search again.") from None
