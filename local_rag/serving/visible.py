"""A library as one person may see it; the interfaces read nothing but this."""

from collections.abc import Sequence
from pathlib import Path

from local_rag.display import Name
from local_rag.library import Library
from local_rag.maintenance.contents import Contents, IndexedDocument, IndexProgress, Location, WholeDocument
from local_rag.maintenance.documents import ListedDocument
from local_rag.maintenance.status import Status
from local_rag.records import EVERYTHING, Filters, Passage, Person
from local_rag.settings import Settings


class VisibleLibrary:
    """Read a library within the limits of a person: what lies outside is not there, nor counted, nor named.

    Each method is that of `Library`, and any thread may call it.
    """

    def __init__(self, library: Library, person: Person) -> None:
        self._library, self._limits = library, person.limits

    @property
    def folder(self) -> Path:
        """Return the folder of the library."""
        return self._library.folder

    @property
    def settings(self) -> Settings:
        """Return the settings of the library."""
        return self._library.settings

    @property
    def reranks(self) -> bool:
        """Return whether the profile has a reader."""
        return self._library.reranks

    @property
    def questions_file(self) -> Path:
        """Return the file to which `record_question` adds."""
        return self._library.questions_file

    @property
    def is_whole(self) -> bool:
        """Whether this person may see all of it."""
        return not self._limits

    def search_keywords(self, question: str, *, top: int, filters: Filters = EVERYTHING) -> list[Passage]:
        """Return the best passages for the words of a question."""
        return self._library.search_keywords(question, top=top, filters=filters.limited_to(self._limits))

    def status(self) -> Status:
        """Return what the library contains."""
        return self._library.status(filters=self._limits)

    def documents(
        self, *, filters: Filters = EVERYTHING, after: str = "", most: int | None = None
    ) -> list[ListedDocument]:
        """Return the documents that match the filters."""
        return self._library.documents(filters=filters.limited_to(self._limits), after=after, most=most)

    def document(self, document_id: int, *, with_text: bool = True) -> WholeDocument:
        """Return a document as it was indexed."""
        return self._library.document(document_id, with_text=with_text, filters=self._limits)

    def passage(self, chunk_id: int) -> Passage:
        """Return the passage with this number."""
        return self._library.passage(chunk_id, filters=self._limits)

    def record_question(self, question: str, chunk_id: int) -> None:
        """Add a question and the passage that answers it to the library's own evaluation dataset."""
        self._library.record_question(question, chunk_id, filters=self._limits)

    def record_wrong_answer(self, question: str, chunk_id: int | None) -> None:
        """Add a question that was answered wrongly to those that wait for the right passage."""
        self._library.record_wrong_answer(question, chunk_id, filters=self._limits)

    def wrong_answers(self) -> list[str]:
        """Return the questions that wait for the right passage; who sees only a part sees none of others."""
        return self._library.wrong_answers() if self.is_whole else []

    def locate(self, passages: Sequence[Passage]) -> list[Location]:
        """Return the document that each passage leads to."""
        return self._library.locate(passages, filters=self._limits)

    def contents(self) -> Contents:
        """Return the paths of the documents with their ids, and the roots."""
        return self._library.contents(filters=self._limits)

    def place_names(self) -> Name:
        """Return a function that names places from their indexed folder on."""
        return self._library.place_names()

    def indexed_documents(self, *, start: int, count: int) -> tuple[list[IndexedDocument], list[tuple[str, str]]]:
        """Return how far `count` documents from `start` on are indexed, and as many unreadable files with reasons."""
        return self._library.indexed_documents(start=start, count=count, filters=self._limits)

    def index_progress(self) -> IndexProgress:
        """Return how far the library is indexed."""
        return self._library.index_progress(filters=self._limits)
