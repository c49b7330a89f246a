"""Expected errors: each message is one sentence that says what is wrong and which command fixes it."""

from collections.abc import Iterable


class LocalRagError(Exception):
    """Report an expected failure as one sentence, without a traceback."""


class ModelError(LocalRagError):
    """Report a model that is unknown, missing, damaged or unusable."""


class ReadError(LocalRagError):
    """Report a document that cannot be read; the run continues without it.

    The fault is `lasting` if it lies in the document itself, so reading the same file again fails again. `waiting` is
    the number of pages that could be read with OCR, if that were installed.
    """

    def __init__(self, reason: str, *, lasting: bool = True, waiting: int = 0) -> None:
        super().__init__(reason)
        self.lasting = lasting
        self.waiting = waiting


class LibraryError(LocalRagError):
    """Report a library that is missing, locked, damaged or built with other settings."""


class MissingError(LibraryError):
    """Report a document, passage or conversation that the library does not hold, or not any more."""


class DamagedLibraryError(LibraryError):
    """Report a damaged store or index; `reason` is the damage without the remedy."""

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(f"{reason}; {remedy}.")
        self.reason = reason


class QuestionError(LocalRagError):
    """Report a question that cannot be asked."""


class ForbiddenError(LocalRagError):
    """Report what this person may not do."""


class BusyError(LocalRagError):
    """Report that too many questions are already waiting."""


class StoppedError(LocalRagError):
    """Report an answer that was stopped before it was complete."""


class DatasetError(LocalRagError):
    """Report an evaluation dataset that is missing or malformed."""


class NetworkError(LocalRagError):
    """Report a failed download, in one of the commands that download."""


class ClusterError(LocalRagError):
    """Report cluster machines that cannot be reached or are incompatible."""


def require_known(names: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise TypeError for a keyword that is not known, which the sentence says together with the nearest known one."""
    known = list(known)
    for name in names:
        if name not in known:
            hint = nearest(name, known) or f"there are {', '.join(known)}."
            raise TypeError(f"There is no {what} {name!r}; {hint}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a clause that asks whether the known name nearest to an unknown one is meant; empty if none is near."""
    import difflib  # only for a mistake

    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean {close[0]!r}?" if close else ""
