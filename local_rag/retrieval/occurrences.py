"""Find words in a text exactly as a reader would count them: in any case, with their inflections, across lines."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local_rag.index.keyword_index import is_unspaced, keyword_tokens
from local_rag.index.languages import ENGLISH, FUNCTION_WORDS
from local_rag.index.normal_form import normalize
from local_rag.retrieval.question_kinds import Phrase

# Plurals that no rule forms; -ves, -ices and the like are such too, because their stems differ.
_IRREGULAR = (
    "man men,woman women,child children,person people,foot feet,tooth teeth,goose geese,mouse mice,ox oxen,"
    "leaf leaves,knife knives,life lives,half halves,shelf shelves,wife wives,loaf loaves,thief thieves,calf calves,"
    "self selves,wolf wolves,index indices,matrix matrices,appendix appendices,vertex vertices,axis axes,"
    "analysis analyses,basis bases,crisis crises,thesis theses,hypothesis hypotheses,diagnosis diagnoses,"
    "criterion criteria,phenomenon phenomena,datum data,medium media,bacterium bacteria,stimulus stimuli,"
    "nucleus nuclei,radius radii,fungus fungi,alumnus alumni,bus buses,gas gases,lens lenses,quiz quizzes"
)
_PAIRS = {one: other for pair in _IRREGULAR.split(",") for one, other in (pair.split(), pair.split()[::-1])}
_JOINERS = re.compile("[\u200c\u200d]")
# What may stand between two words of a phrase: a space, a hyphen, markup, the end of a line, but no end of a sentence.
_BETWEEN = r"(?:[^\w.!?;:\n]|\n(?!\s*\n)){1,6}"
_LETTERS = re.compile(r"[^\W\d_]+\Z")
_LONGEST_LINE = 300  # characters
_PIECE = 8000  # characters of a text that are searched without letting other threads run
_SIGN = re.compile(r"\w")
_VOWELS = "aeiou"
_LEAST_STEM = 2


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A match: its span in the text, and the line that it begins in, counted from 0."""

    start: int
    end: int
    line: int


def inflections(word: str) -> frozenset[str]:
    """Return the forms of an English word, in lower case: plural, third person, past and participle, and its base.

    A derived word such as "important" is no form of "import", although both have the same stem.
    """
    word = word.lower()
    (stem,) = keyword_tokens(word)[:1] or [word]
    forms = {form for base in _bases(word) for form in _forms(base) if keyword_tokens(form)[:1] == [stem]}
    irregular = {_PAIRS[form] for form in {word, *_bases(word)} if form in _PAIRS}
    return frozenset({word, *forms, *irregular})


def _bases(word: str) -> Iterator[str]:
    """Yield what a word may be a form of, itself included."""
    yield word
    for ending, added in (
        ("ies", "y"),
        ("es", ""),
        ("s", ""),
        ("ied", "y"),
        ("ed", ""),
        ("ed", "e"),
        ("ing", ""),
        ("ing", "e"),
    ):
        base = word.removesuffix(ending)
        if base == word or len(base) < _LEAST_STEM or (ending == "s" and base.endswith(("s", "u", "i"))):
            continue
        yield base + added
        if ending in {"ed", "ing"} and not added and base[-1] == base[-2:-1]:
            yield base[:-1]


def _forms(base: str) -> Iterator[str]:
    """Yield the forms that a base may have."""
    yield base
    if base.endswith("y") and base[-2:-1] not in _VOWELS:
        yield from (f"{base[:-1]}ies", f"{base[:-1]}ied", f"{base}ing")
        return
    yield from (f"{base}es", f"{base}ses") if base.endswith(("s", "x", "z", "ch", "sh", "o")) else (f"{base}s",)
    if base.endswith("o"):
        yield f"{base}s"
    if base.endswith("e"):
        yield from (f"{base}d", f"{base[:-1]}ing", f"{base}ing")
    else:
        yield from (f"{base}ed", f"{base}ing", f"{base}{base[-1]}ed", f"{base}{base[-1]}ing")


