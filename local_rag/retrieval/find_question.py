"""What is looked for in all documents: phrases or a meaning, and the documents among which they are looked for.

A plan says it, or a person does with the flags of `find`. The signs of quotation are read here, and the operators of
other programs, which have no meaning.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal

from local_rag.answer_records import FindKind
from local_rag.plan_records import Plan
from local_rag.text.tokens import keyword_tokens
from local_rag.understanding.question_reader import read_plan

Rule = Literal["words", "meaning", "names"]
_LONGEST = 500  # characters of a text whose operators are read
_BARE_WORDS = 3
_KINDS: dict[str, FindKind] = {"count": "count", "list": "documents", "occurrences": "list"}

# A quotation ends: a sign that only begins one must not be looked for to the end of a text, once for each such sign.
_QUOTED_TEXT = (
    r"\"([^\"]{1,500}+)\"|\u201c([^\u201d\"]{1,500}+)[\u201d\"]|\u201e([^\u201c\u201d\"]{1,500}+)[\u201c\u201d\"]"
    r"|\u00ab([^\u00bb]{1,500}+)\u00bb|\u00bb([^\u00ab]{1,500}+)\u00ab"
    r"|\u300c([^\u300d]{1,500}+)\u300d|\u300e([^\u300f]{1,500}+)\u300f"
    r"|\u201a([^\u2018\u2019]{1,500}+)[\u2018\u2019](?!\w)|(?<!\w)['\u2018]([^'\u2019]{1,500}+)['\u2019](?!\w)"
)
QUOTED = re.compile(_QUOTED_TEXT)  # with marks of several languages
# Operators of other programs: -word, NOT word, title:word, word*, +word, word~2, NEAR/3.
_OPERATOR = re.compile(
    rf"(?P<quoted>{_QUOTED_TEXT})"
    r"|(?P<not>(?:(?<=\s)(?:AND\s+)?NOT\s+|(?<=\s)[-!](?=[^\W\d_]|[\"\u201c]))(?P<unwanted>\"[^\"]{1,500}+\"|\S+))"
    r"|(?P<field>(?<!\S)-?(?:(?P<said>title|intitle|subject|content|body|text)|path|file|filename|filetype|type|ext|in|folder"
    r"|tags?|author|date|after|before|since|site|inurl|from|to):(?P<value>[^\s:/]\S*))"
    r"|(?P<wild>(?<!\S)(?:[^\W\d_]{2,}\*+\w*|\*+[^\W\d_]{2,}\*?)(?!\S))"
    r"|(?P<plus>(?<!\S)\+[^\W\d_]\S*)"
    r"|(?P<near>(?<=\s)NEAR(?:/\d+)?(?=\s)|(?<!\S)[^\W_]{2,}~\d?(?!\S))"
)
_SIGN = re.compile(r"[*+~]\d*|\bNEAR(?:/\d+)?\b")

_DETERMINERS = re.compile(
    r"\A(?:(?:both|either|the|an?|any|all|some|our|my|their|its|this|these|those|every|each)\s+)*"
    r"(?:(?:exact\s+)?(?:words?|terms?|phrases?|names?|strings?|expressions?|keywords?|numbers?|texts?|codes?)\s+"
    r"(?=[\"'\u201c\u2018\u00ab\w]))?(?:(?:the|an?)\s+)*",
    re.IGNORECASE,
)
_OR, _AND = (
    re.compile(r"\sor\s", re.I),
    re.compile(
        r"(?:(?<!\s)\s++)?,\s++(?:(?:and|or)\s++)?|(?<!\s)\s++(?:and|or|as\s++well\s++as|together\s++with)\s++", re.I
    ),
)


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words to look for; `exact`: only word for word, otherwise with their inflections too."""

    text: str
    exact: bool = False


@dataclass(frozen=True, slots=True)
class FindQuestion:
    """What is looked for in all documents.

    With the rule `words`, documents that contain the `phrases` count: `every` one of them, or any. With the rule
    `meaning`, documents with a passage about the `subject`. If `negated`, all others count. `sort` names the documents
    that are looked through, such as "incident reports"; it is empty for all. With the rule `names`, all documents of
    the sort count. `limits` are further ones, as somebody wrote them. `by_document` is true if documents are counted or
    listed, false if it is the places in them. `notes` say what was passed over.
    """

    kind: FindKind
    rule: Rule
    subject: str = ""
    phrases: tuple[Phrase, ...] = ()
    every: bool = True
    negated: bool = False
    sort: str = ""
    limits: tuple[str, ...] = ()
    by_document: bool = True
    notes: tuple[str, ...] = ()


