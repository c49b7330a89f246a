"""Where documents link to: notes by name, mail by what it answers. A name means the document that is nearest."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, get_args

from local_rag.document_records import LinkKind
from local_rag.passage_records import Passage
from local_rag.store.database import Store, StoredDocument
from local_rag.store.related_documents import (
    StoredLink,
    file_keys,
    links_of,
    links_to,
    mail_numbers,
    name_key,
    names_of,
)

_KINDS: tuple[LinkKind, ...] = get_args(LinkKind)
_MOST = 200  # documents of each kind that are told


@dataclass(frozen=True, slots=True)
class LinkedDocument:
    """A document that another one links to, or that links to it: which, and how."""

    id: int
    path: str
    title: str
    kind: LinkKind
    direction: Literal["to", "from"]


class Links:
    """The links between the documents of an open store, which shows only what somebody sees."""

    def __init__(self, store: Store) -> None:
        self._store = store

    @cached_property
    def _documents(self) -> dict[int, StoredDocument]:
        return {one.id: one for one in self._store.documents()}

    @cached_property
    def _called(self) -> dict[str, list[int]]:
        """The documents by the keys of their names: files first, then other names."""
        called = dict[str, list[int]]()
        for one in self._documents.values():
            for key in file_keys(one.path):
                called.setdefault(key, []).append(one.id)
        for document, names in self._names.items():
            for key in map(name_key, names):
                if document in self._documents and document not in called.setdefault(key, []):
                    called[key].append(document)
        return called

    @cached_property
    def _names(self) -> dict[int, list[str]]:
        """The names of documents beside those of their files."""
        names = dict[int, list[str]]()
        for document, name in names_of(self._store):
            names.setdefault(document, []).append(name)
        return names

    def other_names(self, document_id: int) -> tuple[str, ...]:
        """Return the other names of a document, without the numbers of mails."""
        return tuple(name for name in self._names.get(document_id, ()) if "@" not in name)

    def of(self, document_id: int, path: str) -> tuple[LinkedDocument, ...]:
        """Return the documents that the one at a path links to, then those that link to it."""
        own, names = links_of(self._store, document_id), self._names.get(document_id, [])
        others = links_to(self._store, {*map(name_key, names), *file_keys(path)})
        mails = [name for name in names if "@" in name]
        if not (own or others or mails) or document_id not in self._documents:
            return ()
        same = [
            (one, StoredLink(document_id, "copy", name))
            for name in mails
            for one in self._called.get(name_key(name), ())
        ]
        to = [*same, *((self._meant(link), link) for link in own)]
        back = [(one.document_id, one) for one in others if self._meant(one) == document_id != one.document_id]
        return *self._told(((meant, link) for meant, link in to if meant != document_id), "to"), *self._told(
            back, "from"
        )

    def _told(
        self, found: Iterable[tuple[int | None, StoredLink]], direction: Literal["to", "from"]
    ) -> list[LinkedDocument]:
        told = dict[int, LinkedDocument]()
        for document, link in found:
            if document in self._documents and len(told) < _MOST:
                one = self._documents[document]
                told.setdefault(one.id, LinkedDocument(one.id, one.path, one.title, _kind(link.kind), direction))
        return list(told.values())

    def _meant(self, link: StoredLink) -> int | None:
        """Return the document that a link names, None if there is none: of several the one in the nearest folder."""
        if link.document_id not in self._documents:
            return None
        target, here = link.target.casefold().removesuffix(".md").strip("/"), self._documents[link.document_id].path
        found = [self._documents[one] for one in self._called.get(name_key(link.target), ())]
        if "/" in target and "@" not in target:
            found = [one for one in found if one.path.casefold().removesuffix(".md").endswith(f"/{target}")]
        nearest = sorted(found, key=lambda one: (-len(os.path.commonpath([here, one.path])), one.path))
        return nearest[0].id if nearest else None


def _kind(kind: str) -> LinkKind:
    return next((one for one in _KINDS if one == kind), "link")


def without_copies(store: Store, passages: Sequence[Passage]) -> list[Passage]:
    """Return passages with those of the same mail in several places once, with the other places."""
    numbers, kept = mail_numbers(store, {one.path for one in passages}), dict[tuple[str, str], Passage]()
    for passage in passages:
        of_mail = numbers.get(passage.path)
        key = (of_mail, passage.text) if of_mail else ("", str(passage.chunk_id))
        first = kept.setdefault(key, passage)
        if first.path != passage.path and passage.location not in first.also_in:
            kept[key] = replace(first, also_in=(*first.also_in, passage.location))
        elif first is not passage:
            kept.setdefault(("", str(passage.chunk_id)), passage)
    return list(kept.values())
