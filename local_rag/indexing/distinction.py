"""Find what sets a document apart from others, and predict which chunks can be mistaken for those of another document.

Forms, minutes, contracts and manuals of one kind are alike, and name their site, year or product once in many pages. A
chunk can be mistaken if it is similar to a chunk of another document and contains few of the terms that set its own
document apart. Such a chunk gets these terms as its context, without a model. The distinction of a document is fixed
when it is first made: adding another file does not change it.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from zlib import crc32

import numpy as np

from local_rag.document_records import Chunk, heading_path
from local_rag.keys import key_of
from local_rag.text.tokens import keyword_tokens


@dataclass(frozen=True, slots=True)
class DistinctionTuning:
    """Thresholds of the comparison and sizes of contexts, chosen by measurement: see docs/results.md.

    A chunk's need for a context is its similarity to the nearest chunk of another document, minus `said` times the
    share of the document's terms that it contains, plus `dangling` if it begins by referring to something before it. It
    needs one from `alike` on. If more than the share `majority` of the chunks need one, all chunks get it, since those
    without would be ranked lower. A context has at most `terms` terms and `opening` characters of the opening.
    """

    alike: float = 0.75
    said: float = 0.3
    dangling: float = 0.05
    majority: float = 0.5
    terms: int = 12
    opening: int = 200


TUNING = DistinctionTuning()
# The number stands for the code below: raise it when that code makes other contexts of the same documents.
APART = key_of("apart", 1, *asdict(TUNING).values())
_READ_CHARACTERS = 60_000  # of a document, at each end
_TERM_CHARACTERS = 60
_MOST_COMMON = 0.5  # the largest share of documents that may contain a term
_WORD_WEIGHT, _NAME_WEIGHT, _YEAR_WEIGHT = 1, 2, 3
_UNAIDED = 0.5  # the need of a chunk that cannot stand alone: less than that of one that can be confused

_PIECE = r"[^\W_](?:[\w'\u2019.-]*\w)?"
_RUN = re.compile(rf"{_PIECE}(?:(?: & | ){_PIECE}){{0,5}}")
_LETTERS = re.compile(r"[^\W\d_]{3}")
_YEAR = re.compile(r"(?:19|20)\d\d")
_LIST_ITEM = re.compile(r"(?:[-*+\u2022]|\d+[.)]|\|)\s*")
_DANGLING = re.compile(r"\W*(?:it|its|this|that|these|those|they|their|he|his|she|her|such)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Distinction:
    """What sets a document apart, found when it was first compared with others.

    `needed` maps the positions of the chunks that need it as their context to how much they need it.
    """

    terms: tuple[str, ...] = ()
    opening: str = ""
    needed: Mapping[int, float] = field(default_factory=dict)

    @property
    def context(self) -> str:
        """Return the context of the chunks that need it: terms and opening as one text."""
        return ". ".join(part for part in (", ".join(self.terms), self.opening) if part)

    def holds_for(self, title: str, text: str) -> bool:
        """Say whether a changed document still contains all of it."""
        folded = " ".join(f"{title}\n{text}".split()).lower()
        return bool(self.terms) and all(part.lower() in folded for part in (*self.terms, self.opening))

    def as_json(self) -> str:
        """Return the form in which the store keeps it."""
        return json.dumps([self.terms, self.opening, list(self.needed.items())], ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Distinction":
        """Read what the store keeps; an empty text stands for a document that was not compared."""
        terms, opening, needed = json.loads(text) if text else ((), "", ())
        return cls(tuple(terms), opening, dict(needed))


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a document in the order of the text: a number for each, its first spelling, and its weight.

    The numbers are hashes; two terms of a document have the same one only by a rare chance. `spellings` has one term a
    line. In this small form the terms of thousands of documents are kept.
    """

    numbers: np.ndarray
    spellings: str
    weights: np.ndarray


def terms_of(title: str, text: str) -> Terms:
    """Find names, years and words in a document; successive words with capitals, digits or inner marks are one name."""
    if len(text) > 2 * _READ_CHARACTERS:
        text = f"{text[:_READ_CHARACTERS]}\n{text[-_READ_CHARACTERS:]}"
    written: dict[str, str] = {}
    weights: dict[str, int] = {}
    # Each once, in the order of the text: words occur again and again.
    for term, weight in dict.fromkeys(_terms(f"{title}\n{text}")):
        if len(term) > _TERM_CHARACTERS:
            continue
        if key := _stems(term) if weight == _WORD_WEIGHT else term.lower():
            written.setdefault(key, term)
            weights[key] = max(weight, weights.get(key, 0))
    numbers = np.array([crc32(key.encode(errors="surrogatepass")) for key in written], np.uint32)
    return Terms(numbers, "\n".join(written.values()), np.array(list(weights.values()), np.uint8))


