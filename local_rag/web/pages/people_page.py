"""The pages for owners that say who may use the library: people are added, invited by a link, changed and removed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from local_rag.asking import PERSON_ROLES, Filters, Person, PersonRole
from local_rag.catalogue.browsing import Branch, Leaf, all_in, folder_tree
from local_rag.display import names_below
from local_rag.errors import ForbiddenError, LibraryError, MissingError, QuestionError
from local_rag.retrieval.filters import outermost
from local_rag.serving.http import json_response
from local_rag.web.forms import SOURCE, as_fields, filters_of, list_field, text_field
from local_rag.web.gate.guard import NOBODY
from local_rag.web.site import PageRequest

ROLES: Mapping[PersonRole, str] = {
    "reader": "asks and reads",
    "editor": "also adds, indexes and removes documents",
    "owner": "also erases, checks the server, and manages people",
}
_NAMED = 12  # documents that are shown of those that a person sees


@dataclass(frozen=True, slots=True)
class Draft:
    """What a form says of a person; without an `id` it is a new one."""

    id: str = ""
    name: str = ""
    role: PersonRole = "reader"
    everything: bool = True
    within: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def limits(self) -> Filters:
        """Return the limits; raise QuestionError if nothing was chosen."""
        limits = Filters() if self.everything else Filters(within=self.within, tags=self.tags)
        if not limits and not self.everything:
            raise QuestionError("Nothing was chosen for this person to see; tick a folder, or choose everything.")
        return limits


def people(request: PageRequest) -> Response:
    """Show the people, what each sees, and who has not used a link yet."""
    _require(request)
    library, found = request.service.library, request.service.library.people
    links, every = found.invitations(), sorted(found.now().values(), key=lambda one: one.name.casefold())
    if request.wants_json:
        return json_response([_as_dict(one, found.given_limits(one)) for one in every])
    views = [
        {
            "person": one,
            "documents": len(library.seen_by(one.limits).documents.contents().documents),
            "limited": bool(one.limits),
            "link_until": _day(links.get(one.id)),  # while it is unused
            "is_me": one.id == request.person.id,
        }
        for one in every
    ]
    documents = len(library.documents.contents().documents)
    return request.page("people.html", people=views, documents=documents, contact=found.contact, roles=ROLES)


def form(request: PageRequest) -> Response:
    """Show the form for a new person, or for one that there is."""
    _require(request)
    if not (identifier := str(request.path_params.get("person", ""))):
        return _form(request, Draft())
    person = request.service.library.people.of(identifier)
    limits = request.service.library.people.given_limits(person)
    return _form(request, Draft(person.id, person.name, person.role, not limits, limits.within, limits.tags))


async def preview(request: PageRequest) -> Response:
    """Show the form again, or that part of it alone, with what the person would see."""
    _require(request)
    draft = await _draft(request)

    def show() -> Response:
        if text_field(request.query_params, "part"):
            return request.part("people_seen.html", running=False, seen=_seen(request, draft))
        return _form(request, draft)

    return await request.aside(show)


async def save(request: PageRequest) -> Response:
    """Add or change a person; a new one gets a link, which is shown once."""
    _require(request)
    draft = await _draft(request)

    def keep() -> Response:
        try:
            return kept()
        except (QuestionError, LibraryError) as error:
            if request.wants_json or isinstance(error, MissingError):
                raise
            return _form(request, draft, problem=str(error))

    def kept() -> Response:
        found = request.service.library.people
        if not draft.id:
            person = found.add(draft.name, draft.role, draft.limits)
            request.service.record(request.caller, change="add person", name=person.name)
            return _link(request, person)
        before = found.of(draft.id)
        _not_oneself(request, before)
        limits = draft.limits
        found.change(before, draft.name, draft.role, limits)
        if limits != found.given_limits(before):  # conversations may quote what is now outside
            request.service.library.history.forget(before.id)
        request.service.record(request.caller, change="change person", name=draft.name)
        return request.done("/people")

    return await request.aside(keep)


def link(request: PageRequest) -> Response:
    """Make a new link for a person; one that was not used counts no more."""
    _require(request)
    person = request.service.library.people.of(str(request.path_params["person"]))
    request.service.record(request.caller, change="invite person", name=person.name)
    return _link(request, person)


async def remove(request: PageRequest) -> Response:
    """Remove a person and the person's conversations, once that is confirmed."""
    _require(request)
    fields = await request.fields()

    def carry_out() -> Response:
        library = request.service.library
        person = library.people.of(str(request.path_params["person"]))
        _not_oneself(request, person)
        if not fields.get("confirmed"):
            return request.page("people_remove.html", removed=person)
        library.people.remove(person)
        library.history.forget(person.id)
        request.service.record(request.caller, change="remove person", name=person.name)
        return request.done("/people")

    return await request.aside(carry_out)


