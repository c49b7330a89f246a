"""Retrieval-augmented generation with contextual retrieval, entirely on your own machine.

>>> from local_rag import Library
>>> library = Library(".local-rag")
>>> library.index(["documents"])
>>> print(library.ask("How long is parental leave?").text)
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from local_rag.asking import AskOptions, Filters
    from local_rag.library import Library
    from local_rag.records import Answer, Citation, Passage

_HOMES = {"library": ("Library",), "asking": ("AskOptions", "Filters"), "records": ("Answer", "Citation", "Passage")}

__all__ = ["Answer", "AskOptions", "Citation", "Filters", "Library", "Passage"]


def __getattr__(name: str) -> Any:
    """Import the public names on first use, so that the command line starts fast."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"local_rag.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
