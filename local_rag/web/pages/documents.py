"""The pages that read: documents and their pages as images, the library, and whether the server is ready."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from local_rag.errors import LibraryError, ReadError
from local_rag.files import open_regular
from local_rag.maintenance.doctor import diagnose
from local_rag.reading.page_image import draw_page
from local_rag.records import SITUATED
from local_rag.web.document import view_document
from local_rag.web.evidence import change_of, find_document
from local_rag.web.pages.base import Site, json_response, wants_json
from local_rag.web.pages.library import Pace, view_library, view_progress

_BLOCK = 256 * 1024
_DRAWN_AT_ONCE = 2


class _Identifier(Convertor[int]):
    """A number that SQLite can hold."""

    regex = "[0-9]{1,18}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("identifier", _Identifier())


def reading_routes(site: Site) -> list[BaseRoute]:
    """Return the routes of these pages."""
    drawing, pace = asyncio.Semaphore(_DRAWN_AT_ONCE), Pace()

    def document(request: Request) -> Response:
        with site.owner.library.reading() as store:
            found = find_document(store, request.path_params["document"])
            view = view_document(
                store, found, chunk_id=_offset(request, "chunk"), start=_offset(request, "from"),
                page=_offset(request, "page"),
            )  # fmt: skip
        is_pdf = found.path.lower().endswith(".pdf")
        return site.page(request, "document.html", view=view, change=change_of(found), is_pdf=is_pdf)

    async def page_image(request: Request) -> Response:
        path, passage = await asyncio.to_thread(_page_of, site, request)
        async with drawing:
            try:
                image = await asyncio.to_thread(draw_page, path, request.path_params["page"], passage)
            except ReadError as error:
                raise LibraryError(f"The page cannot be drawn: the file {error}.") from None
        return Response(image, media_type="image/png")

    def original(request: Request) -> Response:
        with site.owner.library.reading() as store:
            path = Path(find_document(store, request.path_params["document"]).path)
        try:
            with open_regular(path) as file:
                size = file.seek(0, 2)
        except OSError:
            raise LibraryError(
                "The file is not where it was when it was indexed; its text is in the library."
            ) from None

        name = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "._-") else "_" for sign in path.name)
        headers = {"content-disposition": f'attachment; filename="{name}"', "content-security-policy": "sandbox"}
        return StreamingResponse(_blocks(path, size), media_type="application/octet-stream", headers=headers)

    def library(request: Request) -> Response:
        view = view_library(site.owner.library, pace, start=_offset(request, "from"))
        if wants_json(request):
            return json_response(view)
        return site.page(request, "library.html", view=view, findings=None)

    def progress(_request: Request) -> Response:
        with site.owner.library.reading() as store:
            situated = site.owner.library.settings.context in SITUATED
            running = view_progress(store, pace, situated=situated)
        return HTMLResponse(site.fragment("progress.html", progress=running))

    def doctor(request: Request) -> Response:
        opened = site.owner.library
        findings = list(diagnose(opened.folder, profile=opened.settings.profile))
        return site.page(request, "library.html", view=view_library(opened, pace), findings=findings)

    def health(_request: Request) -> Response:
        if not site.owner.ready:
            site.owner.wake()
        state = {"ready": site.owner.ready, "sealed": site.seal.badge().sealed, "loaded": site.owner.loaded}
        return json_response(state)

    async def document_list(_request: Request) -> Response:
        return RedirectResponse("/library", 303)

    return [
        Route("/document/", document_list),
        Route("/document/{document:identifier}", document),
        Route("/document/{document:identifier}/page/{page:identifier}.png", page_image),
        Route("/document/{document:identifier}/file", original),
        Route("/library", library),
        Route("/library/progress", progress),
        Route("/library/doctor", doctor, methods=["POST"]),
        Route("/healthz", health),
    ]


def _blocks(path: Path, size: int) -> Iterator[bytes]:
    with open_regular(path) as file:
        while size > 0 and (block := file.read(min(_BLOCK, size))):
            size -= len(block)
            yield block


def _page_of(site: Site, request: Request) -> tuple[Path, str]:
    """Return the file of a PDF and the text of the chunk that is to be marked."""
    with site.owner.library.reading() as store:
        found = find_document(store, request.path_params["document"])
        chunk = store.chunks_by_id([_offset(request, "chunk")]).get(_offset(request, "chunk"))
    if not found.path.lower().endswith(".pdf"):
        raise LibraryError("Only pages of a PDF are drawn.")
    return Path(found.path), chunk.chunk.text if chunk and chunk.document_id == found.id else ""


def _offset(request: Request, name: str) -> int:
    """Read a number from the address, 0 where there is none."""
    text = request.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else 0  # noqa: PLR2004
