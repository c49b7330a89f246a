"""The page of what is missing: questions that were refused or marked as wrong, and how answers are marked."""

from starlette.responses import Response
from starlette.routing import Route

from local_rag.asking import Mark, require_question
from local_rag.errors import QuestionError
from local_rag.feedback.gaps import Gap, closest_of, gap_as_dict, gaps_as_csv, gaps_as_markdown
from local_rag.serving.answer_markdown import escaped
from local_rag.serving.http import json_response
from local_rag.web.forms import local_address, parse_number, text_field
from local_rag.web.site import PageRequest, attachment


async def gaps(request: PageRequest) -> Response:
    """Show what is missing, or return it as a file."""
    request.require("owner")
    found = await request.outcome(request.service.gaps(request.caller))
    return await request.aside(lambda: _page(request, found))


def _page(request: PageRequest, found: list[Gap]) -> Response:
    library, name = request.library, request.library.documents.place_names()
    if request.wants_json:
        return json_response({"gaps": [gap_as_dict(one, name) for one in found], "marks": library.feedback.marks()})
    if request.query_params.get("format") == "markdown":
        return attachment(gaps_as_markdown(found, escaped, name), "gaps.md", "text/markdown")
    if request.query_params.get("format") == "csv":
        return attachment(gaps_as_csv(found, name), "gaps.csv", "text/csv")
    documents = library.documents.contents().documents
    shown = [(one, closest_of(one, name), documents.get(one.closest)) for one in found]
    kept = library.settings.retention.conversations
    return request.page("gaps.html", gaps=shown, marks=library.feedback.marks(), is_kept=kept)


async def ship(request: PageRequest) -> Response:
    """Give answers as shipped again."""
    request.require("owner")
    said = await request.aside(request.library.feedback.ship_gate)
    return request.done("/gaps", {"gate": said})


async def rate(request: PageRequest) -> Response:
    """Mark the answer to a question as right or wrong, with the passage that was cited first, or take the mark back."""
    fields = await request.fields()
    mark: Mark | None = None if "undo" in fields else "wrong" if "wrong" in fields else "right"
    question = text_field(fields, "question")
    require_question(question)
    chunk = parse_number(str(fields.get("wrong" if mark == "wrong" else "chunk", "")))
    if mark and (chunk is None or not (chunk or mark == "wrong")):
        raise QuestionError("Neither right nor wrong was chosen; press one of the buttons below the answer.")
    marked = await request.aside(lambda: request.service.mark(question, mark, request.caller, chunk_id=chunk))
    back = local_address(text_field(fields, "back"))
    told = {"until_refit": marked.until_refit, "gate": marked.gate}
    return request.done(back, {"kept": mark or "nothing", **told})


ROUTES = (
    Route("/gaps", gaps),
    Route("/gaps/shipped", ship, methods=["POST"]),
    Route("/rate", rate, methods=["POST"]),
)
