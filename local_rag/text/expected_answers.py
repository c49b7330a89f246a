"""Read an English question: what kind of thing it asks for, whether sentences give one, and which names it says."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from local_rag.text.dates import find_dates, find_times
from local_rag.text.facts import Fact, Source, find_facts, normalize
from local_rag.text.languages import ENGLISH, language_of
from local_rag.text.quantities import Quantity, find_numbers, unit_of
from local_rag.text.words import WORD, fold

Asked = Literal["number", "date", "name"]

_LONGEST_QUESTION = 2000  # characters that are read
# "how many", but not "how much longer is it the master's call" nor "how old-fashioned".
_NUMBER = re.compile(
    r"\bhow (?:many|much|long|old|far|tall|high|deep|wide|big|large|heavy|fast|often|hot|cold)\b(?!-)"
    r"|\bwhat (?:percentage|percent|proportion|fraction|number|amount|age|height|weight|temperature)\b"
    # "What does a pass cost?", "what do we sell it for?", but not "what do we pay them for?"
    r"|\bwhat (?:do|does|did|will|would) (?:[\w'-]+ ){1,8}?(?:cost|weigh|earn)\b"
    r"|\bwhat (?:do|does|did|will|would) (?:[\w'-]+ ){1,8}?(?:sell|sells|retail|retails) (?:[\w'-]+ ){0,8}?for\b"
    # "What is the limit for hotels?", or typed like a search: "hotel limit in Ireland".
    r"|(?:\bwhat(?:'s| is| was| are| were) the (?:[\w'-]+ ){0,3}?"
    r"|\A(?!(?:wh\w+|how|is|are|was|were|do|does|did|can|could|may|my|might|must|shall|should|will|would|ha[sd]|have|if"
    r"|tell|list|show|find|explain|describe|compare)\b)(?:[\w'-]+ ){0,2}?)"
    r"(?:price|number|percentage|amount|total|cost|salary|budget|revenue|surplus|deficit|population|fee|rate|limit|age"
    r"|height|weight|length|duration)s?"
    r"(?=\s*(?:[?,]|\Z)|\s(?:of|for|in|per|to|at|on|by|from|under|with|now)\b)",
    re.IGNORECASE,
)
_COUNT = re.compile(r"\bhow (?:many|much)\b(?! time)", re.IGNORECASE)
# "How many paid weeks": a number of something else, or with another unit, does not say it.
_TIMES_ASKED = re.compile(
    r"\bhow many (?:\w+ ){0,2}?(?P<unit>(?:second|minute|hour|day|night|week|month|year)s)\b", re.IGNORECASE
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_BEFORE_YEAR = re.compile(r"\b(?:in|since|of|the|for|from|until|by|to|our|year)\s\Z", re.IGNORECASE)
_COUNTED = re.compile(r"\s([a-z]+s)\b")  # "two breaks"
_RATE = re.compile(r"\b(?:each|every|per|an?)\b", re.IGNORECASE)
# "What time", "until when do you open on Fridays": a time of day.
_TIME_OF_DAY = re.compile(
    r"\bwhat time\b|\bwhen\b.*\b(?:open|close|shut)s?\b.*\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekdays"
    r"|weekends?)\b",
    re.IGNORECASE,
)
_OF_DAY = re.compile(
    r"\b(?:noon|midday|midnight|o.clock|closed|shut|morning|afternoon|evening|night|(?:until|till|to|at|from|by) \d\d?"
    r"(?![\d./-]| (?:[A-Z]|[a-z]+ber\b)))",
)
_IN_CODE = re.compile(r"[^\W_][-/._]?\Z")  # before a number that belongs to a code such as R-2025-031
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
_DATE = re.compile(
    r"\bwhen (?:is|are|was|were|do|does|did|has|have|had|will|would|can|could|may|must|shall|should)\b"
    r"|\b(?:by|since|until|from) when\b|\b(?:what|which) (?:date|day|weekday|month|year|decade|century)\b"
    r"|\b(?:at )?what time\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"\b(?:who|whom|whose)\b", re.IGNORECASE)
# "how do I", but not "how soon"; "wie melde ich", but not "wie lange"; "comment", since "how long" is "combien".
_HOW = re.compile(
    r"\bhow (?:to|is|are|do|does|did|can|could|may|must|shall|should|will|would)\b"
    r"|\bwhat (?:to|(?:is|are|do|does|can|could|must|shall|should|will|would) (?:[\w'-]+ ){1,4}?)do\b"
    r"|\bwhat (?:happens\b|(?:is|are) the (?:[\w'-]+ ){0,2}?(?:steps|procedure|process)\b)"
    r"|\bwie (?:[\w'-]+ )?(?:ich|man|wir)\b|\bwas (?:[\w'-]+ ){1,4}?(?:tun|machen)\b"
    r"|\A\W*(?:comment|c[oó]mo|come|hvordan)\b",
    re.IGNORECASE,
)
# "the person who", "those who": no question.
_RELATIVE = re.compile(r"[\w,]\s+\Z")
_ASKS_BEFORE = re.compile(r"(?:\b(?:and|or|but|to|by|with|from|for|of|on|than|is|was|are|just|exactly|tell me|say"
    r"|know)|[?.!,;:])\s+\Z", re.IGNORECASE)  # fmt: skip
_BEFORE = 20
_WHEN = re.compile(r"(?<!\band )\bwhen\b", re.IGNORECASE)
_SHARE = re.compile(r"\d ?(?:%|per ?cent\b)", re.IGNORECASE)
_WHICH = re.compile(r"\b(?:what|which) (?:date|day|weekday|month|year|decade|century|time)\b", re.IGNORECASE)
_ASKING = frozenset({"what", "how", "why", "which", "who", "where", "whose", "whom"})
# Answers to "how many", "how long" and "how often" without a number.
_AMOUNT = re.compile(
    r"\b(?:no|none|nothing|nobody|never|unlimited|unrestricted|indefinite(?:ly)?|free|zero|each|every|everyone|always"
    r"|single|once|double|half|quarter|daily|hourly|weekly|fortnightly|monthly|quarterly|yearly|annual(?:ly)?"
    r"|regular(?:ly)?|constant(?:ly)?|continuous(?:ly)?|several|few|many|most|some|all|hundreds|thousands|millions"
    r"|dozens|couple|pair|life(?:time|long)?|permanent(?:ly)?|forever|until|as (?:long|many|much|often|far) as|depends"
    r"|varies|unknown)\b",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|(?:jan|febr)uary|march|april|may|june|july|august|september"
    r"|october|november|december|spring|summer|autumn|fall|winter|christmas|easter|today|tomorrow|yesterday|tonight"
    r"|now|currently|presently|immediately|once|never|always|daily|weekly|monthly|annually|yearly|midnight|noon|morning"
    r"|overnight|fortnight"
    r"|afternoon|evening|night|dawn|dusk|sunset|sunrise|before|after|until|since|during|while|when|whenever|as soon as"
    r"|if|upon|every|each|following|later|early|late|earlier|begin(?:ning|s)?|end|start|middle|time|hours?|days?|weeks?"
    r"|months?|quarters?|years?|decades?|century|centuries|age|season|episode)\b|\b\d{4}s\b",
    re.IGNORECASE,
)
# What follows these is the time.
_JOINS_TIME = frozenset("before after until since during while when whenever if upon every each following".split())  # noqa: SIM905
# Somebody is told by a proper name, or by a word for people: most end like this, others stand after an article.
_SOMEBODY = re.compile(
    r"\b(?:\w*(?:ers?|ors?|ists?|ians?|m[ae]n|persons?|people|staff|teams?|groups?|board|committee|ees?|ants?|ents?)"
    r"|office|company|department|desk|agency|government|council|court|union|party|bank|firm|band|family|king|queen"
    r"|nurse|chief|head|lead|captain|secretary|clerk|children|child|police|guards?|crew|army|public|everyone"
    r"|everybody|anyone|anybody|someone|somebody|nobody|none|no one|he|she|they|you|we|i|your|their|his|hers?|our"
    r"|both|all|each|those)\b",
    re.IGNORECASE,
)
# Capitalised in a question without being a name.
_NO_NAME = frozenset(
    """how when what which who whom whose where why is are was were do does did can could may might must shall should
    will would has have had i i'm i've i'd am the a an in on at of to for from by and or if my our your please tell give
    list explain describe show name compare summarise summarize find pdf doc docx xls xlsx csv faq ok hi hello thanks
    also then there it its this that these those with under after before about as""".split()  # noqa: SIM905
)
_CHOICE = re.compile(r"\bor\b", re.IGNORECASE)  # the answer may be one of what the question says
_SHORT = 4  # words of an answer that says nothing but what is asked for


def asks_for(question: str) -> Asked | None:
    """Return what a question asks for; None if it asks for something else, for more than one thing, or for a choice."""
    question = normalize(question[:_LONGEST_QUESTION])
    if language_of(question) != ENGLISH or _CHOICE.search(question):
        return None
    kinds = list[Asked]()
    if _NUMBER.search(question):
        kinds.append("number")
    if _DATE.search(question) and not _is_condition(question):
        kinds.append("date")
    if any(_is_asked(question, match) for match in _NAME.finditer(question)):
        kinds.append("name")
    return kinds[0] if len(kinds) == 1 else None


def asks_how(question: str) -> bool:
    """Return whether a question asks how something is done, which often takes a whole list to answer."""
    return bool(_HOW.search(normalize(question[:_LONGEST_QUESTION])))


def _is_condition(question: str) -> bool:
    """Return whether "when" says under which condition something else is asked: "What happens when it is late?"."""
    first, when = WORD.search(question), _WHEN.search(question)
    return bool(first and when and first[0].lower() in _ASKING and first.end() < when.start()) and not _WHICH.search(
        question
    )


def _is_asked(question: str, match: re.Match[str]) -> bool:
    before = question[max(0, match.start() - _BEFORE) : match.start()]
    return not _RELATIVE.search(before) or bool(_ASKS_BEFORE.search(before))


def gives(kind: Asked | None, sentences: Sequence[str], question: str) -> bool:
    """Return whether sentences contain what a question asks for and does not say itself; True in doubt."""
    text, asked = normalize(" ".join(sentences)), Source(question[:_LONGEST_QUESTION])
    is_short = len(WORD.findall(text)) <= _SHORT
    if kind == "number":  # "overnight" and "on Tuesdays" are short answers
        is_given = _gives_number(text, asked, question)
        of_times = bool(_TIMES_ASKED.search(question) and find_numbers(text))
        return is_given or (is_short and not of_times and bool(_TIME.search(text)))
    if kind == "date" and _SHARE.search(text) and not find_dates(text) and not find_times(text):
        return False  # "98.5 % of the time"
    if kind == "date" and _TIME_OF_DAY.search(question) and find_dates(text):
        return bool(find_times(text) or _OF_DAY.search(text))
    if is_short:
        return bool(text.strip())  # "Prophase I of meiosis"
    if kind == "date":
        return _gives_date(text, asked)
    return kind is None or _gives_name(text, asked)


def asks_of_all_rows(question: str, rows: Sequence[str]) -> bool:
    """Return whether a question asks for the highest, the sum or some of all rows, and these do not say that word."""
    said = {fold(word) for row in rows for word in WORD.findall(normalize(row))}
    question = normalize(question[:_LONGEST_QUESTION])
    several = _SEVERAL.search(question) and not _TIMES_ASKED.search(question)
    asked = [*_OF_ALL.finditer(question), *(_COMPARED.finditer(question) if several else ())]
    return any(not said.issuperset(map(fold, WORD.findall(match[0]))) for match in asked)


def _gives_number(text: str, asked: Source, question: str) -> bool:
    """Return whether a text says a number; a date, a year or the code of something is none if the question is how many.

    Neither is a number with another unit, if the question is how many units of time.
    """
    said, dates = [number for number in find_numbers(text) if number.counts or number.unit], find_dates(text)
    is_count = bool(_COUNT.search(question))
    if is_count:
        said = [one for one in said if one.unit or not _IN_CODE.search(text, max(0, one.start - 3), one.start)]
        said = [one for one in said if not any(date.start <= one.start < date.end for date in dates)]
        said = [one for one in said if not _is_year(text, one)]
    if said and (times := _TIMES_ASKED.search(question)):
        unit = unit_of(times["unit"].lower())
        others = [one for one in said if one.counts and one.unit != unit and _is_of_other(text, one)]
        said = [one for one in said if one not in others]
        if others and not said:
            return False
    return any(not asked.has_number(replace(number, unit=None)) for number in said) or bool(
        _AMOUNT.search(text) or (dates and not is_count) or find_times(text)
    )


def _is_of_other(text: str, number: Quantity) -> bool:
    """Return whether a number has a unit, or counts what follows: "two breaks", but not "26 each year"."""
    return bool(_COUNTED.match(text, number.end) or (number.unit and not _RATE.search(number.text)))


def _is_year(text: str, number: Quantity) -> bool:
    """Return whether a number is a year: "the 2025 panel", but not "2000 sheets"."""
    if number.unit or not _YEAR.fullmatch(text, number.start, number.end):
        return False
    before = text[max(0, number.start - _BEFORE) : number.start]
    return not _COUNTED.match(text, number.end) or bool(_BEFORE_YEAR.search(before))


def _gives_date(text: str, asked: Source) -> bool:
    return (
        any(not asked.has_date(date) for date in find_dates(text))
        or any(not asked.has_number(number) for number in find_numbers(text) if number.counts)
        or bool(find_times(text))
        or any(_is_time(time[0], asked) for time in _TIME.finditer(text))
    )


def _is_time(word: str, asked: Source) -> bool:
    """Return whether a word tells a time that the question does not say: "Summer" in the title of a song does not."""
    return word.lower() in _JOINS_TIME or not asked.has_name(word)


def _gives_name(text: str, asked: Source) -> bool:
    names = (word for word in WORD.findall(text) if word[0] != word[0].lower() and word.lower() not in _NO_NAME)
    return any(not asked.has_name(name) for name in names) or any(
        not asked.has_name(match[0]) for match in _SOMEBODY.finditer(text)
    )


def question_names(question: str) -> list[Fact]:
    """Return the names, codes, dates and numbers that a question says, which a source of its answer should say, too."""
    plain = normalize(question[:_LONGEST_QUESTION])
    found = [fact for fact in find_facts(plain) if not all(word.lower() in _NO_NAME for word in fact.text.split())]
    if language_of(plain) == "german":  # in which every noun has a capital letter
        return [fact for fact in found if not (fact.text[1:].islower() and fact.text.isalpha())]
    return found
