"""Find the units that an answer stands on: those with its words, numbers and names that the question does not have.

These units are the citation and the quotation, so both are true by construction.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import PurePath

from local_rag.answering.selection import Source
from local_rag.answering.units import Unit, headings_of, source_heading
from local_rag.passage_records import Passage
from local_rag.text.facts import Fact, missing_facts
from local_rag.text.facts import Source as FactSource
from local_rag.text.question_names import question_names
from local_rag.text.tokens import keyword_tokens

# "Under the Travel Policy of 2024, ": models add it from other passages.
_QUALIFIER = re.compile(r"(?:Under|According to|As of|In|At|For|On|By|Per)(?: [^\s,.;:]{1,30}){1,8}, (\w)")
_JOINT = re.compile(r"[,;]? (?:and|while|but|whereas) |; ")
_FEWEST_WORDS = 3  # of a clause
MOST_UNITS = 3  # that one sentence may stand on
_ABOUT = 0.5  # the weight of a word of the question against a new one
_WORTH = 0.2  # the least share of a sentence's new words that another unit must add
_LEAST_COVERAGE = 0.3  # of a sentence that stands on its units


@dataclass(frozen=True, slots=True)
class Attribution:
    """The units that a sentence stands on, best first, each with the index of its source.

    `coverage` is the share of the sentence's new words in them, weighted by how few of the units have each word.
    `missing` are the numbers and names in neither the units nor the question, and those of the question that the
    passage lacks while another one is about them by its title or headings: then the sentence is about something else.
    """

    sentence: str
    units: tuple[tuple[int, Unit], ...]
    coverage: float
    missing: tuple[str, ...]

    @property
    def citations(self) -> list[int]:
        """Return the numbers of the sources of its units, counted from 1."""
        return list(dict.fromkeys(number + 1 for number, _ in self.units))

    @property
    def is_supported(self) -> bool:
        """Return whether the sentence stands on units at all; otherwise it is not given."""
        return bool(self.units) and self.coverage >= _LEAST_COVERAGE


class Attributor:
    """Attribute sentences to the units of sources; a follow-up is also about what the question `before` it is about."""

    def __init__(self, question: str, sources: Sequence[Source], before: str = "") -> None:
        self._sources, self._names = sources, question_names(question)
        self._facts_of = cache(FactSource)  # each clause that is tried would read the same texts again
        self._question, self._asked = question, frozenset(keyword_tokens(f"{before} {question}"))
        self._units = [(number, unit) for number, source in enumerate(sources) for unit in source.units]
        self._texts = [
            f"{source_heading(sources[number].passage)} > {unit.heading}\n{unit.text}" for number, unit in self._units
        ]
        self._words = [frozenset(keyword_tokens(text)) for text in self._texts]
        self._counts = Counter(word for words in self._words for word in words)

    @property
    def is_close(self) -> bool:
        """Return whether the units have any word of the question, or the question no word to look for."""
        return not self._asked or any(self._asked & words for words in self._words)

    def known_beginning(self, sentence: str) -> str:
        """Return the whole words of a growing sentence, up to the first number or name that nothing shown has."""
        whole = sentence.rpartition(" ")[0]
        unknown = missing_facts(self._question, whole, [self._everything]) if whole else []
        return whole[: max(whole.find(unknown[0].text), 0)].rstrip() if unknown else whole

    @cached_property
    def _everything(self) -> FactSource:
        return self._facts_of("\n".join(self._texts))

    def attribute(self, sentence: str) -> Attribution:
        """Return the units that a sentence stands on; none if no unit has any of its words.

        A qualifier at its beginning that its units lack is left out if the rest stands on them. A sentence about two
        things may stand on two passages, if each of its clauses stands on one of them.
        """
        found = self._attribute(sentence)
        if not found.missing:
            return found
        others = (self._without_qualifier(sentence), *map(self._by_clauses, _JOINT.finditer(sentence)))
        return next((one for one in others if one and one.is_supported and not one.missing), found)

    def _without_qualifier(self, sentence: str) -> Attribution | None:
        qualifier = _QUALIFIER.match(sentence)
        return self._attribute(qualifier[1].upper() + sentence[qualifier.end() :]) if qualifier else None

    def _by_clauses(self, joint: re.Match[str]) -> Attribution | None:
        sentence = joint.string
        clauses = sentence[: joint.start()], sentence[joint.end() :]
        if min(len(clause.split()) for clause in clauses) < _FEWEST_WORDS:
            return None
        first, second = map(self._attribute, clauses)
        units = tuple(dict.fromkeys([*first.units, *second.units]))
        if not (first.is_supported and second.is_supported):
            return None
        texts = [self._facts_of(self._texts[self._units.index(unit)]) for unit in units]
        # A name that begins the second clause looks like any word there.
        whole = tuple(fact.text for fact in missing_facts(self._question, sentence, texts))
        missing = tuple(dict.fromkeys(first.missing + second.missing + whole))
        return Attribution(sentence, units, min(first.coverage, second.coverage), missing)

    def _attribute(self, sentence: str) -> Attribution:
        said = frozenset(keyword_tokens(sentence))
        # "Yes, dogs may come." may have no word that the question lacks.
        wanted = said - self._asked or said
        found, left = list[int](), wanted
        total = self._weight(wanted)
        while left and len(found) < MOST_UNITS:
            candidates = self._candidates(found, said)
            best = max(candidates, key=lambda one: self._fit(one, left, first=not found), default=None)
            if best is None or self._weight(left & self._words[best]) < (_WORTH if found else 1e-9) * total:
                break
            found.append(best)
            left -= self._words[best]
        missing = self._missing(sentence, found)
        if missing and len(found) < MOST_UNITS:  # "Above that, ..." says its number in the sentence before
            wider = ([*found, one] for one in self._beside(found, said))
            tried = [(missing, found), *((self._missing(sentence, units), units) for units in wider)]
            missing, found = min(tried, key=lambda one: len(one[0]))
        elsewhere = self._elsewhere(self._units[found[0]][0]) if found else []
        coverage = 1 - self._weight(left) / total if total else 0.0
        units = tuple(self._units[one] for one in found)
        return Attribution(sentence, units, coverage, tuple(dict.fromkeys(fact.text for fact in missing + elsewhere)))

    def _missing(self, sentence: str, units: Sequence[int]) -> list[Fact]:
        """Return the numbers and names of a sentence that neither units nor the question have."""
        return missing_facts(self._question, sentence, [self._facts_of(self._texts[one]) for one in units])

    def _beside(self, found: Sequence[int], said: frozenset[str]) -> list[int]:
        """Return the sentences beside the `found` ones in a paragraph that say a word of the sentence they lack."""
        beside = set[int]()
        for index in found:
            number, unit = self._units[index]
            near = (one for one in (index - 1, index + 1) if 0 <= one < len(self._units))
            beside.update(
                one
                for one in near
                if self._units[one][0] == number
                and self._units[one][1].paragraph == unit.paragraph
                and self._units[one][1].kind == unit.kind == "sentence"
            )
        return sorted(beside.intersection(self._candidates(found, said)).difference(found))

    def _elsewhere(self, number: int) -> list[Fact]:
        """Return the names of the question that a source lacks while another one is about them.

        Of several names, such as those of two things that are compared, a source is about one.
        """
        if not self._names:
            return []
        passage = self._sources[number].passage
        own = self._facts_of("\n".join([_about(passage), passage.terms, passage.table_header, passage.text]))
        others = [self._facts_of(_about(one.passage)) for one in self._sources if one.passage is not passage]
        about = [name for name in self._names if any(map(name.occurs_in, [own, *others]))]
        words = [name for name in about if name.text.isalpha()]
        if any(name.occurs_in(self._facts_of(_about(passage))) for name in words):
            about = [name for name in about if name not in words]
        return [name for name in about if not name.occurs_in(own)]

    def _candidates(self, found: Sequence[int], said: frozenset[str]) -> Sequence[int]:
        """Return the units that a sentence may stand on: all of them, then those of the same passage.

        Another unit must also say a word of the sentence that the `found` ones lack: a number alone, which may count
        anything, does not make it belong to the sentence.
        """
        if not found:
            return range(len(self._units))
        lacking = said.difference(*(self._words[one] for one in found))
        return [
            one
            for one, (number, _) in enumerate(self._units)
            if number == self._units[found[0]][0] and any(word.isalpha() for word in lacking & self._words[one])
        ]

    def _fit(self, index: int, wanted: frozenset[str], *, first: bool) -> tuple[float, int]:
        """Return how many wanted words a unit has, by weight; the first should also be about the question."""
        words = self._words[index]
        about = self._asked & words if first and wanted & words else frozenset()
        weight = self._weight(wanted & words) + _ABOUT * self._weight(about)
        return weight, -self._units[index][1].rank

    def _weight(self, words: frozenset[str]) -> float:
        return sum(math.log(1 + len(self._units) / (1 + self._counts[word])) for word in words)


def _about(passage: Passage) -> str:
    """Return what says which thing a passage is about: its title, its headings and the name of its file."""
    return f"{headings_of(passage)}\n{PurePath(passage.path).stem}"