def pattern_of(phrase: Phrase) -> re.Pattern[str]:
    """Return a pattern that matches a phrase in a text of NFKC form.

    Words of signs alone count as what may stand between words, which would else match them in many ways.
    """
    given = [_JOINERS.sub("", word) for word in normalize("NFKC", phrase.text).split()]
    words = [word for word in given if _SIGN.search(word)] or given[:1]
    body = _BETWEEN.join(_word_pattern(word, exact=phrase.exact) for word in words)
    unspaced = is_unspaced(phrase.text)
    before = "" if unspaced else r"(?<![\w])(?<!\d[.,])" if words[0][:1].isdigit() else r"(?<!\w)"
    after = "" if unspaced else r"(?!\w)(?![.,]\d)" if words[-1][-1:].isdigit() else r"(?!\w)"
    return re.compile(f"{before}{body}{after}", re.IGNORECASE)


def _word_pattern(word: str, *, exact: bool) -> str:
    """Match a word: its forms if it has only letters, otherwise as it is written."""
    word = word.strip(",;:()[]") or word
    plain = word.replace("\u2019", "'")
    if plain.endswith("'s") and _LETTERS.match(plain[:-2]):
        return _word_pattern(plain[:-2], exact=exact) + "['\u2019]s"
    if exact or not _LETTERS.match(word) or is_unspaced(word):
        return re.escape(plain).replace("'", "['\u2019]")
    return f"(?:{'|'.join(map(re.escape, sorted(inflections(word), key=lambda form: (-len(form), form))))})"


def tokens_of(phrase: Phrase) -> list[frozenset[str]]:
    """Return, for some words of a phrase, tokens of which each text with the phrase has one, in whatever language.

    A word that the index leaves out in some language has no such tokens.
    """
    found = list[frozenset[str]]()
    for word in phrase.text.split():
        plain = word.strip(",;:()[]'\"\u2019")
        inflected = not phrase.exact and _LETTERS.match(plain) and not is_unspaced(plain)
        forms = inflections(plain) if inflected else (plain,)
        tokens = [keyword_tokens(form, language) for form in forms for language in (ENGLISH, *FUNCTION_WORDS)]
        if all(tokens):
            found.append(frozenset(token for one in tokens for token in one))
    return found


def occurrences(text: str, patterns: Sequence[re.Pattern[str]]) -> list[Occurrence]:
    """Return the matches of patterns in a text, in its order; overlapping ones count once.

    Spans are those of the text itself, unless it is not of NFKC form: then they are those of the whole line.
    """
    searched = _JOINERS.sub("", normalize("NFKC", text))
    spans = sorted({span for pattern in patterns for span in _spans(searched, pattern)})
    lines = text.split("\n") if searched != text else []
    kept, last, line, counted, start_of_line = list[Occurrence](), 0, 0, 0, 0
    for start, end in spans:
        if start < last:
            continue
        last, before = end, line
        line += searched.count("\n", counted, start)
        counted = start
        if not lines:
            kept.append(Occurrence(start, end, line))
            continue
        start_of_line += sum(len(one) + 1 for one in lines[before:line])
        kept.append(Occurrence(start_of_line, start_of_line + len(lines[line]), line))
    return kept


def _spans(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield the spans of matches, searched for in pieces: a long phrase of words that repeat takes its time."""
    longest, done = len(pattern.pattern), 0  # a match is not longer than what it is matched by
    for start in range(0, len(text), _PIECE):
        end = start + _PIECE
        for found in pattern.finditer(text, max(start, done), min(len(text), end + longest)):
            if found.start() >= end:
                break
            done = found.end()
            yield found.span()


def best_line(found: Sequence[Occurrence]) -> tuple[Occurrence, int]:
    """Return the first occurrence in the line that has the most, and how many it has."""
    counts: dict[int, int] = {}
    for one in found:
        counts[one.line] = counts.get(one.line, 0) + 1
    line = max(counts, key=lambda number: (counts[number], -number))
    return next(one for one in found if one.line == line), counts[line]


def line_span(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the span of the line that an occurrence begins in, or of the part around it if the line is long."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", start)
    last = len(text) if last < 0 else last
    while first < last and text[first].isspace():
        first += 1
    while last > first and text[last - 1].isspace():
        last -= 1
    if last - first <= _LONGEST_LINE:
        return first, last
    room = max(0, _LONGEST_LINE - (min(end, last) - start)) // 2
    left, right = max(first, start - room), min(last, max(end, start) + room)
    left = left if left == first else text.find(" ", left, start) + 1 or left
    right = (
        right
        if right == last
        else text.rfind(" ", min(end, right), right)
        if " " in text[min(end, right) : right]
        else right
    )
    return left, right
