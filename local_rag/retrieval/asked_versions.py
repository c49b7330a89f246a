"""Tell which versions of a document a question asks for: the newest, unless it names another or compares them."""

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from itertools import chain
from pathlib import PurePath

from local_rag.retrieval.version_families import Version, valid_on
from local_rag.retrieval.version_names import OLDER_WORDS, dates_in, key_words, version_numbers
from local_rag.text.tokens import keyword_tokens

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WRITTEN_DATE = re.compile(
    rf"(?:\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\.?\s{{1,3}})?\b(?P<month>{'|'.join(_MONTHS)})[a-z]{{0,6}}\.?,?\s{{1,3}}"
    r"(?:(?P<late>\d{1,2})(?:st|nd|rd|th)?,?\s{1,3})?(?P<year>(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_LAST_MONTH, _YEAR = 12, 4
_EXAMINED, _TITLE = 2000, 300  # characters of a question and a title
_WORD = re.compile(r"[^\W\d_]+")
_OLDEST = frozenset({"original", "first", "initial"})
_FORMER = OLDER_WORDS | {"older", "former", "earlier", "prior", "outdated", "expired"}
_VERSION = r"(?:version|edition|revision|release|draft)"
_OLDER_VERSION = re.compile(
    rf"\b(?P<word>{'|'.join(sorted(_FORMER | _OLDEST))})\s+(?:[\w'-]{{1,40}}\s+){{0,2}}?{_VERSION}s?\b", re.IGNORECASE
)
# Of another thing such a word says nothing about versions: "the old building", "my previous employer".
_OLDER_DOCUMENT = re.compile(
    rf"\b(?P<word>{'|'.join(sorted(_FORMER))})\s+(?:[\w'-]{{1,40}}\s+){{0,2}}?"
    r"(?P<noun>contract|agreement|policy|handbook|manual|guide|guidelines|list|rules|regulations|terms|plan|tariff|"
    r"prices|statutes|bylaws)\b",
    re.IGNORECASE,
)
_SYNONYMS = frozenset(keyword_tokens("contract agreement"))
_ONCE = re.compile(
    r"\b(?:was|were|did)\b.{0,120}(?<!\bday)(?<!\bnight)(?<!\bweek)(?<!\bmonth)(?<!\byear)\s(?:before|previously|formerly)"
    r"\s*+\?*+\s*+\Z|\b(?:did\b.{0,80}\buse|used)\s+to\s+(?:be|cost|say|apply)\b",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\b(?:versions|editions|revisions)\b|\bwhat(?:['\u2019]s|\s+is|\s+has|\s+have|\s+was)?\s+(?:changed|changes)\b"
    r"|\bwhat(?:['\u2019]s|\s+is|\s+was)\s+(?:new|different)\s*(?:\Z|\?|in\b|since\b|about\b|from\b|compared\b)"
    r"|\bhow\s+(?:has|have|did|does|do)\b.{0,80}\b(?:change|differ|develop|evolve)"
    r"|\b(?:than|compared\s+(?:to|with))\s+(?:before|previously|last\s+year|in\s+(?:19|20)\d\d)"
    r"|\b(?:increased|decreased|raised|lowered|reduced|rose|fell|became|went\s+(?:up|down))\b",
    re.IGNORECASE,
)
_RELATES = re.compile(r"\b(?:differ|compar|chang|versus\b|vs\b)", re.IGNORECASE)


def asked_versions(question: str, family: Sequence[Version], text_of: Callable[[Version], str]) -> Sequence[Version]:
    """Return the versions of a family that a question asks for; both are newest first.

    They are those that it names by a date, a number, a file name or a word such as "previous", or all if it compares
    versions, else the newest. `text_of` returns the text of a version.
    """
    question = question[:_EXAMINED]
    if _COMPARES.search(question):
        return family
    named = {*_of_days(question, family, text_of), *_of_numbers(question, family), *_of_files(question, family)}
    named = named or {*_older(question, family)}
    if not named or (len(named) == 1 and _RELATES.search(question)):
        named.add(family[0])
    return [one for one in family if one in named]


def _of_days(question: str, family: Sequence[Version], text_of: Callable[[Version], str]) -> Iterator[Version]:
    """Yield the versions of the days, months and years in a question."""
    rest = _WRITTEN_DATE.sub(" ", question)
    for period in {*map(_written, _WRITTEN_DATE.finditer(question)), *dates_in(rest)}:
        year, last = period[:_YEAR], _last_day(period)
        named = [one for one in family if year in {day[:_YEAR] for day in _dates_of(one)}]
        if 0 < len(named) < len(family):
            yield valid_on(last, named) or named[0]
        elif (valid := valid_on(last, family)) and (
            # A year that the newest version speaks of need not be that of a version.
            valid.date.startswith(year) or (valid.stated and year not in text_of(family[0]))
        ):
            yield valid


def _written(found: re.Match[str]) -> str:
    month, day = _MONTHS.index(found["month"].lower()) + 1, found["day"] or found["late"]
    return f"{found['year']}-{month:02}" + (f"-{int(day):02}" if day else "")


def _last_day(period: str) -> date:
    """Return the last day of a year, month or day."""
    year, month, day = (*map(int, period.split("-")), 0, 0)[:3]
    month = min(month, _LAST_MONTH) or _LAST_MONTH
    last = monthrange(year, month)[1]
    return date(year, month, min(day, last) or last)


def _dates_of(one: Version) -> Iterator[str]:
    """Return the dates in the name of a version."""
    return chain(dates_in(PurePath(one.path).stem), dates_in(one.title[:_TITLE]))


def _of_numbers(question: str, family: Sequence[Version]) -> Iterator[Version]:
    """Yield the versions whose number a question names."""
    asked = version_numbers(question)
    for one in family:
        if asked & (version_numbers(PurePath(one.path).stem) | version_numbers(one.title[:_TITLE])):
            yield one


def _of_files(question: str, family: Sequence[Version]) -> list[Version]:
    """Return the versions whose file a question names; a name that all of them have names none."""
    said = question.casefold()
    named = [one for one in family if _is_named(PurePath(one.path), said)]
    return named if len(named) < len(family) else []


def _is_named(path: PurePath, said: str) -> bool:
    # Without its suffix, "travel policy" is the subject, and "travel policy 2022" one version of it.
    name, stem = path.name.casefold(), path.stem.casefold()
    return name in said or (len(key_words(stem)) < len(stem) and stem in said)


def _older(question: str, family: Sequence[Version]) -> Sequence[Version]:
    """Return the versions that a question calls older, previous or first."""
    found = _OLDER_VERSION.search(question)
    if not found:
        found = _OLDER_DOCUMENT.search(question)
        if found and not _is_called(found["noun"], family):
            found = None
    if not found:
        return family[1:2] if _ONCE.search(question) else ()
    word = found["word"].lower()
    if word in _OLDEST:
        return family[-1:]
    return [one for one in family if word in _WORD.findall(one.path.rpartition("/")[2].lower())] or family[1:]


def _is_called(noun: str, family: Sequence[Version]) -> bool:
    """Return whether a document is called so in its name or title."""
    asked = set(keyword_tokens(noun))
    asked |= _SYNONYMS if asked <= _SYNONYMS else set()
    return any(asked & set(keyword_tokens(f"{PurePath(one.path).stem} {one.title[:_TITLE]}")) for one in family)
