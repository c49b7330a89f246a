"""Cut text into the tokens by which it is found: words, stems, parts of identifiers, and bigrams."""

import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from local_rag.text.languages import ENGLISH, FUNCTION_WORDS, LANGUAGES, language_of, language_of_word
from local_rag.text.words import caseless, is_unspaced, normalize, runs_of, words_of

# Part of the key of every index: raise it when the code below makes other tokens of the same text.
TOKENS_VERSION = 9
_SHORT = 40  # the length of a word whose tokens are remembered
_FEWEST_LETTERS = 3  # of a word that is kept as it is spelt
_FEWEST_OF_PIECE = 2  # letters
_MARK = re.compile("['_]+")

# `getUserName` -> get User Name, `HTTPServer2` -> HTTP Server 2, `snake_case` -> snake case
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W\d_A-Z]+|\d+")
STOP_WORDS = frozenset(
    """a an and are as at be but by do does for from had has have he her his how i if in into is it its me my no not of
    on or our s she so such that the their then there these they this to was we were what when where which who will
    with would you your""".split()  # noqa: SIM905  a list of that many quoted words is no easier to read
)
SMALL_WORDS = STOP_WORDS.union(*FUNCTION_WORDS.values())  # of all languages


@functools.cache
def _stemmer(language: str) -> Any:
    import Stemmer

    return Stemmer.Stemmer(language if language in Stemmer.algorithms() else ENGLISH)


def keyword_tokens(text: str, language: str = ENGLISH) -> list[str]:
    """Return the tokens by which texts are compared: stems, identifiers and their parts, and bigrams without spaces.

    An index also holds the English stems of other languages; see `document_tokens`.
    """
    # The stems of short words are kept, because they occur again and again.
    stems = [(_remembered if len(word) <= _SHORT else _stems_of)(word, language, language) for word in words_of(text)]
    return list(chain.from_iterable(stems))


def _stems_of(word: str, language: str, stemmer: str) -> tuple[str, ...]:
    """Return the stems of a word of a language, by the stemmer of the same or another, without its stop words."""
    stop_words = STOP_WORDS if language == ENGLISH else FUNCTION_WORDS.get(language, frozenset())
    parts = [part for part in _parts(word) if part not in stop_words]
    return tuple(_stemmer(stemmer).stemWords([folded(part) for part in parts] if stemmer == ENGLISH else parts))


_remembered = functools.lru_cache(maxsize=1 << 16)(_stems_of)


def folded(word: str) -> str:
    """Return a word in lower case with its Latin letters as they are typed without accents: Schließfach, schliessfach.

    An accent tells words apart in some languages. Those have stemmers, which are given the word as it is.
    """
    return word.lower() if word.isascii() else caseless(word).translate(_plain_letters())


@functools.cache
def _plain_letters() -> dict[int, str]:
    """Return what to write for each Latin letter with a mark, and nothing for a mark that follows a letter."""
    letters = [chr(code) for code in (*range(0x80, 0x250), *range(0x1E00, 0x1F00)) if chr(code).isalpha()]
    plain = {ord(one): normalize("NFKD", one.casefold()) for one in letters}
    plain |= dict(zip(map(ord, "øłđæœðþı"), ("o", "l", "d", "ae", "oe", "d", "th", "i"), strict=True))
    marks = dict.fromkeys(range(0x300, 0x370), "")
    return {code: text.translate(marks) for code, text in plain.items()} | marks


def document_tokens(texts: Sequence[str], words: dict[str, set[str]] | None = None) -> list[list[str]]:
    """Return the tokens of each text of a document, stemmed in the language of all of them and in English.

    Questions are stemmed in English too, so in whatever language one is asked, it finds the words that it names. The
    words are added to those of their language in `words`, if given.
    """
    language = language_of("\n".join(texts))
    found = [words_of(text) for text in texts]
    if words is not None:
        words.setdefault(language, set()).update(*found)
    return [list(chain.from_iterable(_terms_of(word, language) for word in some)) for some in found]


def _terms_of(word: str, language: str) -> tuple[str, ...]:
    """Return the stems of a word in its language, then those in English and of its pieces that differ."""
    language = language_of_word(word, language)
    stems_of = _remembered if len(word) <= _SHORT else _stems_of
    own = stems_of(word, language, language)
    also = list(stems_of(word, language, ENGLISH)) if language != ENGLISH else []
    also += [term for piece in _pieces(word) for term in _terms_of(piece, language)]
    return own + tuple(term for term in dict.fromkeys(also) if term not in own)


