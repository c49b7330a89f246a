"""How one comes in: the form for the token, and the link that an owner has sent, which counts once."""

from http import HTTPStatus

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from local_rag.web.forms import local_address, text_field
from local_rag.web.gate.guard import ROOT
from local_rag.web.site import PageRequest

_GONE = "This link was used, has expired, or was replaced by another one; ask for a new one."
_LATE = "Too many tries; wait a minute."


async def log_in(request: PageRequest) -> Response:
    """Show the form for the token, or check the token, or the link that `--open` has opened."""
    visit, wrong = request.visit, ""
    if request.method == "GET":
        status, wanted = visit.status, visit.wanted
        if "once" in request.query_params:
            response = RedirectResponse("/", 303)
            status = visit.access.log_in_once(visit.client, request.query_params["once"], response)
            if status is HTTPStatus.OK:
                return response
            wrong = "This link counts once, and no longer than a few minutes; log in with the token."
    else:
        fields = await request.fields()
        wanted = local_address(text_field(fields, "next"))
        response = RedirectResponse(wanted, 303)
        token = text_field(fields, "token")
        status = visit.access.log_in(visit.client, token, response, visit.people or {}, visit.headers)
        if status is HTTPStatus.OK:
            return response
        late = status is HTTPStatus.TOO_MANY_REQUESTS
        wrong = _LATE if late else "That is not the token."
    return await request.aside(lambda: _form(request, int(status), wrong=wrong, wanted=wanted))


async def log_out(request: PageRequest) -> Response:
    """Forget the client's session."""
    response = RedirectResponse("/", 303)
    request.visit.access.log_out(request.headers, response)
    return response


def join(request: PageRequest) -> Response:
    """Show whom a link lets in; it is used up by the button alone, so programs that look at it do no harm."""
    code = str(request.path_params["code"])
    if (person := request.service.library.people.invited(code)) is None:
        return _no_link(request, code)
    return request.page("join.html", invited=person, code=code, token="")


def accept(request: PageRequest) -> Response:
    """Let a person in through a link, and show the token for other times."""
    code = str(request.path_params["code"])
    if (accepted := request.service.library.people.accept(code)) is None:
        return _no_link(request, code)
    person, token = accepted
    response = request.page("join.html", invited=person, code=code, token=token)
    request.visit.access.let_in(person, response)
    return response


ROUTES = (
    Route("/login", log_in, methods=["GET", "POST"]),
    Route("/logout", log_out, methods=["POST"]),
    Route("/join/{code}", join),
    Route("/join/{code}", accept, methods=["POST"]),
)


def _no_link(request: PageRequest, code: str) -> Response:
    late = not request.visit.access.may_try(request.visit.client, code)
    return _form(request, 429 if late else 404, wrong=_LATE if late else _GONE, wanted="/")


def _form(request: PageRequest, status: int, *, wrong: str, wanted: str) -> Response:
    """Show the form to log in; below a root it looks alike whether there is a library, so it names nobody there."""
    contact = "" if ROOT in request.scope else request.service.library.people.contact
    return request.page("login.html", status=status, wrong=wrong, wanted=wanted, contact=contact)
