"""Predict which chunks can be mistaken for one of another document, and say what sets their own document apart.

Forms, minutes, contracts and manuals of one kind read alike, and say once in many pages which site, year or product
they are about. A chunk of one can be mistaken that is near a chunk of another document and holds hardly any of the
terms that set its own document apart. It gets these terms as its context, without any model. What was said of a
document in the light of others is fixed when it is first said: another file changes nothing of it.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache

from local_rag.index.keyword_index import keyword_tokens
from local_rag.keys import key_of
from local_rag.records import Chunk, heading_path


@dataclass(frozen=True, slots=True)
class NeedTuning:
    """What counts as alike, and how much is said: chosen on the halves for choosing, see docs/results.md.

    A chunk needs a context whose likeness to another document's chunk, the cosine of their vectors, is at least
    `alike`, less `said` times the share of the terms that it holds itself, and more by `dangling` if it begins by
    referring to something before it. Where that is more than `majority` of a document, all its chunks get the context:
    those without would fall behind. A context has at most so many `terms` and characters of the document's `opening`.
    """

    alike: float = 0.75
    said: float = 0.3
    dangling: float = 0.05
    majority: float = 0.5
    terms: int = 12
    opening: int = 200


TUNING = NeedTuning()
# A number for the code below: to be raised whenever it would say something else of the same documents.
APART = key_of("apart", 1, *asdict(TUNING).values())
_READ_CHARACTERS = 60_000  # of a document, at each end
_TERM_CHARACTERS = 60
_MOST_COMMON = 0.5  # the largest share of documents that may have a term
_NAME_WEIGHT, _YEAR_WEIGHT = 2.0, 3.0

_PIECE = r"[^\W_](?:[\w'\u2019.-]*\w)?"
_RUN = re.compile(rf"{_PIECE}(?:(?: & | ){_PIECE}){{0,5}}")
_LETTERS = re.compile(r"[^\W\d_]{3}")
_YEAR = re.compile(r"(?:19|20)\d\d")
_DANGLING = re.compile(r"\W*(?:it|its|this|that|these|those|they|their|he|his|she|her|such)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Told:
    """What was said of a document when it was first compared with others, and which chunks need it.

    `needed` has the positions of these chunks, each with how much it needs the context.
    """

    terms: tuple[str, ...] = ()
    opening: str = ""
    needed: Mapping[int, float] = field(default_factory=dict)

    @property
    def says(self) -> str:
        """Return the context: terms and opening as one text, of a length that does not grow with the document."""
        return ". ".join(part for part in (", ".join(self.terms), self.opening) if part)

    def holds_for(self, title: str, text: str) -> bool:
        """Say whether all of it still stands in a document that has changed."""
        folded = " ".join(f"{title}\n{text}".split()).lower()
        return bool(self.terms) and all(part.lower() in folded for part in (*self.terms, self.opening))

    def as_json(self) -> str:
        """Write it as the store keeps it."""
        return json.dumps([self.terms, self.opening, list(self.needed.items())], ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Told":
        """Read what the store keeps; nothing was said where that is empty."""
        terms, opening, needed = json.loads(text) if text else ((), "", ())
        return cls(tuple(terms), opening, dict(needed))


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a document by their keys: how each is first written, in the order of the text, and its weight."""

    written: Mapping[str, str]
    weights: Mapping[str, float]


def terms_of(title: str, text: str) -> Terms:
    """Find names, years and words in a document: a run of words with capitals, digits or inner marks is one name."""
    if len(text) > 2 * _READ_CHARACTERS:
        text = f"{text[:_READ_CHARACTERS]}\n{text[-_READ_CHARACTERS:]}"
    written: dict[str, str] = {}
    weights: dict[str, float] = {}
    for term, weight in _terms(f"{title}\n{text}"):
        if len(term) > _TERM_CHARACTERS:
            continue
        if key := _stems(term) if weight == 1 else term.lower():
            written.setdefault(key, term)
            weights[key] = max(weight, weights.get(key, 0))
    return Terms(written, weights)


