"""Let the version of a document that a question asks for stand before its other versions, or in their place."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import PurePath

from local_rag.asking import Filters
from local_rag.records import Passage
from local_rag.retrieval.asked_versions import asked_versions
from local_rag.retrieval.corresponding import corresponding, shared, words_of
from local_rag.retrieval.highlights import closest_sentence, readable
from local_rag.retrieval.version_families import Version, Versions
from local_rag.text.tokens import keyword_tokens

_NEARLY = 0.8  # the share of words in common with which passages of two versions fit a question equally well
_MOST_LOST = 0.5  # the share of the question's words in a passage that the one in its place may lack


class AskedVersions:
    """The versions that a question asks for: the newest, unless it names another; see `asked_versions`.

    With `as_of` in the filters, only the versions of that day were searched, so nothing is changed.
    """

    def __init__(self, question: str, versions: Versions, filters: Filters) -> None:
        self._question, self._versions, self._filters = question, versions, filters
        self._words = set(keyword_tokens(question))
        self._asked = dict[tuple[Version, ...], Sequence[Version]]()

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
        if len(family) > 1 and family not in self._asked:
            self._asked[family] = asked_versions(self._question, family, self._versions.text)
        return family if len(family) > 1 else ()

    def _is_asked(self, passage: Passage, family: tuple[Version, ...]) -> bool:
        return any(one.path == passage.path for one in self._asked[family])

    def _instead(self, passage: Passage) -> Iterator[Passage]:
        """Yield what may stand in the place of a passage, the best first; nothing if its version is asked for."""
        family = self._family(passage)
        if not family or self._is_asked(passage, family):
            return
        own, asked = next(one for one in family if one.path == passage.path), self._asked[family][0]
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
    held = wanted.intersection(keyword_tokens(passage.text))
    lost = held.difference(keyword_tokens(other.text))
    return len(lost) <= _MOST_LOST * len(held) and not any(token[:1].isdigit() for token in lost)
