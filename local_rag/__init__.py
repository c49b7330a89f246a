"""Retrieval-augmented generation with contextual retrieval, entirely on your own machine.

>>> from local_rag import Library
>>> library = Library(".local-rag")
>>> library.index(["documents"])
>>> print(library.ask("How long is parental leave?").text)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from local_rag.answer_records import Answer, Citation, Found, FoundPlace, Quote, Written
    from local_rag.asking import AskOptions, FilterFields, Filters, Turn
    from local_rag.catalogue.contents import ListedDocument
    from local_rag.catalogue.library_status import Status
    from local_rag.conversation import Conversation
    from local_rag.document_records import Skipped
    from local_rag.errors import (
        LibraryError,
        LocalRagError,
        MissingError,
        ModelError,
        QuestionError,
        ReadError,
        StoppedError,
    )
    from local_rag.indexing.indexer import IndexReport
    from local_rag.library import AnswerStream, Library
    from local_rag.maintenance.removal import Removal
    from local_rag.passage_records import Passage
    from local_rag.progress_records import Progress

_HOMES = {
    "asking": "AskOptions FilterFields Filters Turn",
    "catalogue.contents": "ListedDocument",
    "catalogue.library_status": "Status",
    "conversation": "Conversation",
    "errors": "LibraryError LocalRagError MissingError ModelError QuestionError ReadError StoppedError",
    "indexing.indexer": "IndexReport",
    "library": "AnswerStream Library",
    "maintenance.removal": "Removal",
    "answer_records": "Answer Citation Found FoundPlace Quote Written",
    "document_records": "Skipped",
    "passage_records": "Passage",
    "progress_records": "Progress",
}

__all__ = [
    "Answer",
    "AnswerStream",
    "AskOptions",
    "Citation",
    "Conversation",
    "FilterFields",
    "Filters",
    "Found",
    "FoundPlace",
    "IndexReport",
    "Library",
    "LibraryError",
    "ListedDocument",
    "LocalRagError",
    "MissingError",
    "ModelError",
    "Passage",
    "Progress",
    "QuestionError",
    "Quote",
    "ReadError",
    "Removal",
    "Skipped",
    "Status",
    "StoppedError",
    "Turn",
    "Written",
]


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that the command line starts fast."""
    for module, names in _HOMES.items():
        if name in names.split():
            return getattr(importlib.import_module(f"local_rag.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
