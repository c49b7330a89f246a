"""The page that lists what all documents hold, sorted as its links say, or as a file; it needs no script."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from local_rag.display import found_as_csv, found_as_dict
from local_rag.records import FoundPlace
from local_rag.serving.http import unless_gone
from local_rag.serving.requests import FindRequest
from local_rag.web.filtering import as_fields, filters_of
from local_rag.web.site import caller_of, json_response, library_of, site_of, wants_json
from local_rag.web.views.answer_view import view_list

_SORTS: Mapping[str, Callable[[FoundPlace], Any]] = {
    "place": lambda one: (one.passage.path, one.passage.start),
    "text": lambda one: one.passage.text.casefold(),
    "occurrences": lambda one: one.occurrences,
}


async def find(request: Request) -> Response:
    """Show what all documents hold for a question that counts or lists."""
    site, fields = site_of(request), request.query_params
    if not fields.get("q", "").strip() and not wants_json(request):
        return RedirectResponse("/", 303)
    asked = FindRequest(question=fields.get("q", ""), filters=filters_of(fields))
    found = await unless_gone(request.receive, site.service.find(asked, caller_of(request)).outcome())
    sort, down = fields.get("sort", ""), bool(fields.get("down"))

    def page() -> Response:
        library = library_of(request)
        name = library.place_names()
        if wants_json(request):
            return json_response(found_as_dict(found, name))
        places: list[FoundPlace] = (
            sorted(found.places, key=_SORTS[sort], reverse=down) if sort in _SORTS else [*found.places]
        )
        ordered = replace(found, places=tuple(places))
        if fields.get("format") == "csv":
            headers = {"content-disposition": 'attachment; filename="found.csv"'}
            return Response(found_as_csv(ordered, name), media_type="text/csv", headers=headers)
        query = {"q": asked.question, **{key: text for key, text in as_fields(asked.filters).items() if text}}
        listed = view_list(ordered, library.contents().documents)
        said: dict[str, Any] = {"question": asked.question, "listed": listed, "address": f"/find?{urlencode(query)}"}
        return site.page(request, "find.html", **said, sort=sort, down=down)

    return await site.aside(page)


ROUTES = (Route("/find", find),)
