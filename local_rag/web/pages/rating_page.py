"""Whether an answer was right, as everybody who asks may say it."""

from starlette.responses import Response
from starlette.routing import Route

from local_rag.asking import require_question
from local_rag.errors import QuestionError
from local_rag.web.forms import local_address, parse_number, text_field
from local_rag.web.site import PageRequest


async def rate(request: PageRequest) -> Response:
    """Keep a question with the passage that was cited first: as one answered rightly, or one answered wrongly."""
    fields = await request.fields()
    question, wrong = text_field(fields, "question"), "wrong" in fields
    require_question(question)
    if (chunk := parse_number(str(fields.get("wrong" if wrong else "chunk", "")))) is None or not (chunk or wrong):
        raise QuestionError("Neither right nor wrong was chosen; press one of the buttons below the answer.")
    record = request.library.record_wrong_answer if wrong else request.library.record_question
    await request.aside(lambda: record(question, chunk))
    back = local_address(text_field(fields, "back"))
    return request.done(back, {"kept": "wrong" if wrong else "right"})


ROUTES = (Route("/rate", rate, methods=["POST"]),)
