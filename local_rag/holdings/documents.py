"""The documents of a library, as somebody may see them."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from local_rag.answer_records import Answer
from local_rag.asking import EVERYTHING, FilterFields, Filters, as_filters
from local_rag.catalogue.browsing import Listing, Look, browse, look
from local_rag.catalogue.contents import (
    Contents,
    IndexProgress,
    ListedDocument,
    Location,
    WholeDocument,
    find_passage,
    index_progress,
    list_documents,
    locate,
    whole_document,
)
from local_rag.catalogue.links import LinkedDocument, Links
from local_rag.catalogue.overview import Overview, draft_questions, overview
from local_rag.digests.named_documents import NamedDocuments
from local_rag.display import Name, names_below
from local_rag.errors import LibraryError
from local_rag.files import command_for
from local_rag.holdings.access import Access
from local_rag.passage_records import Passage
from local_rag.reading.formats import is_expected
from local_rag.retrieval.filters import document_filter
from local_rag.retrieval.version_families import Version
from local_rag.store.database import NamedDocument, Store
from local_rag.store.seen import Seen, seen_stamp
from local_rag.text.tokens import keyword_tokens


class Documents:
    """The documents of a library: what they are, where they lie, and how far they are indexed. Threads may share it."""

    def __init__(self, access: Access) -> None:
        self._access = access

    @property
    def are_all_seen(self) -> bool:
        """Return whether no document of the library is hidden from who asks."""
        return not self._access.limits

    def listed(
        self, *, filters: Filters | FilterFields = EVERYTHING, after: str = "", most: int | None = None
    ) -> list[ListedDocument]:
        """Return the documents that match the filters: what each is about, its state, dates and size.

        They are ordered by path: the first `most` whose path comes after `after`, or all.
        """
        with self._access.opened() as (store, seen):
            found = list_documents(store, self._access.shared.indexes, as_filters(filters), after=after, most=most)
            return [replace(one, links=_linked(one.links, seen)) for one in found] if seen else found

    def get(self, document_id: int, *, with_text: bool = True) -> WholeDocument:
        """Return a document as it was indexed, or without its text and passages what is known of its file.

        Raise MissingError if there is none.
        """
        with self._access.opened() as (store, seen):
            meant = seen.document_meant(document_id) if seen else document_id
            found = whole_document(store, meant, self._access.shared.files, with_text=with_text)
            if with_text:
                links = Links(store)
                linked = _linked(links.of(meant, found.path), seen)
                found = replace(found, names=links.other_names(meant), links=linked)
            return self._access.told(replace(found, id=document_id), store, seen)

    def passage(self, chunk_id: int) -> Passage:
        """Return the passage with this number; raise MissingError if there is none."""
        with self._access.opened() as (store, seen):
            found = find_passage(store, seen.passage_meant(store, chunk_id) if seen else chunk_id)
            return replace(found, chunk_id=chunk_id)

    def locate(self, passages: Sequence[Passage]) -> list[Location]:
        """Return the document that each passage leads to, and whether its file has changed."""
        if not self._access.has_store:
            return [Location() for _ in passages]
        with self._access.opened() as (store, seen):
            if seen is None:
                return locate(store, passages, self._access.shared.files)
            meant = [replace(one, chunk_id=seen.passage_meant(store, one.chunk_id)) for one in passages]
            found = locate(store, meant, self._access.shared.files)
            return [replace(one, document=seen.told.get(one.document or 0)) for one in found]

    def changed(self, answer: Answer) -> list[str]:
        """Return the paths of the cited documents whose files have changed or gone since they were indexed."""
        cited = {one.passage.path: one.passage for one in answer.citations}
        states = [one.state for one in self.locate(list(cited.values()))]
        return [path for path, state in zip(cited, states, strict=True) if state in {"changed", "missing"}]

    def contents(self) -> Contents:
        """Return the paths of the documents with their ids, and the roots that hold any."""
        if self._access.has_store:
            with self._access.opened() as (store, seen):
                ids = {one.path: one.id for one in store.documents()}
                told = {path: seen.told[one] for path, one in ids.items()} if seen else ids
                return Contents(told, tuple(store.roots()))
        passages = self._access.live_index().passages()
        assert passages is not None, "without a store, the search engine holds the passages"
        return Contents({one.path: one.id for one in passages.facts()}, tuple(passages.roots()))

    def require_any(self) -> None:
        """Raise LibraryError if no document can be searched; the models would be loaded for nothing."""
        if not self._access.manifest()["documents"]:
            index = command_for(self._access.folder, "index", "PATH")
            raise LibraryError(f"The library {self._access.folder} holds no documents; index some with `{index}`.")

    def missing_notice(self) -> str:
        """Return how much can be searched so far, if the first index() has not ended, else nothing."""
        manifest = self._access.manifest()
        if expected := manifest.get("expected"):
            so_far = f"{manifest['documents']} of about {expected} documents can be searched so far"
            return f"The first `local-rag index` has not ended: {so_far}."
        return ""

    def overview(self) -> Overview:
        """Return what the library holds at a glance."""
        if not self._access.has_store:
            contents, passages = self.contents(), self._access.live_index().passages()
            assert passages is not None, "without a store, the search engine holds the passages"
            return overview(passages.facts(), contents.documents, names_below(contents.roots), unread=0)
        with self._access.opened() as (store, seen):
            known, stamp = self._access.shared.overviews.get(self._access.limits), seen_stamp(store)
            if known is None or known[0] != stamp:
                ids = {one.path: seen.told[one.id] if seen else one.id for one in store.documents()}
                unread = sum(not is_expected(one.reason) for one in store.unread().values())
                made = overview(store.facts(), ids, names_below(store.roots()), unread=unread)
                known = self._access.shared.overviews[self._access.limits] = stamp, made
            return known[1]

    def draft_questions(self, *, most: int) -> list[str]:
        """Return at most so many questions that the documents may answer; nothing has checked whether they do."""
        with self._access.reading() as store:
            return draft_questions(store, most=most)

    def place_names(self) -> Name:
        """Return a function that names places from their indexed folder on, for programs on other machines."""
        if not self._access.has_store:
            return names_below(self.contents().roots)
        with self._access.reading() as store:
            return names_below(store.roots())

    def browse(self, wanted: Look = Look(), *, start: int = 0, count: int = 100) -> Listing:  # noqa: B008
        """Return `count` of the documents that are looked at, from `start` on, and how far each is indexed."""
        with self._access.opened() as (store, seen):
            found = browse(store, self._access.shared.files, wanted, start=start, count=count)
            if seen is None:
                return found
            return replace(found, documents=tuple(replace(one, id=seen.told[one.id]) for one in found.documents))

    def looked_at(self, wanted: Look) -> list[str]:
        """Return the paths of all documents that are looked at."""
        with self._access.reading() as store:
            return [one.path for one in look(store, wanted)]

    def unread(self) -> list[tuple[str, str]]:
        """Return the files that could not be read, with the reasons."""
        with self._access.reading() as store:
            return [(path, one.reason) for path, one in sorted(store.unread().items())]

    def progress(self) -> IndexProgress:
        """Return how far the documents are indexed, perhaps by another process.

        Whether others are being indexed is nothing that who sees a part is told.
        """
        with self._access.reading() as store:
            found = index_progress(store)
        return replace(found, running=found.running and found.vectors < found.chunks) if self._access.limits else found

    def families(self, *, filters: Filters | FilterFields = EVERYTHING) -> list[tuple[Version, ...]]:
        """Return the documents that are versions of each other, newest first; one of them must pass the filters."""
        with self._access.opened() as (store, seen):
            passes, facts = document_filter(as_filters(filters), store.roots()), {one.id: one for one in store.facts()}
            families = self._access.versions(store).families()
            found = [family for family in families if any(passes(facts[version.id]) for version in family)]
            return [tuple(replace(one, id=seen.told[one.id]) for one in family) for family in found] if seen else found

    def reading(self) -> AbstractContextManager[Store]:
        """Open a store that only the caller uses, so it can read while another thread asks; it shows what is seen."""
        return self._access.reading()

    @contextmanager
    def named(self, filters: Filters = EVERYTHING) -> Iterator[NamedDocuments]:
        """Open the documents that are seen by the names that people give them."""
        with self._access.opened() as (store, _seen):
            yield NamedDocuments(store, self._access.versions(store), self._access.shared.files, filters)

    def names(self, filters: Filters) -> Sequence[NamedDocument]:
        """Return what the documents that pass the filters are called."""
        with self._access.reading() as store:
            passes = self._access.passing(store, filters)
            return [one for one in store.named_documents(store.live_ids()) if passes(one.id)]

    def is_of_a_title(self, question: str) -> bool:
        """Return whether the words of a question stand in the title of a document: "Leave?" is no small talk then."""
        words = set(keyword_tokens(question))
        if not words or not self._access.has_store:
            return False
        with self._access.reading() as store:
            return any(words <= set(keyword_tokens(one.title)) for one in store.named_documents(store.live_ids()))


def _linked(links: Sequence[LinkedDocument], seen: Seen | None) -> tuple[LinkedDocument, ...]:
    """Return links with the numbers of documents that are told."""
    return tuple(replace(one, id=seen.told[one.id]) if seen else one for one in links)