def spellings(words: Mapping[str, Collection[str]]) -> dict[str, set[str]]:
    """Return for each token the words in lower case that it stands for, from the words of each language.

    They are the words that a person may type: no identifiers, no numbers, and nothing of a script without spaces.
    """
    found: dict[str, set[str]] = {}
    for language, some in words.items():
        for word in some:
            form, *parts = [""] if len(word) > _SHORT or is_unspaced(word) else _parts(word)
            if not parts and form.isalpha() and len(form) >= _FEWEST_LETTERS:
                for token in _terms_of(word, language):
                    found.setdefault(token, set()).add(form)
    return found


def question_terms(question: str, language: str = "") -> list[str]:
    """Return the tokens of a question; one in another language than English is also stemmed as English.

    So it finds documents of its language, and names in all others. Without a `language`, the question tells it.
    """
    language = language or language_of(question)
    terms = keyword_tokens(question, language)
    if language == ENGLISH:
        return terms
    also = dict.fromkeys(term for word in words_of(question) for term in _stems_of(word, language, ENGLISH))
    known = set(terms)
    return terms + [term for term in also if term not in known]


def _parts(word: str) -> Iterator[str]:
    """Yield a word without case and the parts of an identifier, or the bigrams of a script without spaces."""
    word = word.removesuffix("'s")
    for run in runs_of(word):
        if not run.isascii() and is_unspaced(run):
            yield from _bigrams(run)
            continue
        lower = caseless(run)
        yield lower
        plain = run.isalpha() and run[1:] == lower[1:]  # most words have one part
        if not plain and run.isascii() and "'" not in run and (parts := _PART.findall(run)) != [run]:
            yield from (part.lower() for part in parts)


def _bigrams(run: str) -> Iterator[str]:
    return (run[index : index + 2] for index in range(max(1, len(run) - 1)))


def _pieces(word: str) -> list[str]:
    """Return what apostrophes and underscores part a word into, as in "l'eau" and "_eau_"; nothing without them."""
    return [piece for piece in _MARK.split(word) if len(piece) >= _FEWEST_OF_PIECE] if _MARK.search(word) else []


def tokens_of_holders(word: str) -> list[str]:
    """Return tokens that every text with a word has, whatever its language: all of them.

    There are none for what an index may leave out: words without meaning in some language, single letters.
    """
    runs = [run for one in words_of(word) for piece in _MARK.split(one) for run in runs_of(piece)]
    tokens = list[str]()
    for run in runs:
        if len(run) < _FEWEST_OF_PIECE:
            continue
        if is_unspaced(run):
            tokens += _bigrams(run)
        elif folded(run) not in _left_out():
            tokens.append(english_stem(run))
    return tokens


def has_stemmer(language: str) -> bool:
    """Return whether the stemmer of a language is another than the English one."""
    return language != ENGLISH and language in _other_stemmers()


@functools.lru_cache(maxsize=1 << 16)
def stem_in(word: str, language: str) -> str:
    """Return the stem of a plain word without case in a language other than English."""
    return str(_stemmer(language).stemWord(word))


def stems_in_other_languages(word: str) -> set[str]:
    """Return the stems that an index may have of a plain word without case, in documents that are not in English."""
    return {stem_in(word, language) for language in _other_stemmers()}


@functools.cache
def _other_stemmers() -> frozenset[str]:
    import Stemmer

    return LANGUAGES & set(Stemmer.algorithms()) - {ENGLISH}


def english_stem(word: str) -> str:
    """Return the token that an index has of a word in whatever language, unless it leaves the word out."""
    return str(_stemmer(ENGLISH).stemWord(folded(word)))


@functools.cache
def _left_out() -> frozenset[str]:
    """Return the words that an index leaves out in some language."""
    return frozenset(map(folded, SMALL_WORDS))


_RUN = re.compile(r"[^\W_]+")


def word_keys(text: str) -> list[str]:
    """Return the words of a text in the form in which tables and questions are compared: folded, stemmed as English."""
    return [key_of_word(run) for run in _RUN.findall(text)]


def key_of_word(word: str) -> str:
    """Return the form of one word in which tables and questions are compared."""
    return _key_of_word(word) if len(word) <= _SHORT else word.casefold()


@functools.lru_cache(maxsize=1 << 16)
def _key_of_word(word: str) -> str:
    return english_stem(word) if word.isalpha() else folded(word)