def find_question(plan: Plan, question: str) -> FindQuestion | None:
    """Return what a plan looks for in all documents; None if it names neither a subject nor documents."""
    kind, by_document = _KINDS[plan.operation or "list"], plan.operation != "occurrences"
    if not plan.subject:
        named = bool(plan.sort or plan.limits) and by_document and not plan.negated
        return FindQuestion(kind, "names", sort=plan.sort, limits=plan.limits) if named else None
    phrases, every = phrases_of(_with_marks(plan.subject, question))
    exact = any(one.exact for one in phrases)
    rule: Rule = "words" if phrases and (plan.match == "words" or exact) else "meaning"
    found = FindQuestion(kind, rule, plan.subject, phrases, every, plan.negated, plan.sort, plan.limits, by_document)
    return found if rule == "words" else replace(found, phrases=())


def exact_question(
    text: str, *, count: bool = False, negated: bool = False, about: bool = False, sort: str = ""
) -> FindQuestion:
    """Return what a person looks for with the flags of `find`: the text is the subject, as it stands."""
    phrases, every = ((), True) if about else phrases_of(text)
    kind: FindKind = "count" if count else "documents"
    words = phrases or (() if about else (Phrase(text),))
    return FindQuestion(kind, "meaning" if about else "words", text, words, every, negated, sort)


def any_question(question: str, plan: Plan) -> FindQuestion:
    """Return what is looked for in all documents by any text with its plan, whatever its kind.

    A few bare words are looked for as they stand, and so is quoted text. Nothing else is read in a text that is one
    quotation.
    """
    text, notes = without_operators(" ".join(question.split()).rstrip("?!. "))
    few = len(text.split()) <= _BARE_WORDS and not question.rstrip().endswith("?")
    bare = bool(QUOTED.fullmatch(text)) or (few and (plan.kind != "documents" or plan.subject == text))
    of_documents = plan if plan.kind == "documents" else read_plan(question, "documents")
    # A question that is read as one of documents against its kind has lost its subject rather than none.
    is_read = plan.kind == "documents" or bool(of_documents.subject)
    if not bare and is_read and (asked := find_question(of_documents, question)):
        return replace(asked, notes=notes)
    phrases, every = phrases_of(text)
    if bare or (len(text) <= _LONGEST and any(one.exact for one in phrases)):
        # A word such as "the" is no phrase, but may be looked for.
        return FindQuestion("documents", "words", text, phrases or (Phrase(text),), every, notes=notes)
    return FindQuestion("documents", "meaning", text, notes=notes)


def _with_marks(subject: str, question: str) -> str:
    """Return a subject with the signs of quotation around it, if the question has some."""
    at = question.find(subject)
    around = question[max(0, at - 1) : at + len(subject) + 1]
    return around if QUOTED.search(around) else subject


def without_operators(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a text for `find` without the operators of other programs, and what is to be said of each."""
    notes = list[str]()

    def leave_out(found: re.Match[str]) -> str:
        if found["quoted"]:
            return found[0]
        word = found[0].strip()
        if found["not"]:
            said = f"documents with it are not left out; ask `Which documents do not mention {found['unwanted']}?`"
            instead = ""
        elif found["field"]:
            said = "options such as `--in` and `--type` choose documents"
            instead = found["value"] if found["said"] else ""
        else:
            said, instead = "the words were looked for without it", _SIGN.sub("", word)
        notes.append(f"There is no operator as in `{word}`: {said}.")
        return f" {instead} "

    kept = " ".join(_OPERATOR.sub(leave_out, text).split())
    return (kept if re.search(r"\w", kept) else text), tuple(notes)


def as_words(asked: FindQuestion) -> FindQuestion:
    """Return the question for documents that contain all words of a subject, instead of being about it."""
    words = [word for word in re.findall(r"[^\W_]+(?:['\u2019-][^\W_]+)*", asked.subject) if keyword_tokens(word)]
    return replace(asked, rule="words", phrases=tuple(map(Phrase, words)) or (Phrase(asked.subject),), every=True)


def phrases_of(subject: str) -> tuple[tuple[Phrase, ...], bool]:
    """Return the phrases of a subject, and whether all of them are meant or any."""
    quoted = [next(filter(None, found.groups())).strip() for found in QUOTED.finditer(subject)]
    rest = QUOTED.sub("", subject)
    if quoted:
        return tuple(Phrase(text, exact=True) for text in quoted if text), not re.search(r"\bor\b", rest, re.IGNORECASE)
    parts = [_DETERMINERS.sub("", part).strip(" ,;:") for part in _AND.split(_DETERMINERS.sub("", subject.strip()))]
    return tuple(Phrase(part) for part in parts if re.search(r"\w", part)), not _OR.search(f" {subject} ")
