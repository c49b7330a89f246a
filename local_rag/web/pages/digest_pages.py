"""The pages that quote whole documents: what changed between two, side by side, and what some say, as a brief."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from local_rag.asking import Filters
from local_rag.digests.alignment import common_parts
from local_rag.digests.brief import DEFAULT_LINES, LISTS, MOST_LINES, Line
from local_rag.digests.differences import Change
from local_rag.digests.output import (
    brief_as_dict,
    brief_as_markdown,
    difference_as_dict,
    difference_as_markdown,
    headings_of,
    kinds_of_changes,
)
from local_rag.digests.statements import Place
from local_rag.display import Name, counted
from local_rag.errors import MissingError
from local_rag.serving.answer_markdown import escaped
from local_rag.serving.http import json_response
from local_rag.text.struck import SIGN, struck_spans
from local_rag.web.forms import SOURCE, filters_of, number_field, query_fields
from local_rag.web.pages.sources_page import view_scope
from local_rag.web.site import PageRequest, attachment
from local_rag.web.views.document_html import show_line

_MOST_SHOWN = 300  # changes on a page
_MOST_COMPARED = 2
_LONGEST = 2000  # characters of a quotation on a page
_LONGEST_NAME = 1000
_PIECE = re.compile(r"~~|\w+(?:[.,]\w+)*+|\W+?(?=~~|\w|\Z)")


def diff(request: PageRequest) -> Response:
    """Show what changed between two documents, or between the two newest versions of one."""
    library, query = request.library, request.query_params
    names = [query.get(field, "").strip()[:_LONGEST_NAME] for field in ("before", "after")]
    chosen = query.getlist(SOURCE)
    if chosen and not any(names):
        names = [*sorted(chosen)[:_MOST_COMPARED], ""][:_MOST_COMPARED]
    documents, scope = (
        library.documents.contents().documents,
        _scope(Filters(within=tuple(filter(None, names))), "/diff"),
    )
    shown: dict[str, Any] = {"names": names, "scope": scope, "wrong": "", "rows": None}
    shown |= {"difference": None, "more": 0, "name": library.documents.place_names()}
    if len(chosen) > _MOST_COMPARED:
        return request.page("diff.html", **shown | {"wrong": "More than two documents are ticked; tick two, or one."})
    if not names[0]:
        return request.page("diff.html", **shown)
    epoch = request.epoch()
    try:
        difference = library.changes.diff(*names)
    except MissingError as error:
        if request.wants_json:
            raise
        return request.page("diff.html", status=404, **shown | {"wrong": str(error)})
    if request.wants_json:
        return json_response(difference_as_dict(difference, shown["name"]))
    if query.get("format") == "markdown":
        return attachment(difference_as_markdown(difference, escaped, shown["name"]), "changes.md", "text/markdown")
    rows = [_row(one, documents, shown["name"]) for one in difference.changes[:_MOST_SHOWN]]
    more = len(difference.changes) - len(rows)
    counts, compared = kinds_of_changes(difference), (difference.before, difference.after)
    asked = dict(zip(("before", "after"), map(shown["name"], compared), strict=True))
    request.remember("/diff", asked, " \u2192 ".join(asked.values()), counts or "no change", compared, epoch=epoch)
    found = {"difference": difference, "rows": rows, "more": more, "counts": counts}
    return request.page("diff.html", **shown | found)


def brief(request: PageRequest) -> Response:
    """Show what documents say in quotations."""
    library, query = request.library, request.query_params
    named = query.get("document", "").strip()[:_LONGEST_NAME]
    filters = filters_of(query_fields(query.multi_items()))
    lines = number_field(query, "lines", MOST_LINES) or DEFAULT_LINES
    documents = library.documents.contents().documents
    shown: dict[str, Any] = {"named": named, "lines": lines, "scope": _scope(filters, "/brief", named), "wrong": ""}
    shown |= {"brief": None, "headings": (), "lists": ()}
    if not named and not filters:
        return request.page("brief.html", **shown)
    epoch = request.epoch()
    try:
        found = library.changes.brief([named] if named else [], lines=lines, filters=filters)
    except MissingError as error:
        if request.wants_json:
            raise
        return request.page("brief.html", status=404, **shown | {"wrong": str(error)})
    name = library.documents.place_names()
    if request.wants_json:
        return json_response(brief_as_dict(found, name))
    if query.get("format") == "markdown":
        return attachment(brief_as_markdown(found, escaped, name), "brief.md", "text/markdown")

    def quoted(some: Sequence[Line]) -> list[tuple[str, dict[str, Any]]]:
        return [(one.value, _quoted(one.place, "", documents, name)) for one in some]

    asked = [*shown["scope"]["fields"], ("document", named), ("lines", lines)]
    told = counted(len(found.documents), "document")
    request.remember("/brief", asked, shown["scope"]["said"], told, found.documents, epoch=epoch)
    headings = [(heading, quoted(some)) for heading, some in headings_of(found)]
    lists = [(title, quoted(found.lists[kind])) for kind, title in LISTS.items() if found.lists[kind]]
    return request.page("brief.html", **shown | {"brief": found, "headings": headings, "lists": lists})


ROUTES = (Route("/diff", diff), Route("/brief", brief))


def _scope(filters: Filters, back: str, named: str = "") -> dict[str, Any]:
    """Return what is chosen, of which `named` is a document that the address names otherwise."""
    scope = view_scope(filters, back=back)
    return scope | {"said": "; ".join(filter(None, (named, scope["said"])))}


def _row(change: Change, documents: Mapping[str, int], name: Name) -> dict[str, Any]:
    """Return a change with both quotations side by side."""
    before, after = change.before, change.after
    texts = [place.text[:_LONGEST] if place and change.kind != "moved" else "" for place in (before, after)]
    return {
        "kind": change.kind,
        "summary": change.summary,
        "before": _quoted(before, texts[1], documents, name) if before else None,
        "after": _quoted(after, texts[0], documents, name) if after else None,
    }


def _quoted(place: Place, other: str, documents: Mapping[str, int], name: Name) -> dict[str, Any]:
    """Return a quotation, in which what the other document says otherwise is marked, and where it leads."""
    text = _as_it_looks(place.text if len(place.text) <= _LONGEST else f"{place.text[:_LONGEST]}\u2026")
    document = documents.get(place.path)
    address = f"/document/{document}?from={place.start}" if document is not None else ""
    shown = show_line(text, _differing(text, _as_it_looks(other)))
    return {"text": shown, "location": place.location_by(name), "section": place.section, "address": address}


def _as_it_looks(text: str) -> str:
    """Return a text without the commonest marks of Markdown: those of a row, of an item and of bold words."""
    if text.startswith("|") and text.endswith("|"):
        text = " \u00b7 ".join(cell.strip() for cell in text.strip("|").split("|"))
    return text.removeprefix("- ").replace("**", "")


def _differing(text: str, other: str) -> list[tuple[int, int]]:
    """Return the spans of a text in which another has other words, or strikes them; nothing differs from no text."""
    if not other:
        return []
    own = [*_PIECE.finditer(text)]
    spans, before = list[tuple[int, int]](), 0
    for start, _, size in (*common_parts(_words(text), _words(other)), (len(own), 0, 0)):
        if any(one[0].strip() for one in own[before:start]):
            spans.append((own[before].start(), own[start - 1].end()))
        before = start + size
    return spans


def _words(text: str) -> list[str]:
    """Return the pieces of a text as they are compared: without breaks of lines, and struck ones apart from others."""
    struck = struck_spans(text)
    return [
        (SIGN if any(start <= one.start() < end for start, end in struck) else "") + " ".join(one[0].split())
        for one in _PIECE.finditer(text)
    ]