@lru_cache(maxsize=1 << 16)
def _stems(word: str) -> str:
    """Return the keyword tokens of a word; the words of a library are few and come again and again."""
    return " ".join(keyword_tokens(word))


def _terms(text: str) -> Iterator[tuple[str, float]]:
    for match in _RUN.finditer(text):
        run: list[str] = []
        for token in (*match[0].replace(" & ", " &").split(" "), ""):
            word = token.removeprefix("&")
            # A capital, or a digit among letters; a number alone belongs to the name before or behind it.
            if word and (word != word.lower() or word[0].isdigit()):
                run.append(token)
                continue
            yield from _name(run)
            run = []
            if _LETTERS.search(word):
                yield word, 1.0


def _name(run: list[str]) -> Iterator[tuple[str, float]]:
    """Yield the name that a run of words is, without the article or other small word that begins it, and its years."""
    while run and not run[0][0].isdigit() and len(run[0]) <= _TERM_CHARACTERS and not _stems(run[0]):
        run = run[1:]
    name = " ".join(run).replace(" &", " & ")
    if _LETTERS.search(name) or re.search(r"[^\W\d]\d|\d[^\W\d]", name):
        yield name, _NAME_WEIGHT
    for year in _YEAR.findall(name) if name else ():
        yield year, _YEAR_WEIGHT


def distinguishing(
    own: Terms, alike: Sequence[Terms], others: Sequence[Terms] = (), tuning: NeedTuning = TUNING
) -> list[str]:
    """Return the names and years of a document that the fewest have of those alike and others, as the text has them.

    No more than half of either has one of them. Where there are too few, words make up for them.
    """
    if not alike:
        return []
    near = Counter(key for other in alike for key in other.written.keys() & own.written.keys())
    others = [*alike, *others]
    spread = Counter(key for other in others for key in other.written.keys() & own.written.keys())
    places = {key: place for place, key in enumerate(own.written)}
    shares = ((near, len(alike)), (spread, len(others)))
    rare = [key for key in own.written if all(counts[key] <= _MOST_COMMON * count for counts, count in shares)]
    score = {key: own.weights[key] * math.log((1 + len(others)) / (1 + spread[key])) for key in rare}
    best = sorted(rare, key=lambda key: (own.weights[key] == 1, -score[key], places[key]))[: tuning.terms]
    return [own.written[key] for key in sorted(best, key=places.__getitem__)]


def opening_of(text: str, characters: int = TUNING.opening) -> str:
    """Return the beginning of a document's first paragraph that is no heading, cut between words."""
    for paragraph in re.split(r"\n[ \t]*\n", text[:_READ_CHARACTERS]):
        line = " ".join(paragraph.split())
        if line and not line.startswith("#"):
            return line if len(line) <= characters else line[: characters + 1].rpartition(" ")[0]
    return ""


def needs(
    chunks: Sequence[Chunk], title: str, terms: Sequence[str], likenesses: Sequence[float], tuning: NeedTuning = TUNING
) -> dict[int, float]:
    """Return the positions of the chunks of a document that need a context, each with how much it does.

    `likenesses` has for each chunk its cosine with the nearest one of another document.
    """
    if not terms:
        return {}
    wanted = [f" {' '.join(keyword_tokens(term))} " for term in terms]
    need = {}
    for chunk, likeness in zip(chunks, likenesses, strict=True):
        known = f" {' '.join(keyword_tokens(f'{heading_path(title, chunk.headings)} {chunk.text}'))} "
        said = sum(term in known for term in wanted) / len(wanted)
        dangling = tuning.dangling if _DANGLING.match(chunk.text) else 0
        need[chunk.position] = round(likeness - tuning.said * said + dangling, 3)
    mistakable = {position: value for position, value in need.items() if value >= tuning.alike}
    return need if len(mistakable) > tuning.majority * len(need) else mistakable
