"""Change one value of a question, so that its passages no longer answer it."""

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scripts.training.sets import Entry

_YEARS = range(1801, 2031)
_OF_VALUES = re.compile(r"\b\d[\d.,]*\b|(?<=[a-z,] )[A-Z][\w'-]*(?: [A-Z][\w'-]*)*")


@dataclass(frozen=True, slots=True)
class Values:
    """What a value of a question can be changed into: other names and numbers of the same source."""

    names: Sequence[str]

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> "Values":
        """Return the names in questions and titles."""
        names = set[str]()
        for entry in entries:
            names |= {match[0] for match in _OF_VALUES.finditer(entry.question) if not match[0][0].isdigit()}
            names |= {re.sub(r"\s*\(.*\)", "", text.title) for text in entry.gold if " > " not in text.title}
        return cls(sorted(names - {"", "I"}))

    def changed(self, question: str, title: str, chance: random.Random) -> str | None:
        """Return the question with one year, number, name, or its title, changed; None if it has none."""
        places = [match.span() for match in _OF_VALUES.finditer(question)]
        subject = re.sub(r"\s*\(.*\)", "", title).lower()
        if not places and len(subject) > 3 and (start := question.lower().find(subject)) >= 0:
            places = [(start, start + len(subject))]
        if not places:
            return None
        start, end = chance.choice(places)
        value = question[start:end]
        other = self._other(value, chance)
        return question[:start] + (other.lower() if value.islower() else other) + question[end:]

    def _other(self, value: str, chance: random.Random) -> str:
        digits = value.strip(".,")
        if digits.isdigit():
            near = [year for year in _YEARS if 0 < abs(year - int(digits)) <= 30]
            is_year = int(digits) in _YEARS
            return value.replace(digits, str(chance.choice(near) if is_year else int(digits) + chance.randint(1, 9)))
        if value[0].isdigit():
            return re.sub(r"\d", lambda _: str(chance.randint(1, 9)), value, count=2)
        others = [name for name in self.names if name.lower() not in value.lower()]
        return chance.choice(others)
