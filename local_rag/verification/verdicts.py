"""The records of a check: statements with their verdicts, and the quotations that these stand on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from local_rag.answer_records import Verdict
from local_rag.digests.statements import Place

VERDICTS: dict[Verdict, str] = {
    "supported": "the documents say so",
    "contradicted": "the documents say something else",
    "not there": "these quoted words stand in no document",
    "other document": "it stands in another document or on another page than the text says",
    "superseded": "only an older version says so",
    "not in these documents": "the documents do not say it",
    "no claim": "nothing that documents could say",
}
# What lets a check fail, in the order of how bad it is; the last one may be allowed.
FAILING: tuple[Verdict, ...] = ("contradicted", "not there", "other document", "superseded", "not in these documents")
DifferenceKind = Literal["value", "name", "negation", "words", "place"]


@dataclass(frozen=True, slots=True)
class Difference:
    """What a statement says and what stands in the quotation in its place; either may be empty."""

    kind: DifferenceKind
    said: str
    written: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """A quotation with its place, and what in it differs from the statement; `newest` is set if it is outdated."""

    place: Place
    differs: tuple[Difference, ...] = ()
    newest: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """A statement of the text, its span there, its verdict, and the quotations for it, the most telling first.

    `probability` is about how often verdicts are right that stand on evidence of this kind.
    """

    text: str
    start: int
    end: int
    verdict: Verdict
    quotes: tuple[Evidence, ...] = ()
    probability: float = 1.0


@dataclass(frozen=True, slots=True)
class Verification:
    """A text with its statements in order; those beyond a limit of number or time were `left_out`."""

    text: str
    statements: tuple[Checked, ...]
    left_out: int = 0

    def count(self, verdict: Verdict) -> int:
        """Return how many statements have a verdict."""
        return sum(one.verdict == verdict for one in self.statements)

    def fails(self, *, allow_missing: bool = False) -> bool:
        """Return whether a statement is contradicted or not there, or was not checked."""
        failing: Sequence[Verdict] = FAILING[:-1] if allow_missing else FAILING
        return bool(self.left_out) or any(one.verdict in failing for one in self.statements)
