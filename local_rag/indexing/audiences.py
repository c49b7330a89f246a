"""Who sees which documents: none is compared with one that somebody who sees it does not see.

What distinguishes a document shapes its passages, their vectors and scores. For people with limits it is therefore
found among documents that they see, as in a library that holds nothing else.
"""

from collections.abc import Sequence

from local_rag.keys import key_of
from local_rag.retrieval.filters import document_filter, limits_key, outermost
from local_rag.store.database import Store
from local_rag.store.people_file import limits_of_people


class Audiences:
    """Which of a library's people with limits see each document, as their file says now."""

    def __init__(self, store: Store) -> None:
        limits, roots = limits_of_people(store.folder), outermost(store.roots())
        by_key = {limits_key(one): document_filter(one, roots, are_limits=True) for one in limits}
        self.limits = sorted(by_key)
        facts = store.facts() if by_key else []
        self._of = {one.id: frozenset(key for key in self.limits if by_key[key](one)) for one in facts}

    def key(self, document: int) -> str:
        """Return a key of who sees a document, empty if everybody who does sees everything."""
        audience = self._of.get(document, frozenset())
        return key_of(*sorted(audience)) if audience else ""

    def seen_with(self, document: int, others: Sequence[int]) -> Sequence[int]:
        """Return those of the others that everybody sees who sees a document."""
        audience = self._of.get(document)
        return [one for one in others if audience <= self._of[one]] if audience else others
