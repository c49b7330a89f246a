"""Retrieval-augmented generation with contextual retrieval, entirely on your own machine.

>>> from local_rag import Library
>>> library = Library(".local-rag")
>>> library.index(["documents"])
>>> print(library.ask("How long is parental leave?").text)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from local_rag.library import Library
    from local_rag.records import Answer, AskOptions, Citation, Filters, Passage

__all__ = ["Answer", "AskOptions", "Citation", "Filters", "Library", "Passage"]


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that the command line starts fast."""
    if name == "Library":
        from local_rag.library import Library

        return Library
    if name in __all__:
        from local_rag import records

        return getattr(records, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
