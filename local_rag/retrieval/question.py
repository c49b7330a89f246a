"""A question: checked once, and read for what its words ask for.

Only questions about whole documents search the rows that stand for documents too. For any other question those rows
would push chunks out of the lists: they lowered the rank of the golden passages of the questions on corpus/ (MRR of the
fused list 0.810 instead of 0.828, p = 0.001).
"""

import re
from dataclasses import dataclass
from functools import cache, cached_property

from local_rag.asking import require_question
from local_rag.retrieval.counting_questions import FindQuestion, find_question
from local_rag.text.languages import language_of

_DOCUMENT = (
    r"(?:web ?)?(?:documents?|docs?|files?|pages?|papers?|reports?|manuals?|handbooks?|booklets?|brochures?|guides?|"
    r"articles?|leaflets?|contracts?|policy|policies|presentations?|slides?|spreadsheets?|minutes|memos?|letters?|"
    r"e?-?mails?|notes?|sources?|chapters?|readmes?|books?|posts?|announcements?|texts?|whitepapers?|studies|study)"
)
# Up to three words may stand between words that belong together.
_FEW = r"(?:\s+[\w'-]+){0,3}?"
_ASKS = (
    rf"\b(?:which|what)\s+{_DOCUMENT}\b"  # which manual belongs to ...
    rf"|\b(?:which|what|all|any|the)\s+of\s+(?:the|our|my|these|those)\s+{_DOCUMENT}\b"
    rf"|\bwhat\s+(?:does|do|did)\s+(?:this|that|the|these|those)\s+{_DOCUMENT}\b.*"
    r"\b(?:cover|deal\s+with|describe|contain|discuss|treat|explain)s?\s*+\??\s*+$"
    rf"|^\W*(?:tell|say|write|explain)\b.*\babout\s+(?:this|that|the|these|those)\s+{_DOCUMENT}\b"
    r"|\bwhat(?:'s|\s+is|\s+are|\s+stands)?\s+(?:\w+\s+)?in\s+(?:here|(?:this|the|my|our)\s+(?:library|folder|archive))\b"
    rf"|\b(?:this|that|the|these|those|it|each|every)\b.*\babout\s*+\??\s*+$"  # what is the report on ... about?
    r"|\b(?:sum|summ?ing)\s+up\b|\bsumm?ari[sz]\w*|\bsummary\b|\b(?:overview|outline|gist)\s+of\b"
    rf"|\b(?:is|are)\s+there{_FEW}\s+{_DOCUMENT}\b|\bdo\s+(?:we|you|i)\s+have{_FEW}\s+{_DOCUMENT}\b"
    rf"|\b(?:list|show|find|name|give)\b{_FEW}\s+{_DOCUMENT}\s+(?:on|about|that|which|of|for|from|with|dealing|covering)\b"
    r"|\bwhere\s+(?:is|are|was|were)\b.*\b(?:written|described|explained|documented|recorded|laid\s+down|"
    r"the\s+(?:\w+\s+)?(?:rules?|instructions|terms|conditions|procedures?|guidelines?))\b"
    r"|\bwhere\s+(?:did|do|have)\s+(?:we|they|i|you)\s+(?:\w+\s+)?(?:announce|write|describe|explain|document|record|"
    r"publish|report|say)"
)
_LONGEST = 2000  # characters of a question that are examined


@dataclass(frozen=True)
class Question:
    """A question; one that is empty, too long or not UTF-8 raises QuestionError.

    `parts` are the questions of a compound one; none if it asks for one thing. What else its words say is read when it
    is needed. `typed` is what the user wrote, if that is another language.
    """

    text: str
    parts: tuple[str, ...] = ()
    typed: str = ""

    def __post_init__(self) -> None:
        require_question(self.text)

    @property
    def asked(self) -> str:
        """What the user wrote."""
        return self.typed or self.text

    @cached_property
    def language(self) -> str:
        """The language that it is asked in."""
        return language_of(self.text)

    @cached_property
    def about_documents(self) -> bool:
        """Whether it asks for documents or for their subject, not for something in a document."""
        return asks_for_documents(self.text)

    @cached_property
    def of_all_documents(self) -> FindQuestion | None:
        """What it asks of all documents; None if it may ask for anything else."""
        return find_question(self.text)


@cache
def _pattern() -> re.Pattern[str]:
    """Compile the pattern at the first question, because it takes as long as half of an import of numpy."""
    return re.compile(_ASKS, re.IGNORECASE | re.DOTALL)


def asks_for_documents(question: str) -> bool:
    """Return whether a question asks for documents or for their subject, not for something in a document."""
    return bool(_pattern().search(" ".join(question[:_LONGEST].split())))
