"""Name the documents of passages in the words of a question.

A contract names its parties once, at its beginning or only in the name of its file. "The annual fee is EUR 11,200." of
a "Service Agreement" does not answer what Norwell is paid, unless the model and the reader are told whose agreement it
is.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import PurePath

from local_rag.document_records import heading_path
from local_rag.passage_records import Passage
from local_rag.text.tokens import keyword_tokens, question_terms
from local_rag.text.words import fold, words_of

_BEGINNING = 600  # characters of a document that say what it is about
_FEWEST = 4  # letters of a name at the beginning of a document, unless all are capitals; "One" begins sentences


class DocumentNames:
    """The words of a question that the names or the beginnings of files have, from the `passages` found for it."""

    def __init__(self, question: str, passages: Iterable[Passage]) -> None:
        self._asked = list(dict.fromkeys(question_terms(question)))
        spelled = {_spelling(word): stem for word in words_of(question) for stem in keyword_tokens(word)[:1]}
        self._known = dict[str, dict[str, str]]()  # for each path its words, by their stems
        for passage in passages:
            words = self._known.setdefault(passage.path, dict(_words_of_file(passage.path)))
            beginning = passage.text[:_BEGINNING] if passage.start == 0 else ""
            for name in _names(f"{beginning} {passage.terms}"):
                if stem := spelled.get(_spelling(name)):
                    words.setdefault(stem, name)

    def name(self, passage: Passage, text: str) -> Passage:
        """Return a passage with the names of its document, unless what is read of it has all of them: its `text`."""
        known = self._known[passage.path]
        if not (said := [stem for stem in self._asked if stem in known]):
            return passage
        own = f"{heading_path(passage.title, passage.headings)}\n{passage.table_header}\n{text}"
        is_said = set(keyword_tokens(own)).issuperset(said)
        return passage if is_said else replace(passage, names=tuple(known[stem] for stem in said))


def name_documents(question: str, lists: Sequence[Sequence[Passage]]) -> list[list[Passage]]:
    """Return passages with the words of a question that they lack, and that the name or beginning of their file has."""
    names = DocumentNames(question, chain(*lists))
    return [[names.name(passage, passage.text) for passage in one] for one in lists]


def _words_of_file(path: str) -> Iterator[tuple[str, str]]:
    for word in words_of(PurePath(path).stem.replace("_", " ")):
        yield from ((stem, word) for stem in keyword_tokens(word)[:1])


def _names(text: str) -> Iterator[str]:
    """Yield the words that may be names."""
    for word in words_of(text):
        if word.isupper() or (word[0].isupper() and len(word) >= _FEWEST):
            yield word


def _spelling(word: str) -> str:
    return fold(word.removesuffix("'s"))
