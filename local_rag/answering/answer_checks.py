"""Check what an answer says against what was asked: a number, and nothing of all rows from some of them."""

import re
from collections.abc import Sequence

from local_rag.plan_records import AnswerType
from local_rag.text.dates import find_dates, find_times
from local_rag.text.facts import Source, normalize
from local_rag.text.quantities import find_numbers
from local_rag.text.words import WORD, fold

_LONGEST_QUESTION = 2000  # characters that are read
_SHORT = 4  # words of an answer that says nothing but what is asked for
# "How many paid weeks": a number of something else, or with another unit, does not say it.
_TIMES_ASKED = re.compile(
    r"\bhow many (?:\w+ ){0,2}?(?P<unit>(?:second|minute|hour|day|night|week|month|year)s)\b", re.IGNORECASE
)
_OF_ALL = re.compile(
    r"\b(?:most|least|fewest|highest|lowest|largest|biggest|smallest|greatest|oldest|youngest|newest|latest|earliest"
    r"|longest|shortest|cheapest|heaviest|lightest|maximum|minimum|total|sum|average|altogether|all together|combined"
    r"|overall)\b",
    re.IGNORECASE,
)
# "Which invoices", "how many staff", but not "how many days": what is asked of several rows ...
_SEVERAL = re.compile(
    r"\bwhich (?:\w+ ){0,2}?(?:(?!(?:i|wa|ha|doe)s\b)\w+s|are|were|have)\b|\A(?:list|show|name|give)\b"
    r"|\bhow many\b",
    re.IGNORECASE,
)
# ... and how they are compared, which a model that sees some of them cannot tell of all.
_COMPARED = re.compile(
    r"\b(?:below|above|over|under|exceed(?:s|ed)?|overdue|late|on time|rose|risen|fell|fallen|grew|grown|increased"
    r"|decreased|dropped|declined|(?:more|less|fewer|higher|lower|greater|larger|smaller|bigger|longer|shorter|older"
    r"|younger|later|earlier|better|worse|cheaper) than|(?:after|before) (?:the |its |their )?(?:\d|\w* ?(?:date|due"
    r"|deadline)\b|(?:it was|they were) due))",
    re.IGNORECASE,
)


def is_seen(kind: AnswerType) -> bool:
    """Return whether it can be seen in an answer that it gives what is asked for."""
    return kind in {"number", "date", "name"}


def gives(kind: AnswerType, sentences: Sequence[str], question: str) -> bool:
    """Return whether sentences may give what a question asks for, if that can be seen; a name has a capital letter."""
    if kind != "name":
        return not is_seen(kind) or gives_number(sentences, question)
    text, asked = normalize(" ".join(sentences)), Source(question[:_LONGEST_QUESTION])
    words = WORD.findall(text)
    return len(words) <= _SHORT or any(word[0] != word[0].lower() and not asked.has_name(word) for word in words)


def gives_number(sentences: Sequence[str], question: str) -> bool:
    """Return whether sentences say a number or a time that the question does not say, or little: "free", "none"."""
    text, asked = normalize(" ".join(sentences)), Source(question[:_LONGEST_QUESTION])
    return (
        len(WORD.findall(text)) <= _SHORT
        or any(not asked.has_number(one) for one in find_numbers(text) if one.counts or one.unit)
        or any(not asked.has_date(date) for date in find_dates(text))
        or bool(find_times(text))
    )


def asks_of_all_rows(question: str, rows: Sequence[str]) -> bool:
    """Return whether a question asks for the highest, the sum or some of all rows, and these do not say that word."""
    said = {fold(word) for row in rows for word in WORD.findall(normalize(row))}
    question = normalize(question[:_LONGEST_QUESTION])
    several = _SEVERAL.search(question) and not _TIMES_ASKED.search(question)
    asked = [*_OF_ALL.finditer(question), *(_COMPARED.finditer(question) if several else ())]
    return any(not said.issuperset(map(fold, WORD.findall(match[0]))) for match in asked)
