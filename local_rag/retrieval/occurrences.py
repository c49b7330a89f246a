"""Find words in a text exactly as a reader would count them: in any case, with their inflections, across lines."""

import functools
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from types import MappingProxyType

from local_rag.retrieval.find_question import Phrase
from local_rag.text.languages import language_of, language_of_word
from local_rag.text.struck import struck_spans
from local_rag.text.tokens import (
    english_stem,
    has_stemmer,
    keyword_tokens,
    stem_in,
    stems_in_other_languages,
    tokens_of_holders,
)
from local_rag.text.words import (
    LINE_END,
    boundaries,
    caseless,
    is_hangul,
    parts_of_line,
    pieces_of_unspaced,
    plain,
    words_of,
)

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
_MARKUP = r"[*_`~\\]{0,3}"
# What may stand between two words of a phrase: a space, a hyphen, markup, the end of a line, but no end of a sentence,
# unless the phrase itself has one there. Between quoted words only white space and the markup of a text may stand.
_BETWEEN = r"(?:[^\S\n]++|[^\w\s.!?;:]|_|\n(?![^\S\n]*\n)){1,6}"
_BETWEEN_SENTENCES = r"(?:\s++|[^\w\s]|_){1,6}"
_BETWEEN_EXACT = rf"{_MARKUP}(?:\s++|\|)(?:\s++|[*_`~\\#>|]){{0,12}}"
_TOKEN = re.compile(r"[^!-/:-@\[-^`{-~]+|.")
_ENDS = re.compile(r"[.!?;:][\])\"']*\Z")
_RAISED = re.compile(r"([^\W\d_]+)(\d{1,2})")  # may be a superscript in the text: m2, note1
_LAST_LATIN = "\u024f"
_LETTERS = re.compile(r"[^\W\d_]+\Z")
_LONGEST_LINE = 300  # characters
_LONGEST_COMPARED = 20_000  # characters of a line; in a longer one a place is estimated
_VOWELS = "aeiou"
# What forms end in, and in what their base ends instead.
_ENDINGS = (("ies", "y"), ("es", ""), ("s", ""), ("ied", "y"), ("ed", ""), ("ed", "e"), ("ing", ""), ("ing", "e"))
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
    for ending, added in _ENDINGS:
        base = word.removesuffix(ending)
        if base == word or len(base) < _LEAST_STEM or (ending == "s" and base.endswith(("s", "u", "i"))):
            continue
        yield base + added
        if ending in {"ed", "ing"} and not added and base[-1] == base[-2:-1]:
            yield base[:-1]


def _forms(base: str) -> Iterator[str]:
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


def patterns_in(text: str, phrases: Sequence[Phrase]) -> list[re.Pattern[str]]:
    """Return a pattern for each phrase, with the forms that its words have in a text that is not in English."""
    forms, language = dict[str, set[str]](), language_of(text)
    for core in dict.fromkeys(core for phrase in phrases for core in _inflected_words(phrase)):
        if has_stemmer(own := language_of_word(core, language)):
            stem = stem_in(core, own)
            forms[core] = {word for word in _words_in(text) if stem_in(word, own) == stem}
    return [pattern_of(phrase, forms) if forms else _english_pattern(phrase) for phrase in phrases]


def foreign_forms(text: str, found: Sequence[Occurrence], phrases: Sequence[Phrase]) -> list[str]:
    """Return what was found in a text that is not in English, without case, where it is not what was looked for.

    Stemmers of other languages also join some derived words, so a reader must see what was counted.
    """
    language = language_of(text)
    if not any(has_stemmer(language_of_word(core, language)) for one in phrases for core in _inflected_words(one)):
        return []
    asked = {_prepared(phrase.text) for phrase in phrases}
    return [form for one in found if (form := _prepared(text[one.start : one.end])) not in asked]


@functools.lru_cache(maxsize=1)
def _words_in(text: str) -> frozenset[str]:
    return frozenset(piece for word in words_of(_searched(text)) for piece in word.split("'"))


