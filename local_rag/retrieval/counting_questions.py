"""Recognise questions that only all documents together answer: how many, which documents, list every.

A language model counts what happens to be among the passages that it is shown; code counts all. The rule knows the
common wordings and nothing else, so a question for one fact is not taken for such a question: on doubt it is none.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal

from local_rag.records import FindKind
from local_rag.text.tokens import keyword_tokens

# Nouns for documents in the plural: "which manual ...?" asks for one document, which an ordinary search finds.
_GENERIC = r"documents|docs|files|pages|sources|texts|pdfs|items"
_SORTS = (
    r"papers|reports|manuals|handbooks|booklets|brochures|guides|articles|leaflets|contracts|agreements|policies|"
    r"presentations|slides|spreadsheets|sheets|minutes|memos|letters|e-?mails|mails|messages|notes|chapters|readmes|"
    r"books|posts|announcements|whitepapers|studies|records|protocols|transcripts|invoices|forms|procedures|"
    r"guidelines|instructions|statements|tickets|logs|regulations|orders|offers|abstracts|entries|sections"
)
_ONE = (
    r"document|doc|file|page|source|text|pdf|paper|report|manual|handbook|guide|article|contract|agreement|policy|"
    r"memo|letter|e-?mail|message|note|chapter|book|post|announcement|study|record|protocol|transcript|invoice|"
    r"procedure|guideline|statement|ticket|log|regulation|order|abstract|entry|section"
)
_SOME = r"(?:of\s+)?(?:the\s+|our\s+|my\s+|these\s+|those\s+|all\s+|your\s+|different\s+|other\s+)*"
# The noun with up to three words before it: "our 2024 incident reports".
_NAMED = rf"(?P<sort>(?:(?!that\b|which\b|of\b|in\b|about\b|is\b|are\b|do\b)[\w'-]+\s+){{0,3}}?(?:{_GENERIC}|{_SORTS}))"
_DOCUMENTS = rf"{_SOME}{_NAMED}"
_EACH_DOCUMENT = rf"(?P<sort>(?:[\w'-]+\s+){{0,3}}?(?:{_ONE}))"
_HERE = (
    r"(?:\s+(?:(?:that\s+)?(?:we|i|you)\s+have|"
    r"in\s+(?:here|(?:the|my|our|this)\s+(?:library|folder|archive|collection))))?"
)

_NOT = r"(?P<not>(?:do|does|did)\s+not\s+|(?:don|doesn|didn)['\u2019]?t\s+|(?:not|never)\s+)?"
_WORDS = (
    r"(?:actually\s+|explicitly\s+|even\s+|also\s+)?"
    r"(?:mention(?:s|ed|ing)?|contain(?:s|ed|ing)?|nam(?:e|es|ed|ing)|includ(?:e|es|ed|ing)|cit(?:e|es|ed|ing)|"
    r"quot(?:e|es|ed|ing)|refer(?:s|red|ring|ence|ences|encing)?(?:\s+to)?|us(?:e|es|ed|ing)(?=\s+the\s+(?:word|term|phrase|name))|"
    r"speak(?:s|ing)?\s+of|list(?:s|ed|ing)?|ha(?:ve|s|ving)(?=\s+the\s+(?:word|term|phrase|name)))"
)
_MEANING = (
    r"(?:(?:contain(?:s|ing)?|ha(?:ve|s|ving)|giv(?:e|es|ing)|provid(?:e|es|ing)|includ(?:e|es|ing))\s+"
    r"(?:any\s+|some\s+)?(?:information|anything|something|details|advice|guidance|rules)\s+(?:on|about|for|regarding)|"
    r"(?:mention|say)(?:s|ing)?\s+(?:anything|something)\s+(?:on|about)|"
    r"(?:(?:are|is|were|was)\s+)?(?:all\s+|mainly\s+|mostly\s+)?(?:about|on|regarding|concerning)|"
    r"deal(?:s|ing|t)?\s+with|cover(?:s|ed|ing)?|discuss(?:es|ed|ing)?|describ(?:e|es|ed|ing)|concern(?:s|ed|ing)?|"
    r"explain(?:s|ed|ing)?|address(?:es|ed|ing)?|(?:talk|speak|writ)(?:s|es|e|ing)?\s+about|focus(?:es|ed|ing)?\s+on|"
    r"relat(?:e|es|ed|ing)\s+to|(?:have|has|having)\s+to\s+do\s+with|treat(?:s|ed|ing)?)"
)
_DOES = rf"{_NOT}(?:(?P<meaning>{_MEANING})|(?P<words>{_WORDS}))\s+(?P<subject>.+)"
_THAT = r"\s+(?:(?:that|which)\s+(?:(?:do|does)\s+(?!not\b))?)?"
_WITH = r"\s+with\s+(?P<words>the\s+(?:word|term|phrase|name)s?)\s+(?P<subject>.+)"
_AUXILIARY = r"(?:is|are|was|were|has|have|do|does|did|can)"
_SEEN = (
    r"(?P<words>(?:been\s+)?(?:mentioned|named|cited|quoted|referred\s+to|referenced|used|found|appear(?:s|ed)?|"
    r"occur(?:s|red)?|come\s+up|show\s+up|turn\s+up))"
)
_IN_DOCUMENTS = (
    rf"(?:\s+(?:in|within|across|throughout|over)\s+{_DOCUMENTS})?{_HERE}(?:\s+(?:in\s+total|altogether|overall))?"
)
_MENTIONS = r"(?:mentions?|occurrences?|appearances?|references?|instances?|uses)\s+(?:of|to)"
_LIST = r"(?:list|show|find|name|give|enumerate|get|return)(?:\s+me)?(?:\s+a\s+(?:complete\s+|full\s+)?list\s+of)?"
_ALL = r"(?:all(?:\s+of)?(?:\s+the|\s+our|\s+my)?|every(?:\s+single)?|each)"
_COUNT = (
    r"(?:how\s+many|(?:count|give|what(?:\s+is|'s|\u2019s))(?:\s+me)?\s+the\s+number\s+of|the\s+number\s+of|"
    r"number\s+of|count(?:\s+all)?)"
)

Rule = Literal["words", "meaning", "names"]

# The patterns for whole questions are compiled when the first question is asked: a search does without them, and
# compiling them takes longer than all other patterns of the program.

# What is counted or listed are documents.
_COUNT_DOCUMENTS = (
    rf"{_COUNT}\s+{_DOCUMENTS}{_HERE}(?:\s+are\s+there)?{_THAT}{_DOES}",
    rf"{_COUNT}\s+{_DOCUMENTS}\s+(?:do|have)\s+(?:we|i|you)\s+(?:have\s+)?{_DOES}",
    rf"{_COUNT}\s+{_DOCUMENTS}{_HERE}(?:\s+are\s+there)?{_WITH}",
    rf"(?:in\s+)?{_COUNT}\s+{_DOCUMENTS}\s+{_AUXILIARY}\s+(?P<subject>.+?)\s+{_SEEN}{_HERE}",
)
_WHICH_DOCUMENTS = (
    rf"(?:which|what)\s+{_DOCUMENTS}{_HERE}(?:\s+are\s+there)?{_THAT}{_DOES}",
    rf"(?:which|what)\s+{_DOCUMENTS}\s+(?:do|have)\s+(?:we|i|you)\s+(?:have\s+)?{_DOES}",
    rf"(?:which|what)\s+{_DOCUMENTS}{_HERE}(?:\s+are\s+there)?{_WITH}",
    rf"in\s+(?:which|what)\s+{_DOCUMENTS}\s+{_AUXILIARY}\s+(?P<subject>.+?)\s+{_SEEN}{_HERE}",
    rf"(?:which|what)\s+{_DOCUMENTS}\s+(?:is|are)\s+(?P<subject>.+?)\s+(?P<words>mentioned|named|cited|quoted)\s+in",
    rf"where\s+(?:is|are|was|were)\s+(?P<subject>.+?)\s+(?P<words>mentioned|named|cited)\s+(?:in|across)\s+{_DOCUMENTS}",
)
_LIST_DOCUMENTS = (
    rf"{_LIST}\s+{_ALL}\s+(?:{_NAMED}|{_EACH_DOCUMENT.replace('sort', 'one')}){_HERE}{_THAT}{_DOES}",
    rf"{_LIST}\s+(?:the\s+|our\s+|my\s+)?{_NAMED}{_HERE}{_THAT}{_DOES}",
    rf"{_LIST}\s+{_ALL}\s+(?:{_NAMED}|{_EACH_DOCUMENT.replace('sort', 'one')}){_HERE}{_WITH}",
    rf"{_LIST}\s+(?:the\s+|our\s+|my\s+)?{_NAMED}{_HERE}{_WITH}",
)
# What is counted or listed are places in documents.
_COUNT_PLACES = (
    rf"(?:how\s+often|how\s+many\s+times)\s+{_AUXILIARY}\s+(?P<subject>.+?)\s+{_SEEN}{_IN_DOCUMENTS}",
    rf"{_COUNT}\s+(?:the\s+|all\s+)?{_MENTIONS}\s+(?P<subject>.+?)(?:\s+are\s+there)?{_IN_DOCUMENTS}",
    rf"how\s+(?:often|many\s+times)\s+do(?:es)?\s+{_DOCUMENTS}\s+{_WORDS}\s+(?P<subject>.+)",
)
_LIST_PLACES = (
    rf"{_LIST}\s+{_ALL}\s+{_MENTIONS}\s+(?P<subject>.+?){_IN_DOCUMENTS}",
    rf"{_LIST}\s+{_ALL}\s+(?:places?|passages?|lines?|sentences?)\s+(?:that|which|where)\s+{_DOES}",
    rf"{_LIST}\s+{_ALL}\s+(?P<subject>\S+(?:\s+\S+){{0,3}}?)\s+(?:in|from|of|across|throughout|within)\s+"
    rf"(?:{_DOCUMENTS}|(?:each|every)\s+{_EACH_DOCUMENT.replace('sort', 'one')}){_HERE}",
)
# The plainest wordings in German and French; with "nicht" or "und" they would mean something else.
_SUBJECT = (
    r"\s+(?:(?:das\s+wort|den\s+(?:namen|begriff)|die|der|das|den|dem|le\s+(?:mot|nom)|les?|la)\s+)?"
    r"(?P<subject>(?!.{0,500}\b(?:nicht|und|oder|sowie|pas|et|ou)\b).+)"
)
_NOUNS = r"\s+(?:dokumente|dateien|unterlagen|texte|documents|fichiers|textes)"
_MENTION = (
    rf"{_NOUNS}\s+(?P<words>erw\u00e4hnen|nennen|enthalten|beinhalten|zitieren|mentionnent|contiennent|citent|nomment)"
    rf"{_SUBJECT}"
)
_WHICH_ELSEWHERE = (
    rf"(?:welche|quels){_MENTION}",
    rf"in\s+welchen{_NOUNS}n?\s+(?:wird|werden|steht|stehen|kommt){_SUBJECT}\s+(?P<words>erw\u00e4hnt|genannt|zitiert|vor)",
    rf"in\s+welchen{_NOUNS}n?\s+(?P<words>steht|stehen){_SUBJECT}",
)
_COUNT_ELSEWHERE = (rf"(?:wie\s+viele|combien\s+de){_MENTION}",)
_RULES: tuple[tuple[FindKind, bool, tuple[str, ...]], ...] = (
    ("count", True, _COUNT_DOCUMENTS),
    ("documents", True, _WHICH_DOCUMENTS),
    ("list", True, _LIST_DOCUMENTS),
    ("count", False, _COUNT_PLACES),
    ("list", False, _LIST_PLACES),
    ("documents", True, _WHICH_ELSEWHERE),
    ("count", True, _COUNT_ELSEWHERE),
)

# A quotation ends: a sign that only begins one must not be looked for to the end of a text, once for each such sign.
_QUOTED_TEXT = (
    r"\"([^\"]{1,500}+)\"|\u201c([^\u201d\"]{1,500}+)[\u201d\"]|\u201e([^\u201c\u201d\"]{1,500}+)[\u201c\u201d\"]"
    r"|\u00ab([^\u00bb]{1,500}+)\u00bb|\u00bb([^\u00ab]{1,500}+)\u00ab"
    r"|\u300c([^\u300d]{1,500}+)\u300d|\u300e([^\u300f]{1,500}+)\u300f"
    r"|\u201a([^\u2018\u2019]{1,500}+)[\u2018\u2019](?!\w)|(?<!\w)['\u2018]([^'\u2019]{1,500}+)['\u2019](?!\w)"
)
_QUOTED = re.compile(_QUOTED_TEXT)
# What is asked for are documents by their names alone. Any noun may be that of a folder.
_FOLDER = (
    r"(?:\s+(?:(?:that|which)\s+(?:are|lie)\s+)?(?:in|inside|within|under|below|from|of)\s+(?:the\s+|my\s+|our\s+)?"
    r"(?:(?:sub)?(?:folder|directory)\s+)?(?P<folder>[^?]{1,200}?)(?:\s+(?:sub)?(?:folder|directory))?)?"
)
_ANY = r"(?P<any>(?!that\b|which\b|of\b|in\b|about\b)[\w'-]+(?:\s+(?!that\b|which\b|of\b|in\b|about\b)[\w'-]+){0,2})"
_THERE = r"(?:\s+(?:are\s+there|exist|(?:do|have)\s+(?:we|i|you)(?:\s+have|\s+got)?))?"
_NAMES: tuple[tuple[FindKind, tuple[str, ...]], ...] = (
    ("count", (rf"{_COUNT}\s+{_DOCUMENTS}{_THERE}{_HERE}{_FOLDER}",)),
    (
        "documents",
        (
            rf"(?:which|what)\s+{_DOCUMENTS}{_THERE}(?:\s+(?:are|lie))?{_HERE}{_FOLDER}",
            r"(?:what|which\s+files?)\s+(?:is|are|lies?)\s+(?:there\s+)?in\s+(?:the\s+)?(?:sub)?(?:folder|directory)\s+"
            r"(?P<folder>[^?]{1,200})",
        ),
    ),
    (
        "list",
        (
            rf"{_LIST}\s+(?:{_ALL}\s+)?(?:the\s+|our\s+|my\s+)?{_NAMED}{_THERE}{_HERE}{_FOLDER}",
            rf"{_LIST}\s+{_ALL}\s+{_EACH_DOCUMENT.replace('sort', 'one')}{_HERE}{_FOLDER}",
            rf"{_LIST}\s+{_ALL}\s+{_ANY}{_HERE}",
        ),
    ),
)
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

_POLITE = re.compile(
    r"\A(?:(?:please|kindly|hi|hello|hey|and|so|now|ok(?:ay)?|,)[\s,]+|(?:can|could|would|will)\s+you\s+(?:please\s+)?|"
    r"(?:i\s+(?:want|need|would\s+like)|i['\u2019]d\s+like)\s+(?:to\s+know\s+|you\s+to\s+)?|(?:do\s+you\s+know|tell\s+me|say)\s+(?=how|which|what|in\b|where))+",
    re.IGNORECASE,
)
_ENDING = re.compile(
    r"[\s,]{0,9}(?:(?:,|and)\s+(?:which|what)(?:\s+(?:ones?|are\s+they|are\s+those))?|please|anywhere|at\s+all|in\s+total|"
    r"altogether|exactly|in\s+(?:them|it)|somewhere|thank\s+you|thanks|(?:are|is)\s+there)\Z",
    re.IGNORECASE,
)
_SECOND_QUESTION = re.compile(
    r"[,;?.]\s*(?:and\s+|but\s+)?(?:who|whom|what|when|where|why|how|which|is|are|do|does)\b|\band\s+(?:who|what|when|why|how|where)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"\b(?:who|whom|whose|what|when|where|why|how|that|which|whether|if|because|to\s+\w+)\b", re.I)
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
_LONGEST = 500  # characters of a question that is examined
_LONGEST_PHRASE = 4  # words; a longer one is no term but says something
_BARE_WORDS = 3


@dataclass(frozen=True, slots=True)
class Phrase:
    """Words to look for; `exact`: only word for word, otherwise with their inflections too."""

    text: str
    exact: bool = False


@dataclass(frozen=True, slots=True)
class FindQuestion:
    """What a question asks of all documents.

    With the rule `words`, documents that contain the `phrases` count: `every` one of them, or any; if `negated`, those
    that do not. With the rule `meaning`, documents with a passage about the `subject`. `sort` names the documents that
    are asked for, such as "incident reports"; it is empty for all. With the rule `names`, all documents of the sort
    count, those in a `folder` if it is given; without `is_sort`, only a folder can be named so. `by_document` is true
    if documents are counted or listed, false if it is the places in them. `notes` say what was passed over.
    """

    kind: FindKind
    rule: Rule
    subject: str
    phrases: tuple[Phrase, ...] = ()
    every: bool = True
    negated: bool = False
    sort: str = ""
    by_document: bool = True
    folder: str = ""
    is_sort: bool = True
    notes: tuple[str, ...] = ()


_OF_DOCUMENTS = re.compile(
    r"\b(?:how\s+many|which|what|list|all|any|number\s+of)\s+(?:(?:the|of|our|other|all)\s+){0,3}(?:\w+\s+)?"
    r"(?:documents?|docs|files?|pdfs?|pages?|sources?|passages?|texts?)\b",
    re.IGNORECASE,
)


def asks_for_documents(question: str) -> bool:
    """Return whether a question asks for documents, whatever of them."""
    return _OF_DOCUMENTS.search(question[:_LONGEST]) is not None


def find_question(question: str) -> FindQuestion | None:
    """Return what a question asks of all documents; None if it may ask for anything else."""
    if not (text := _plainly(question)):
        return None
    unquoted = _QUOTED.sub('"x"', text)
    if _SECOND_QUESTION.search(unquoted):
        return None
    for kind, by_document, patterns in _RULES:
        for pattern in patterns:
            found = re.fullmatch(pattern, text, re.IGNORECASE)
            if found and (asked := _asked(kind, by_document, found.groupdict())):
                return asked
    return None


def _plainly(question: str) -> str:
    """Return a question without courtesies; nothing if it is too long."""
    text = " ".join(question[: _LONGEST + 1].split())
    if len(text) > _LONGEST:
        return ""
    text = _POLITE.sub("", text).strip().rstrip("?!. ")
    while (shorter := _ENDING.sub("", text)) != text:
        text = shorter
    return text


def _asked(kind: FindKind, by_document: bool, found: dict[str, str | None]) -> FindQuestion | None:
    subject = _DETERMINERS.sub("", found["subject"] or "").strip(" ,;:")
    sort = _sort_of(found.get("sort") or found.get("one") or "")
    phrases, every = phrases_of(found["subject"] or "")
    negated = bool(found.get("not"))
    says = any(len(one.text.split()) > _LONGEST_PHRASE or _CLAUSE.search(one.text) for one in phrases if not one.exact)
    if not subject or not phrases:
        return None
    if found.get("meaning") or says:
        return None if negated else FindQuestion(kind, "meaning", subject, sort=sort, by_document=by_document)
    return FindQuestion(kind, "words", subject, phrases, every, negated, sort, by_document)


def any_question(question: str) -> FindQuestion:
    """Return what a question asks of all documents, also if it asks for that in uncommon words.

    Quoted text and a few bare words are looked for as words; any other question is asked for its meaning.
    """
    if asked := find_question(question) or _names_question(question):
        return asked
    text, notes = without_operators(" ".join(question.split()).rstrip("?!. "))
    phrases, every = phrases_of(text)
    kind: FindKind = "documents"
    if re.match(r"(?:in\s+)?(?:how\s+(?:many|often)|count|number)\b", text, re.IGNORECASE):
        kind = "count"
    elif re.match(r"(?:list|show|enumerate|name|give)\b", text, re.IGNORECASE):
        kind = "list"
    bare = len(text.split()) <= _BARE_WORDS and not question.rstrip().endswith("?")
    if bare and not phrases and re.search(r"\w", text):
        phrases = (Phrase(text),)  # a word such as "the"
    asked = FindQuestion(kind, "words", text, phrases, every, notes=notes)
    if len(text) <= _LONGEST and (any(one.exact for one in phrases) or (bare and phrases)):
        return asked
    return replace(asked, rule="meaning", phrases=())


def _names_question(question: str) -> FindQuestion | None:
    """Return what a question asks for that names documents by their sort or folder, and asks nothing of their texts."""
    text = _plainly(question)
    for kind, patterns in _NAMES:
        for pattern in patterns:
            if found := re.fullmatch(pattern, text, re.IGNORECASE):
                parts = found.groupdict(default="")
                named, folder = parts.get("sort") or parts.get("one", ""), parts.get("folder", "").strip(" '\"/")
                sort = _sort_of(named or parts.get("any", ""))
                is_sort = bool(named) or not sort
                return FindQuestion(kind, "names", text, sort=sort, folder=folder, is_sort=is_sort)
    return None


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


def _sort_of(named: str) -> str:
    """Return the words for a sort of documents, none if they name all."""
    words = named.lower().split()
    if words and re.fullmatch(
        _GENERIC.replace("pdfs|", "") + r"|document|doc|file|page|source|text|item|entries", words[-1]
    ):
        words.pop()
    return " ".join(word for word in words if word not in {"all", "the", "our", "my", "of", "different", "other"})


def phrases_of(subject: str) -> tuple[tuple[Phrase, ...], bool]:
    """Return the phrases of a subject, and whether all of them are meant or any."""
    quoted = [next(filter(None, found.groups())).strip() for found in _QUOTED.finditer(subject)]
    rest = _QUOTED.sub("", subject)
    if quoted:
        return tuple(Phrase(text, exact=True) for text in quoted if text), not re.search(r"\bor\b", rest, re.IGNORECASE)
    parts = [_DETERMINERS.sub("", part).strip(" ,;:") for part in _AND.split(_DETERMINERS.sub("", subject.strip()))]
    return tuple(Phrase(part) for part in parts if re.search(r"\w", part)), not _OR.search(f" {subject} ")
