"""The pages of a document: its text with one passage marked, its pages as images, and its file."""

import asyncio
import struct
import threading
from collections import OrderedDict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as LateError
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlencode

from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from local_rag.errors import BusyError, LibraryError, MissingError, QuestionError, ReadError
from local_rag.files import open_in_place
from local_rag.reading.mailbox import mailbox_of
from local_rag.reading.page_image import draw_page
from local_rag.reading.read import read_bytes
from local_rag.view import View
from local_rag.web.forms import parse_number
from local_rag.web.site import PageRequest
from local_rag.web.views.answer_view import STATES
from local_rag.web.views.document_view import path_key, view_document

_AT_ONCE, _MOST_KEPT, _MOST_WAITING = 2, 24, 50
_SIZE = struct.Struct(">II")
_SIZE_AT = 16  # bytes before the width and height in a PNG
_USUAL = (1191, 1684)  # A4, as it is drawn
_PATIENCE = 0.8  # seconds that a page waits for the size of its image
_Key = tuple[object, ...]


class PageDrawings:
    """Draw pages in threads of its own; who asks for one that is being drawn gets the same drawing."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="page drawings")
        self._lock = threading.Lock()
        self._drawn: OrderedDict[_Key, Future[bytes]] = OrderedDict()
        self._sizes: OrderedDict[str, tuple[int, int]] = OrderedDict()  # of the last page drawn of a file

    def draw(self, path: Path, page: int, passage: str = "") -> Future[bytes]:
        """Begin to draw a page with a passage marked, unless it is drawn; raise BusyError where too many wait."""
        key = (*_stamp(path), page, passage)
        with self._lock:
            drawing = self._drawn.get(key)
            if drawing is None or (drawing.done() and drawing.exception()):
                if sum(not one.done() for one in self._drawn.values()) >= _MOST_WAITING:
                    raise BusyError("Too many pages are being drawn; try again in a minute.")
                drawing = self._drawn[key] = self._threads.submit(self._draw, path, page, passage)
            self._drawn.move_to_end(key)
            done = [one for one, kept in self._drawn.items() if kept.done()]
            for old in done[: max(0, len(done) - _MOST_KEPT)]:
                del self._drawn[old]
            return drawing

    def size(self, path: Path, page: int, passage: str = "") -> tuple[int, int]:
        """Begin to draw a page; return its width and height, if it takes long those of another page, or of A4."""
        with suppress(LateError, ReadError, BusyError):
            return _image_size(self.draw(path, page, passage).result(_PATIENCE))
        with self._lock:
            return self._sizes.get(str(path), _USUAL)

    def close(self) -> None:
        """Begin no other drawing."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _draw(self, path: Path, page: int, passage: str) -> bytes:
        image = draw_page(path, page, passage)
        with self._lock:
            self._sizes[str(path)] = _image_size(image)
            if len(self._sizes) > _MOST_KEPT:
                self._sizes.popitem(last=False)
        return image


def _image_size(image: bytes) -> tuple[int, int]:
    width, height = _SIZE.unpack_from(image, _SIZE_AT)
    return width, height


def _stamp(path: Path) -> _Key:
    """Return what changes with a file."""
    with suppress(OSError):
        status = path.stat()
        return str(path), status.st_ino, status.st_size, status.st_mtime_ns
    return (str(path),)


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
        whole = library.documents.get(request.path_params["document"])
    except MissingError:
        if (newer := _newer(library, of)) is None:
            raise
        return RedirectResponse(f"/document/{newer}?{urlencode({'at': place, 'of': of})}", 303)
    # The passage that stands for a whole document is none of its chunks.
    named = chunk and not place and not any(passage.chunk_id == chunk for passage in whole.passages)
    if named and library.documents.passage(chunk).path != whole.path:
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
    documents = library.documents.contents().documents if of else {}
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
    path = Path(request.library.documents.get(request.path_params["document"], with_text=False).path)
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
    path = library.documents.get(request.path_params["document"], with_text=False).path
    if not _is_pdf(path):
        raise MissingError("Only pages of a PDF are drawn.")
    _size_of(Path(path))
    try:
        passage = library.documents.passage(chunk)
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