@functools.lru_cache(maxsize=64)
def _english_pattern(phrase: Phrase) -> re.Pattern[str]:
    return pattern_of(phrase)


def pattern_of(phrase: Phrase, forms: Mapping[str, Collection[str]] = MappingProxyType({})) -> re.Pattern[str]:
    """Return a pattern that matches a phrase in a text as `occurrences` prepares it.

    Words in Latin letters count in all their English forms, and each in those that `forms` names.
    """
    words = _prepared(phrase.text).split()
    if phrase.exact:
        first, last, body = words[0][0], words[-1][-1], _BETWEEN_EXACT.join(map(_exactly, words))
        return _bounded(first, last, body)
    cores = [(_core(word), _ENDS.search(word)) for word in words]
    cores = [(core, ends) for core, ends in cores if any(map(str.isalnum, core))]
    if not cores:
        return pattern_of(Phrase(phrase.text, exact=True))
    body = _word_pattern(cores[-1][0], forms)
    for core, ends in reversed(cores[:-1]):
        body = _word_pattern(core, forms) + (_BETWEEN_SENTENCES if ends else _BETWEEN) + body
    return _bounded(cores[0][0][0], cores[-1][0][-1], body)


def _prepared(text: str) -> str:
    """Return a text in which patterns are looked for; it has the same lines."""
    return caseless(plain(text)).replace("\u0131", "i")


def _core(word: str) -> str:
    return word.strip(",;:()[]{}.!?\"'") or word


def _bounded(first: str, last: str, body: str) -> re.Pattern[str]:
    before, after = boundaries(first, last)
    number_before = r"(?<!\d[.,])" if first.isdigit() else ""
    number_after = r"(?![.,]\d)" if last.isdigit() else ""
    return re.compile(f"{before}{number_before}{body}{after}{number_after}")


def _exactly(word: str) -> str:
    return _MARKUP.join(_literal(token) for token in _TOKEN.findall(word))


def _literal(word: str) -> str:
    if raised := _RAISED.fullmatch(word):
        return rf"{re.escape(raised[1])}\^?{raised[2]}"
    return f"(?:{LINE_END})?".join(map(re.escape, pieces_of_unspaced(word)))


def _word_pattern(word: str, forms: Mapping[str, Collection[str]]) -> str:
    """Match a word: its forms if it has only letters, otherwise as it is written."""
    if word.endswith("'s") and _LETTERS.match(word[:-2]):
        return _word_pattern(word[:-2], forms) + "'s"
    if not _is_inflected(word):
        return _literal(word) + ("\\w*" if is_hangul(word) else "")  # particles
    all_forms = inflections(word).union(forms.get(word, ())) if _is_latin(word) else {word, *forms.get(word, ())}
    return f"(?:{'|'.join(map(re.escape, sorted(all_forms, key=lambda form: (-len(form), form))))})"


def _is_latin(word: str) -> bool:
    return word[:1] <= _LAST_LATIN


def _is_inflected(word: str) -> bool:
    return bool(_LETTERS.match(word)) and (_is_latin(word) or has_stemmer(language_of(word)))


@functools.lru_cache(maxsize=64)
def _inflected_words(phrase: Phrase) -> tuple[str, ...]:
    """Return the words of a phrase whose other forms count too, without case: none if they are quoted."""
    cores = [_core(word).removesuffix("'s") for word in _prepared(phrase.text).split()]
    return tuple(core for core in cores if not phrase.exact and _is_inflected(core))


def has_inflections(phrase: Phrase) -> bool:
    """Return whether other forms of a word of a phrase count too."""
    return bool(_inflected_words(phrase))


def tokens_of(phrase: Phrase) -> list[frozenset[str]]:
    """Return, for some words of a phrase, tokens of which each text with the phrase has one, in whatever language.

    A word that the index leaves out in some language has no such tokens.
    """
    found = list[frozenset[str]]()
    for word in _prepared(phrase.text).split():
        core = _core(word).removesuffix("'s")
        if is_hangul(core) and not phrase.exact:
            continue
        if not phrase.exact and _is_inflected(core):
            of_forms = [tokens_of_holders(form) for form in (inflections(core) if _is_latin(core) else [core])]
            if all(of_forms):
                found.append(frozenset(chain(*of_forms, stems_in_other_languages(core))))
        elif raised := _RAISED.fullmatch(core):
            if tokens := tokens_of_holders(raised[1]):
                found.append(frozenset({english_stem(core), *tokens}))
        else:
            found += [frozenset({token}) for token in tokens_of_holders(word)]
    return found