@lru_cache(maxsize=1 << 16)
def _stems(word: str) -> str:
    """Return the keyword tokens of a word; cached, because the same words occur again and again."""
    return " ".join(keyword_tokens(word))


def _terms(text: str) -> Iterator[tuple[str, int]]:
    for match in _RUN.finditer(text):
        run: list[str] = []
        for token in (*match[0].replace(" & ", " &").split(" "), ""):
            word = token.removeprefix("&")
            # A capital, or a digit among letters; a number alone belongs to the name before or after it.
            if word and (word[0].isdigit() or word != word.lower()):
                run.append(token)
                continue
            if run:
                yield from _name(run)
                run = []
            if _LETTERS.search(word):
                yield word, _WORD_WEIGHT


def _name(run: list[str]) -> Iterator[tuple[str, int]]:
    """Yield the name that consecutive words form, without a leading article or other stop word, and its years."""
    while run and not run[0][0].isdigit() and len(run[0]) <= _TERM_CHARACTERS and not _stems(run[0]):
        run = run[1:]
    name = " ".join(run).replace(" &", " & ")
    if _LETTERS.search(name) or re.search(r"[^\W\d]\d|\d[^\W\d]", name):
        yield name, _NAME_WEIGHT
    for year in _YEAR.findall(name) if name else ():
        yield year, _YEAR_WEIGHT


def distinguishing_terms(own: Terms, alike: Sequence[np.ndarray], others: Sequence[np.ndarray] = ()) -> list[str]:
    """Return the names and years of a document that the fewest similar and other documents contain, in text order.

    The other documents are given as the numbers of their terms. A term may occur in at most half of either group. Words
    fill up the list if there are too few names and years.
    """
    if not alike:
        return []
    others = [*alike, *others]
    near, spread = _counted(own.numbers, alike), _counted(own.numbers, others)
    rare = np.flatnonzero((near <= _MOST_COMMON * len(alike)) & (spread <= _MOST_COMMON * len(others)))
    weights = own.weights[rare]
    score = weights * np.log((1 + len(others)) / (1 + spread[rare]))
    best = rare[np.lexsort((rare, -score, weights == _WORD_WEIGHT))][: TUNING.terms]
    spellings = own.spellings.split("\n")
    return [spellings[number] for number in sorted(best)]


def _counted(numbers: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    """Return how many of the other documents contain each term of a document."""
    together = np.sort(np.concatenate(others))  # one sort takes a quarter of the time of a search in each
    counts: np.ndarray = np.searchsorted(together, numbers, "right") - np.searchsorted(together, numbers)
    return counts


def opening_of(text: str) -> str:
    """Return the beginning of a document's first paragraph that is not a heading, cut between words."""
    for paragraph in re.split(r"\n[ \t]*\n", text[:_READ_CHARACTERS]):
        line = " ".join(paragraph.split())
        if line and not line.startswith("#"):
            return line if len(line) <= TUNING.opening else line[: TUNING.opening + 1].rpartition(" ")[0]
    return ""


def context_needs(
    chunks: Sequence[Chunk], title: str, terms: Sequence[str], similarities: Sequence[float]
) -> dict[int, float]:
    """Return the positions of the chunks that need a context, each with how much it needs it.

    `similarities` holds, for each chunk, its highest similarity to a chunk of another document.
    """
    if not terms:
        return {}
    wanted = [f" {' '.join(keyword_tokens(term))} " for term in terms]
    need = {}
    for chunk, similarity in zip(chunks, similarities, strict=True):
        known = f" {' '.join(keyword_tokens(f'{heading_path(title, chunk.headings)} {chunk.text}'))} "
        share = sum(term in known for term in wanted) / len(wanted)
        dangling = TUNING.dangling if _DANGLING.match(chunk.text) else 0
        need[chunk.position] = round(similarity - TUNING.said * share + dangling, 3)
    mistakable = {position: value for position, value in need.items() if value >= TUNING.alike}
    return need if len(mistakable) > TUNING.majority * len(need) else mistakable


def needs(texts: Mapping[int, str], distinction: Distinction) -> dict[int, float]:
    """Return the positions of the chunks in need of a sentence, each with how much; `texts` may have to stand alone."""
    unaided = (position for position, text in texts.items() if not stands_alone(text))
    return dict.fromkeys(unaided, _UNAIDED) | dict(distinction.needed)


def stands_alone(text: str) -> bool:
    """Say whether a chunk neither begins with a reference to what precedes it nor is a bare table or list."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return not _DANGLING.match(text) and not all(map(_LIST_ITEM.match, lines))
