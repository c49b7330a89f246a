"""The page's own style and script, read once: they are sent without a look at the disk, once to each browser."""

import hashlib
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_TYPES = {".css": "text/css", ".js": "text/javascript"}
_FILES = {path.name: path.read_bytes() for path in (Path(__file__).parent / "static").glob("page.*")}


async def own_file(request: Request) -> Response:
    """Return a file, or say that the browser's copy is still the same."""
    name = request.path_params["name"]
    if (content := _FILES.get(name)) is None:
        raise HTTPException(404)
    tag = f'"{hashlib.sha256(content).hexdigest()[:24]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}  # a browser asks whether its copy is still the same
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, media_type=_TYPES[Path(name).suffix], headers=headers)


def style() -> str:
    """Return the style sheet."""
    return _FILES["page.css"].decode()


ROUTES = (Route("/static/{name}", own_file),)
