"""Name the documents of passages in the words of a question.

A contract names its parties once, at its beginning or only in the name of its file. "The annual fee is EUR 11,200." of
a "Service Agreement" does not answer what Norwell is paid, unless the model and the reader are told whose agreement it
is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import PurePath

from local_rag.records import Passage, heading_path
from local_rag.text.tokens import keyword_tokens, question_terms
from local_rag.text.words import words_of

_BEGINNING = 600  # characters of a document that say what it is about
_FEWEST = 3  # letters of a name


def name_documents(question: str, lists: Sequence[Sequence[Passage]]) -> list[list[Passage]]:
    """Return passages with the words of a question that they lack, and that the name or beginning of their file has."""
    asked = list(dict.fromkeys(question_terms(question)))
    known = dict[str, dict[str, str]]()  # for each path its words, by their stems
    for passage in chain(*lists):
        words = known.setdefault(passage.path, _words(PurePath(passage.path).stem))
        beginning = passage.text[:_BEGINNING] if passage.start == 0 else ""
        for stem, word in _words(f"{beginning} {passage.terms}").items():
            if word[0].isupper():
                words.setdefault(stem, word)
    return [[_named(passage, asked, known[passage.path]) for passage in one] for one in lists]


def _named(passage: Passage, asked: Sequence[str], known: Mapping[str, str]) -> Passage:
    if not (said := [stem for stem in asked if stem in known]):
        return passage
    own = f"{heading_path(passage.title, passage.headings)}\n{passage.table_header}\n{passage.text}"
    is_said = set(keyword_tokens(own)).issuperset(said)
    return passage if is_said else replace(passage, names=tuple(known[stem] for stem in said))


def _words(text: str) -> dict[str, str]:
    """Return the words of a text that may be names, or a year, by their stems."""
    words = (word for word in words_of(text.replace("_", " ")) if len(word) >= _FEWEST)
    return {stem: word for word in words for stem in keyword_tokens(word)[:1]}
