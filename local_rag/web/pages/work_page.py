"""The place of work: what can be done with many documents, and what one did last."""

from starlette.responses import Response
from starlette.routing import Route

from local_rag.web.site import PageRequest

_LAST = 8


def work(request: PageRequest) -> Response:
    """Show what can be done, with what this person did last; what names a document that is not seen is left out."""
    tables = request.library.tables.saved(request.person.id).all()
    with request.history() as history:
        lists, done = history.question_lists(), history.last_work()
    held = request.library.documents.contents().documents if done else {}
    done = [one for one in done if held.keys() >= set(one.documents)]
    return request.page("work.html", done=done, tables=tables[:_LAST], lists=lists[:_LAST])


ROUTES = (Route("/work", work),)
