"""Notice that a question is about whole documents: only then are the rows that stand for documents searched too.

Beside the chunks of every question they would take places in its lists that belong to chunks: with them the golden
passages of the questions on corpus/ stood lower (MRR of the fused list 0.810 instead of 0.828, p = 0.001).
"""

import re
from collections.abc import Callable, Collection

_DOCUMENT = (
    r"(?:web ?)?(?:documents?|docs?|files?|pages?|papers?|reports?|manuals?|handbooks?|booklets?|brochures?|guides?|"
    r"articles?|leaflets?|contracts?|policy|policies|presentations?|slides?|spreadsheets?|minutes|memos?|letters?|"
    r"e?-?mails?|notes?|sources?|chapters?|readmes?|books?|posts?|announcements?|texts?|whitepapers?|studies|study)"
)
# Up to this many words may stand between what belongs together.
_FEW = r"(?:\s+[\w'-]+){0,3}?"
_ASKS = re.compile(
    rf"\b(?:which|what)\s+{_DOCUMENT}\b"  # which manual belongs to ...
    rf"|\b(?:which|what|all|any|the)\s+of\s+(?:the|our|my|these|those)\s+{_DOCUMENT}\b"
    rf"|\bwhat\s+(?:does|do|did)\s+(?:this|that|the|these|those)\s+{_DOCUMENT}\b.*"
    r"\b(?:cover|deal\s+with|describe|contain|discuss|treat|explain)s?\s*\??\s*$"
    rf"|^\W*(?:tell|say|write|explain)\b.*\babout\s+(?:this|that|the|these|those)\s+{_DOCUMENT}\b"
    r"|\bwhat(?:'s|\s+is|\s+are|\s+stands)?\s+(?:\w+\s+)?in\s+(?:here|(?:this|the|my|our)\s+(?:library|folder|archive))\b"
    rf"|\b(?:this|that|the|these|those|it|each|every)\b.*\babout\s*\??\s*$"  # what is the report on ... about?
    r"|\b(?:sum|summ?ing)\s+up\b|\bsumm?ari[sz]\w*|\bsummary\b|\b(?:overview|outline|gist)\s+of\b"
    rf"|\b(?:is|are)\s+there{_FEW}\s+{_DOCUMENT}\b|\bdo\s+(?:we|you|i)\s+have{_FEW}\s+{_DOCUMENT}\b"
    rf"|\b(?:list|show|find|name|give)\b{_FEW}\s+{_DOCUMENT}\s+(?:on|about|that|which|of|for|from|with|dealing|covering)\b"
    r"|\bwhere\s+(?:is|are|was|were)\b.*\b(?:written|described|explained|documented|recorded|laid\s+down|"
    r"the\s+(?:\w+\s+)?(?:rules?|instructions|terms|conditions|procedures?|guidelines?))\b"
    r"|\bwhere\s+(?:did|do|have)\s+(?:we|they|i|you)\s+(?:\w+\s+)?(?:announce|write|describe|explain|document|record|"
    r"publish|report|say)",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST = 2000  # characters of a question that are looked at


def asks_for_documents(question: str) -> bool:
    """Say whether a question asks for documents, or what one is about, and not for something that stands in one."""
    return bool(_ASKS.search(" ".join(question[:_LONGEST].split())))


Ranking = list[tuple[int, float]]


def without(rows: Collection[int], search: Callable[[int], Ranking], top: int) -> Ranking:
    """Return the best `top` of a ranked list without some rows, asking for as many more as it takes.

    Twice as many are asked for at once: that costs hardly more, and a second search as much as the first.
    """
    wanted = 2 * top if rows else top
    while True:
        found = search(wanted)
        kept = [one for one in found if one[0] not in rows]
        if len(kept) >= top or len(found) < wanted:
            return kept[:top]
        wanted += max(top, wanted - len(kept))
