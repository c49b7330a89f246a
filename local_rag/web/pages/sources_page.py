"""The page that chooses what to ask: a tree of folders and documents, menus of types and dates, and other filters."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from local_rag.asking import Filters
from local_rag.catalogue.browsing import Branch, Leaf, all_in, folder_tree
from local_rag.catalogue.overview import Overview
from local_rag.web.forms import BETWEEN, as_fields, as_pairs, filters_of, query_fields, text_field
from local_rag.web.site import WORK, PageRequest
from local_rag.web.views.thread_view import say_dates, say_scope

_MOST_OF_ONE = 100  # documents of a folder that are listed
_MONTH, _YEAR = timedelta(days=30), timedelta(days=365)
Choices = Sequence[tuple[str, str]]


def sources(request: PageRequest) -> Response:
    """Show what can be chosen, with what is chosen; `find` holds words that names of documents must have."""
    fields = query_fields(request.query_params.multi_items())
    filters, wanted = filters_of(fields), text_field(fields, "find")
    contents, held = request.library.documents.contents(), request.library.documents.overview()
    tree, places = folder_tree(contents, most=_MOST_OF_ONE, containing=wanted), _places(folder_tree(contents))
    listed = _places(tree)
    shown: dict[str, Any] = {
        "tree": tree,
        "unseen": [one for one in filters.within if one in places and one not in listed],
        "patterns": as_fields(Filters(within=tuple(one for one in filters.within if one not in places)))["in"],
        "wanted": wanted,
        "total": len(contents.documents),
        "conversation": text_field(fields, "conversation"),
        "types": _types(held, filters),
        "dates": _dates(held, filters),
        "span": _span(filters),
        "filters": filters,
        "back": _back(text_field(fields, "back")),
    }
    return request.page_or_part("choose.html", "sources.html", **shown)


def scope(request: PageRequest) -> Response:
    """Return the part of the form that says what the next question is asked of."""
    fields = query_fields(request.query_params.multi_items())
    shown = view_scope(filters_of(fields), text_field(fields, "conversation"), _back(text_field(fields, "back")))
    return request.part("scope.html", running=False, scope=shown)


def view_scope(filters: Filters, conversation: str = "", back: str = "/") -> dict[str, Any]:
    """Return what a form shows of filters, and the fields that it sends; what is chosen counts on the page `back`."""
    none = "Choose documents" if back in ("/diff", "/brief") else "All documents"
    told = {"conversation": conversation, "back": back, "none": none}
    return {"fields": as_pairs(filters), "said": say_scope(filters), **told}


ROUTES = (Route("/sources", sources), Route("/scope", scope))


def _back(asked: str) -> str:
    """Return the page for which documents are chosen: one of those of work, or that which asks."""
    return asked if asked in {address for address, *_ in WORK} else "/"


def _places(tree: Sequence[Branch | Leaf]) -> set[str]:
    return {one.place for one in all_in(tree)}


def _types(held: Overview, filters: Filters) -> Choices:
    """Return the types of the documents, and what is chosen if it is none of them."""
    listed = [(suffix, f"{suffix.upper()} ({count:,})") for suffix, count in held.types]
    chosen = as_fields(filters)["type"]
    return listed if chosen in {"", *(value for value, _ in listed)} else [*listed, (chosen, chosen)]


def _dates(held: Overview, filters: Filters) -> Choices:
    """Return spans of days: the last ones, and the years of the documents."""
    today = date.today()
    listed = [(f"{today - _MONTH}{BETWEEN}", "Last 30 days"), (f"{today - _YEAR}{BETWEEN}", "Last 12 months")]
    for year, count in held.years:
        if 1 <= year < date.max.year:
            listed.append((f"{date(year, 1, 1)}{BETWEEN}{date(year + 1, 1, 1)}", f"{year} ({count:,})"))
    chosen = _span(filters)
    if chosen and chosen not in {value for value, _ in listed}:
        listed.append((chosen, say_dates(filters.since, filters.before)))
    return listed


def _span(filters: Filters) -> str:
    return f"{filters.since or ''}{BETWEEN}{filters.before or ''}" if filters.since or filters.before else ""
