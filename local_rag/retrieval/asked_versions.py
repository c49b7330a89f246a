"""Tell which versions of a document a question asks for: the newest, unless it names another or asks for changes."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, combinations
from pathlib import PurePath

from local_rag.asking import Filters, last_day
from local_rag.passage_records import Passage
from local_rag.plan_records import Plan
from local_rag.retrieval.highlights import closest_sentence, readable
from local_rag.retrieval.question import Question
from local_rag.retrieval.version_families import (
    HEADING,
    Version,
    Versions,
    corresponding,
    key_words,
    shared,
    valid_on,
    version_numbers,
    words_of,
)
from local_rag.text.dates import dates_in, find_dates
from local_rag.text.tokens import keyword_tokens
from local_rag.text.words import blank

_YEAR = 4
_EXAMINED, _TITLE = 2000, 300  # characters of a question and a title
_NEARLY = 0.8  # the share of words in common with which passages of two versions fit a question equally well
_MOST_LOST = 0.5  # the share of the question's words in a passage that the one in its place may lack


def asked_versions(
    question: str, plan: Plan, family: Sequence[Version], text_of: Callable[[Version], str]
) -> Sequence[Version]:
    """Return the versions of a family that a question asks for; both are newest first.

    They are those that it names by a date, a number or a file name, all if its plan asks for changes, those before the
    newest if the plan says another state of the documents, else the newest. `text_of` returns the text of a version.
    """
    question = question[:_EXAMINED]
    named = {*_of_days(question, family, text_of), *_of_numbers(question, family), *_of_files(question, family)}
    if plan.kind == "changes" and len(named) <= 1:
        return family if not named else [one for one in family if one in named or one == family[0]]
    return [one for one in family if one in named] or _of_state(plan.as_of, family) or family[:1]


def _of_state(as_of: str, family: Sequence[Version]) -> Sequence[Version]:
    """Return the versions before the newest whose file has a word of a state, or else all of them; none without one."""
    words = set(keyword_tokens(as_of))
    named = [one for one in family[1:] if words & set(keyword_tokens(PurePath(one.path).stem.replace("-", " ")))]
    return (named or family[1:]) if as_of else ()


def _of_days(question: str, family: Sequence[Version], text_of: Callable[[Version], str]) -> Iterator[Version]:
    dates = [one for one in find_dates(question) if one.year]
    rest = blank(question, ((one.start, one.end) for one in dates))
    for period in {*(one.iso for one in dates), *dates_in(rest)}:
        year, last = period[:_YEAR], last_day(period)
        named = [one for one in family if year in {day[:_YEAR] for day in _dates_of(one)}]
        if 0 < len(named) < len(family):
            yield valid_on(last, named) or named[0]
        elif (valid := valid_on(last, family)) and (
            # A year that the newest version speaks of need not be that of a version.
            valid.date.startswith(year) or (valid.stated and year not in text_of(family[0]))
        ):
            yield valid


def _dates_of(one: Version) -> Iterator[str]:
    return chain(dates_in(PurePath(one.path).stem), dates_in(one.title[:_TITLE]))


def _of_numbers(question: str, family: Sequence[Version]) -> Iterator[Version]:
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


class AskedVersions:
    """The versions that a question asks for: the newest, unless it names another; see `asked_versions`.

    With `as_of` in the filters, only the versions of that day were searched, so nothing is changed.
    """

    def __init__(self, question: Question, versions: Versions, filters: Filters) -> None:
        self._versions, self._filters, self._words = versions, filters, set(keyword_tokens(question.text))
        self._asked = cache(lambda family: asked_versions(question.text, question.plan, family, versions.text))

    def first(self, passages: Sequence[Passage]) -> list[Passage]:
        """Exchange two passages that say nearly the same thing, if only the later one is of a version asked for."""
        ordered = [*passages]
        families = [self._family(one) for one in ordered]
        for before, after in combinations(range(len(ordered)), 2):
            own, other = ordered[before], ordered[after]
            if not families[before] or families[before] != families[after] or self._is_asked(own, families[before]):
                continue
            if self._is_asked(other, families[after]) and shared(words_of(own.text), words_of(other.text)) >= _NEARLY:
                ordered[before], ordered[after] = replace(other, score=own.score), replace(own, score=other.score)
        return ordered

    def only(self, passages: Sequence[Passage], top: int) -> list[Passage]:
        """Return the first `top` passages, those of versions that are not asked for replaced.

        What corresponds to a passage in the version asked for takes its place, also if it was not found itself. A
        passage to which nothing corresponds stays.
        """
        found, kept = {one.chunk_id: one for one in passages}, dict[int, Passage]()
        for passage in passages:
            if len(kept) == top:
                break
            other = next(self._instead(passage), passage)
            # What was found has its own marks, and the place of the first of both.
            other = replace(found.get(other.chunk_id, other), score=passage.score)
            kept.setdefault(other.chunk_id, other)
        return [*kept.values()]

    def _family(self, passage: Passage) -> tuple[Version, ...]:
        """Return the versions of a passage's document that pass the filters; none if it is the only one."""
        if self._filters.as_of is not None or passage.kind != "chunk":
            return ()
        family = tuple(self._versions.within(passage.path, self._filters))
        return family if len(family) > 1 else ()

    def _is_asked(self, passage: Passage, family: tuple[Version, ...]) -> bool:
        return any(one.path == passage.path for one in self._asked(family))

    def _instead(self, passage: Passage) -> Iterator[Passage]:
        """Yield what may stand in the place of a passage, the best first; nothing if its version is asked for."""
        family = self._family(passage)
        if not family or self._is_asked(passage, family):
            return
        own, asked = next(one for one in family if one.path == passage.path), self._asked(family)[0]
        text = readable(passage)
        start, end = passage.best if any(passage.best) else closest_sentence(text, frozenset(self._words))
        # The words of its name are in all of a document.
        wanted = self._words.difference(keyword_tokens(f"{asked.date} {PurePath(asked.path).stem} {asked.title}"))
        for other in corresponding(passage, text[start:end], own, asked, self._versions):
            if _keeps(wanted, passage, other):
                best = closest_sentence(readable(other), words_of(text[start:end]))
                yield replace(other, score=passage.score, hits=passage.hits, weak=passage.weak, best=best)


def _keeps(wanted: set[str], passage: Passage, other: Passage) -> bool:
    """Return whether another passage has of what is wanted each number that a passage has, and most of its words."""
    # Of what is numbered, the number may be another one in each version.
    held, kept = (set(keyword_tokens(HEADING.sub(r"\g<words>", one.text))) for one in (passage, other))
    held &= wanted
    lost = held - kept
    return len(lost) <= _MOST_LOST * len(held) and not any(token[:1].isdigit() for token in lost)