def occurrences(text: str, patterns: Sequence[re.Pattern[str]]) -> list[Occurrence]:
    """Return the matches of patterns in a text, in its order; overlapping ones count once."""
    searched = _searched(text)
    spans = sorted({found.span() for pattern in patterns for found in pattern.finditer(searched)})
    lines = _Lines(text, searched)
    kept, last = list[Occurrence](), 0
    for start, end in spans:
        if start >= last:
            kept.append(lines.occurrence(start, end))
            last = end
    return kept


@functools.lru_cache(maxsize=1)
def _searched(text: str) -> str:
    return _prepared(text)


class _Lines:
    """Finds places of a prepared text in the text itself; they are asked for in ascending order."""

    def __init__(self, text: str, searched: str) -> None:
        self._searched, self._counted, self._line = searched, 0, 0
        self._lines = [] if text.isascii() else text.split("\n")
        self._start = 0  # of the line in the text
        self._bounds: _Bounds | None = None

    def occurrence(self, start: int, end: int) -> Occurrence:
        """Return a span of the prepared text as a span of the text, within the line in which it begins."""
        before = self._line
        self._line += self._searched.count("\n", self._counted, start)
        self._counted = start
        if not self._lines:
            return Occurrence(start, end, self._line)
        if self._bounds is None or self._line > before:
            self._start += sum(len(line) + 1 for line in self._lines[before : self._line])
            self._bounds = _bounds(self._lines[self._line], self._searched, start)
        first, last = self._bounds.span(start, end)
        return Occurrence(self._start + first, self._start + last, self._line)


@dataclass(frozen=True, slots=True)
class _Bounds:
    """Where each character of a line begins: in the prepared text, and in the line."""

    prepared: Sequence[int]
    written: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the line of a span of the prepared text."""
        first = self.written[bisect_right(self.prepared, start) - 1]
        last = bisect_left(self.prepared, end)
        return first, self.written[min(last, len(self.written) - 1)]


def _bounds(line: str, searched: str, within: int) -> _Bounds:
    """Compare a line with its prepared form, which has an offset within it; as a whole if they differ too much."""
    begin, end = searched.rfind("\n", 0, within) + 1, searched.find("\n", within)
    end = len(searched) if end < 0 else end
    prepared, written = [begin], [0]
    if len(line) <= _LONGEST_COMPARED:
        for part, form in parts_of_line(line):
            prepared.append(prepared[-1] + len(form))
            written.append(written[-1] + len(part))
    if prepared[-1] != end:
        steps = max(1, min(len(line), end - begin) // _LONGEST_LINE)
        prepared = [begin + (end - begin) * step // steps for step in range(steps + 1)]
        written = [len(line) * step // steps for step in range(steps + 1)]
    return _Bounds(prepared, written)


def without_struck_ones(text: str, found: Sequence[Occurrence]) -> list[Occurrence]:
    """Return the occurrences that share nothing with what is struck out in a text."""
    spans = struck_spans(text)
    ends = [end for _, end in spans]

    def is_valid(one: Occurrence) -> bool:
        at = bisect_right(ends, one.start)
        return at == len(spans) or one.end <= spans[at][0]

    return [one for one in found if is_valid(one)] if spans else [*found]


def best_line(found: Sequence[Occurrence]) -> Occurrence:
    """Return the first occurrence in the line that has the most."""
    counts = Counter(one.line for one in found)
    return max(found, key=lambda one: (counts[one.line], -one.line, -one.start))


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
    if right != last and " " in text[min(end, right) : right]:
        right = text.rfind(" ", min(end, right), right)
    return left, right
