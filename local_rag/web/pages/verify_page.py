"""The page that checks a text: each statement with its verdict and quotations, what differs marked on both sides."""

from collections.abc import Mapping
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from local_rag.serving.answer_markdown import escaped
from local_rag.serving.http import json_response, unless_gone
from local_rag.serving.requests import VerifyRequest
from local_rag.serving.verified_text import verified
from local_rag.verification.report import (
    headline,
    quoted_line,
    said_line,
    verification_as_dict,
    verification_as_markdown,
    where,
)
from local_rag.verification.verdicts import VERDICTS, Checked, Evidence, Verification
from local_rag.verification.word_report import verification_as_word
from local_rag.web.forms import filters_of, text_field
from local_rag.web.site import PageRequest, attachment
from local_rag.web.views.document_html import show_line

_MOST = 40_000  # characters of a text that fit into a form
_SECONDS = 120.0  # for which a browser waits for a page
_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def form(request: PageRequest) -> Response:
    """Show the form for a text."""
    return _page(request, "", request.query_params.get("in", ""), None)


async def check(request: PageRequest) -> Response:
    """Check a text, which is kept nowhere, and show the result, or send it as a file."""
    fields = await request.fields()
    text, kind = text_field(fields, "text").replace("\r\n", "\n"), text_field(fields, "format")
    asked = VerifyRequest(text=text, filters=filters_of(fields))
    epoch = await request.aside(request.epoch)
    found = await unless_gone(request.receive, verified(request.service, asked, request.caller, seconds=_SECONDS))
    return await request.aside(lambda: _shown(request, found, kind, text_field(fields, "in"), epoch))


ROUTES = (Route("/verify", form), Route("/verify", check, methods=["POST"]))


def _shown(request: PageRequest, found: Verification, kind: str, within: str, epoch: int) -> Response:
    name = request.library.documents.place_names()
    if kind == "word":
        return attachment(verification_as_word(found, name), "checked.docx", _WORD)
    if kind == "markdown":
        return attachment(verification_as_markdown(found, escaped, name), "checked.md", "text/markdown")
    if request.wants_json:
        return json_response(verification_as_dict(found, name))
    quoted = dict.fromkeys(each.place.path for one in found.statements for each in one.quotes)
    request.remember("/verify", {"in": within}, within or "All documents", headline(found), [*quoted], epoch=epoch)
    return _page(request, found.text, within, found)


def _page(request: PageRequest, text: str, within: str, found: Verification | None) -> Response:
    documents = request.library.documents.contents().documents if found else {}
    statements = [_statement(request, one, documents) for one in found.statements] if found else []
    said = headline(found) if found else ""
    shown: dict[str, Any] = {"text": text, "within": within, "statements": statements, "headline": said, "most": _MOST}
    return request.page("verify.html", **shown)


def _statement(request: PageRequest, one: Checked, documents: Mapping[str, int]) -> dict[str, Any]:
    return {
        "verdict": one.verdict,
        "meaning": VERDICTS[one.verdict],
        "said": show_line(*said_line(one)),
        "quotes": [_quotation(request, each, documents) for each in one.quotes],
    }


def _quotation(request: PageRequest, one: Evidence, documents: Mapping[str, int]) -> dict[str, Any]:
    document = documents.get(one.place.path)
    address = f"/document/{document}?from={one.place.start}" if document is not None else ""
    text = show_line(*quoted_line(one))
    return {"text": text, "where": where(one, request.name_of), "address": address}
