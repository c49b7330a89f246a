"""The place of work: what can be done with many documents, and what one did last."""

from starlette.responses import Response
from starlette.routing import Route

from local_rag.web.site import PageRequest

_LAST = 8


def work(request: PageRequest) -> Response:
    """Show what can be done, with the last tables and files of questions of this person."""
    tables = request.library.tables.saved(request.person.id).all()
    with request.history() as history:
        lists = history.question_lists()
    return request.page("work.html", tables=tables[:_LAST], lists=lists[:_LAST])


ROUTES = (Route("/work", work),)