async def contact(request: PageRequest) -> Response:
    """Keep whom the form to log in tells to ask."""
    _require(request)
    text = " ".join(text_field(await request.fields(), "contact").split())
    await request.aside(lambda: request.service.library.people.set_contact(text))
    return request.done("/people")


ROUTES = (
    Route("/people", people),
    Route("/people", save, methods=["POST"]),
    Route("/people/new", form),
    Route("/people/preview", preview, methods=["POST"]),
    Route("/people/contact", contact, methods=["POST"]),
    Route("/people/{person}", form),
    Route("/people/{person}/link", link, methods=["POST"]),
    Route("/people/{person}/remove", remove, methods=["POST"]),
)


def _require(request: PageRequest) -> None:
    request.require("owner")
    if not request.library.documents.are_all_seen:
        raise ForbiddenError("You may see only a part of this library, so you cannot say who sees what of it.")
    if not request.visit.can_log_out:
        raise ForbiddenError(
            "This server lets in everybody on this machine without a token; serve without --no-token to add people."
        )


def _not_oneself(request: PageRequest, person: Person) -> None:
    if person.id == request.person.id:
        raise QuestionError("You cannot change or remove yourself; ask another owner.")


async def _draft(request: PageRequest) -> Draft:
    """Return what the form says; what was ticked in the tree are patterns, as those of the field beside it."""
    fields = await request.fields()
    given = filters_of({"in": fields.get("in", ""), "tag": fields.get("tag", "")})
    return Draft(
        id=text_field(fields, "id"),
        name=" ".join(text_field(fields, "name").split()),
        role=next((one for one in PERSON_ROLES if one == fields.get("role")), "reader"),
        everything=fields.get("sees") != "chosen",
        within=tuple(dict.fromkeys([*list_field(fields, SOURCE), *given.within])),
        tags=given.tags,
    )


def _form(request: PageRequest, draft: Draft, *, problem: str = "") -> Response:
    tree = folder_tree(request.service.library.documents.contents())
    ticked = set(draft.within) & {one.pattern for one in all_in(tree)}
    others = as_fields(Filters(within=tuple(one for one in draft.within if one not in ticked), tags=draft.tags))
    seen = _seen(request, draft)
    shown = {"draft": draft, "tree": tree, "chosen": ticked, "others": others, "seen": seen, "roles": ROLES}
    return request.page("person.html", status=400 if problem else 200, problem_of_form=problem, **shown)


def _seen(request: PageRequest, draft: Draft) -> dict[str, Any]:
    """Return what the person would see: how many of all documents, in which folders, and some of them by name.

    That is nothing while nothing is chosen.
    """
    library = request.service.library
    every, limits = library.documents.contents(), Filters()
    if not draft.everything:
        limits = Filters(within=draft.within, tags=draft.tags) or NOBODY.limits
    seen = every if not limits else library.seen_by(limits).documents.contents()
    name = names_below(outermost(seen.roots))
    names = tuple(name(path) for path in islice(sorted(seen.documents), _NAMED))
    folders = [(one.place, one.count) for one in _parting(folder_tree(seen))][:_NAMED]
    return {"documents": len(seen.documents), "all": len(every.documents), "folders": folders, "names": names}


def _parting(tree: Sequence[Branch | Leaf]) -> list[Branch]:
    """Return the outermost folders in which documents part."""
    branches = [one for one in tree if isinstance(one, Branch)]
    while len(branches) == 1 and len(branches[0].folders) and not branches[0].documents:
        branches = list(branches[0].folders)
    return branches


def _link(request: PageRequest, person: Person) -> Response:
    """Show a new link, which nobody sees again; its address is that under which the owner sees this page."""
    found = request.service.library.people
    code = found.invite(person)
    origin = request.headers.get("origin") or str(request.base_url).rstrip("/")
    address = f"{origin}{request.site.root}/join/{code}"
    return request.page("people_link.html", invited=person, address=address, until=_day(found.invitations()[person.id]))


def _day(seconds: float | None) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M") if seconds else ""


def _as_dict(person: Person, limits: Filters) -> dict[str, Any]:
    return {"id": person.id, "name": person.name, "role": person.role, "in": limits.within, "tags": limits.tags}
