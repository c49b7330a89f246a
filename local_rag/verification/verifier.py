"""Check a text statement by statement, within limits of length, number and time."""

import time
from collections.abc import Callable

from local_rag.errors import QuestionError
from local_rag.llama.generator import never
from local_rag.records import Progress
from local_rag.verification.claims import read_claims
from local_rag.verification.evidence import Documents, Names
from local_rag.verification.judge import Holds, Judge
from local_rag.verification.verdicts import Checked, Verification

MOST_CHARACTERS, MOST_STATEMENTS = 400_000, 5000  # of a text
_LONGEST_DETAIL = 60  # characters of a statement that progress shows


def require_checkable(text: str) -> None:
    """Raise QuestionError for a text that is empty, or longer than is checked."""
    if not text.strip():
        raise QuestionError("The text is empty; give statements to check.")
    if len(text) > MOST_CHARACTERS:
        raise QuestionError(
            f"The text has {len(text):,} characters, and at most {MOST_CHARACTERS:,} are checked; check it in parts."
        )


def verify_text(
    text: str,
    documents: Documents,
    holds: Holds,
    *,
    seconds: float | None = None,
    progress: Callable[[Progress], None] = lambda _progress: None,
    on_statement: Callable[[Checked], None] = lambda _checked: None,
    stop: Callable[[], bool] = never,
) -> Verification:
    """Check the statements of a text in order; what is over after `seconds`, or once `stop` returns True, is left out.

    `on_statement` receives each as soon as it is checked.
    """
    require_checkable(text)
    started, names = time.monotonic(), Names(documents.named())
    claims = list(read_claims(text, names.at))
    judge, checked = Judge(documents, names, holds), list[Checked]()
    for number, claim in enumerate(claims[:MOST_STATEMENTS]):
        spent = time.monotonic() - started
        if stop() or (seconds is not None and spent > seconds):
            break
        rate = f"{number / spent:.1f} a second" if number and spent else ""
        progress(Progress("verify", number, len(claims), rate))
        checked.append(judge.check(claim))
        on_statement(checked[-1])
    progress(Progress("verify", len(checked), len(claims)))
    return Verification(text, tuple(checked), len(claims) - len(checked))
