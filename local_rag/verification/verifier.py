"""Check a text statement by statement, within limits of length, number and time."""

import time
from collections.abc import Callable

from local_rag.asking import require_checkable
from local_rag.llama.generator import never
from local_rag.progress_records import Progress
from local_rag.verification.claims import read_claims
from local_rag.verification.evidence import Documents, Names
from local_rag.verification.judge import Holds, Judge
from local_rag.verification.verdicts import Checked, Verification

MOST_STATEMENTS = 5000  # of a text


def verify_text(
    text: str,
    documents: Documents,
    holds: Holds,
    *,
    first: int = 0,
    seconds: float | None = None,
    progress: Callable[[Progress], None] = lambda _progress: None,
    on_statement: Callable[[Checked], None] = lambda _checked: None,
    stop: Callable[[], bool] = never,
) -> Verification:
    """Check the statements of a text in order, from number `first` on; `on_statement` receives each when it is checked.

    After `seconds`, or once `stop` returns True, the rest is left out; of a text with statements one is checked.
    """
    require_checkable(text)
    started, names = time.monotonic(), Names(documents.named())
    claims = list(read_claims(text, names.at))
    judge, checked = Judge(documents, names, holds), list[Checked]()
    for claim in claims[first:MOST_STATEMENTS]:
        spent = time.monotonic() - started
        if checked and (stop() or (seconds is not None and spent > seconds)):
            break
        rate = f"{len(checked) / spent:.1f} a second" if checked and spent else ""
        progress(Progress("verify", first + len(checked), len(claims), rate))
        checked.append(judge.check(claim))
        on_statement(checked[-1])
    progress(Progress("verify", first + len(checked), len(claims)))
    return Verification(text, tuple(checked), max(0, len(claims) - first - len(checked)))
