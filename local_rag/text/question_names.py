"""Find the names that a question says, which a source of its answer should say too."""

from local_rag.text.facts import Fact, find_facts, normalize
from local_rag.text.languages import language_of

_LONGEST_QUESTION = 2000  # characters that are read
# Capitalised in a question without being a name.
_NO_NAME = frozenset(
    """how when what which who whom whose where why is are was were do does did can could may might must shall should
    will would has have had i i'm i've i'd am the a an in on at of to for from by and or if my our your please tell give
    list explain describe show name compare summarise summarize find pdf doc docx xls xlsx csv faq ok hi hello thanks
    also then there it its this that these those with under after before about as""".split()  # noqa: SIM905
)


def question_names(question: str) -> list[Fact]:
    """Return the names, codes, dates and numbers that a question says, which a source of its answer should say, too."""
    plain = normalize(question[:_LONGEST_QUESTION])
    found = [fact for fact in find_facts(plain) if not all(word.lower() in _NO_NAME for word in fact.text.split())]
    if language_of(plain) == "german":  # in which every noun has a capital letter
        return [fact for fact in found if not (fact.text[1:].islower() and fact.text.isalpha())]
    return found
