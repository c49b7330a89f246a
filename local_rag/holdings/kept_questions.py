"""What a library keeps of the questions that were asked: conversations, saved tables, cached answers and counts."""

from contextlib import closing

from local_rag.asking import KeptOfQuestions
from local_rag.holdings.access import Access
from local_rag.maintenance.removal import forget_missing
from local_rag.store.cell_rows import drop_tables, holds_tables
from local_rag.store.database import Store
from local_rag.store.history import History, kept_history
from local_rag.store.storage_errors import storage_errors


class KeptQuestions:
    """What a library keeps of questions, to be told and deleted."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def kept(self) -> KeptOfQuestions:
        """Return what the history file holds, also if nothing is written to it any more."""
        with kept_history(self._access.folder) as history:
            return history.counts() if history else KeptOfQuestions()

    def forget(self, person: str = "") -> int:
        """Delete conversations, saved tables, cached answers and counts of questions, leaving nothing of them.

        They are those of everybody, or only the conversations and tables of the person with this id. Return how many
        conversations there were.
        """
        if self._access.has_store:
            self._forget_tables(person)
        with kept_history(self._access.folder) as history:
            if history is None:
                return 0
            if person:
                return history.of(person).forget_person()
            kept = history.counts().conversations
            history.forget_all()
            return kept

    def _forget_tables(self, person: str) -> None:
        with storage_errors(self._access.folder):
            with closing(Store(self._access.folder)) as store:
                if not holds_tables(store, person):
                    return
            with closing(Store(self._access.folder, write=True)) as store:
                drop_tables(store, person)

    def forget_missing(self, history: History) -> None:
        """Delete from a history what quotes documents that the library no longer holds."""
        if self._access.has_store:
            with self._access.reading() as store:
                forget_missing(store, self._access.shared.indexes, history)
