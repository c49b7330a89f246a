"""Cut a text that somebody has written into statements, with what each quotes and which documents it names."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePath

from local_rag.digests.statements import DocumentText, Statement, readable, text_of_file
from local_rag.reading.converters.converted import Converted
from local_rag.reading.formats import FORMATS
from local_rag.reading.read import make_document
from local_rag.retrieval.find_question import QUOTED
from local_rag.text.facts import find_facts, normalize
from local_rag.text.tokens import keyword_tokens

_NUMBERED = re.compile(r"\s?\[\^?(\d{1,3}(?:\s?[,;-]\s?\d{1,3}){0,9})\]")
_REFERENCE = re.compile(r"\s*(?:[-*]\s)?\[\^?(\d{1,3})\]:?\s+(?P<named>\S.*)")
_BRACKETED = re.compile(r"\s?[(\[]([^()\[\]]{1,200})[)\]]")
_FILE_NAME = re.compile(r"(?<![\w/.-])[\w-][\w/.-]{0,200}\.[A-Za-z]\w{0,5}(?!\w)")
_PAGE = re.compile(
    r"(?<!\w)(?:pages?|pp?|seiten?|s)(?:\.?\s?(\d{1,4})|(?:\.\s?|\s)([ivxlc]{1,8}|[A-Z]-?\d{1,4}))(?!\w)", re.IGNORECASE
)
_ELLIPSIS = re.compile(r"\[?(?:\u2026|\.{3})\]?")
_SENTENCE_ENDS = re.compile(r"[.!\u3002\uff01:;][\"'\u201d\u2019)*_`\]]{0,4}\Z")
_FEWEST_WORDS, _FEWEST_OF_FRAGMENT = 2, 4  # content words of a claim, and of one that is no whole sentence
_FEWEST_QUOTED = 3  # words in quotation marks that are a quotation; fewer may be a name or irony
_MOST_CITED = 20  # documents that one statement names
FindNamed = Callable[[str], Sequence[str]]
"""Returns the paths of the documents that a text is the name of: a file, or a title."""


@dataclass(frozen=True)
class Claim:
    """A statement: its span in the text, and what it says without its citations.

    `cited` are the paths of the documents that it names in brackets or by number, each list for one citation, `pages`
    the pages, and `unknown` the files and numbers in brackets that stand for no document.
    """

    start: int
    end: int
    text: str
    said: str
    is_claim: bool
    cited: tuple[tuple[str, ...], ...] = ()
    pages: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()

    @cached_property
    def quotations(self) -> list[str]:
        """Return what it quotes, in parts where something is left out."""
        quoted = (next(filter(None, found.groups())) for found in QUOTED.finditer(self.said))
        parts = (part.strip(" .,;:") for one in quoted for part in _ELLIPSIS.split(one))
        return [part for part in parts if len(part.split()) >= _FEWEST_QUOTED]

    @cached_property
    def outside(self) -> str:
        """Return what it says outside of quotation marks."""
        return " ".join(QUOTED.sub(" ", self.said).split())


def read_claims(text: str, named: FindNamed) -> Iterator[Claim]:
    """Yield the statements of a text in order; headings, questions, code and what says too little are no claims."""
    document = text_of_file(make_document(Path("text.md"), Converted(None, text, "markdown"), is_source=True))
    references = _references(document, named)
    for one in document.statements:
        yield _claim(one, references, named)


def _references(document: DocumentText, named: FindNamed) -> Mapping[int, Sequence[str]]:
    """Return the documents that the numbered references of a text name."""
    found = dict[int, Sequence[str]]()
    for line in document.text.splitlines():
        reference = _REFERENCE.match(line)
        if reference:
            found.setdefault(int(reference[1]), _named_in(reference["named"], named))
    return found


def _named_in(text: str, named: FindNamed) -> tuple[str, ...]:
    """Return the documents that a reference names: as a file, or as a title."""
    if files := [path for found in _FILE_NAME.finditer(text) for path in named(found[0])]:
        return tuple(files)
    title = _PAGE.sub("", text).strip(" .,;:*_\"'\u201c\u201d")
    return tuple(named(title)) or tuple(named(title.partition(",")[0].strip()))


def _claim(one: Statement, references: Mapping[int, Sequence[str]], named: FindNamed) -> Claim:
    text = " ".join(one.text.split())
    if _REFERENCE.match(one.text):
        return Claim(one.start, one.end, text, text, is_claim=False)
    cited, pages, unknown = list[tuple[str, ...]](), list[str](), list[str]()

    def take_numbered(found: re.Match[str]) -> str:
        for number in _numbers(found[1]):
            if paths := references.get(number):
                cited.append(tuple(paths))
            elif references:  # a text without a list of references may be cut out of another one
                unknown.append(f"[{number}]")
        return ""

    def take_bracketed(found: re.Match[str]) -> str:
        paths = _named_in(found[1], named)
        if not paths:
            rest = _PAGE.sub("", found[1]).strip(" ,;")
            if rest and not (_FILE_NAME.fullmatch(rest) and _is_document(rest)):
                return found[0]
            unknown.extend([rest] if rest else [])
            pages.extend(page[1] or page[2] for page in _PAGE.finditer(found[1]) if not rest)
            return ""
        cited.append(paths)
        pages.extend(page[1] or page[2] for page in _PAGE.finditer(found[1]))
        return ""

    said = one.read if one.kind == "row" else readable(one.text)
    said = _NUMBERED.sub(take_numbered, said)
    said = " ".join(_BRACKETED.sub(take_bracketed, said).split())
    is_claim = one.kind not in {"heading", "code"} and _says_something(said)
    return Claim(one.start, one.end, text, said, is_claim, tuple(cited[:_MOST_CITED]), tuple(pages), tuple(unknown))


def _is_document(name: str) -> bool:
    """Return whether a name ends as those of documents do, and not as a host or an abbreviation."""
    known = FORMATS.get(PurePath(name).suffix.lower())
    return known is not None and not known.unsupported


def _numbers(written: str) -> Iterator[int]:
    for part in re.split(r"[,;]", written):
        first, _, last = part.partition("-")
        yield from range(int(first), min(int(last or first), int(first) + _MOST_CITED) + 1)


def _says_something(said: str) -> bool:
    """Return whether a statement says what documents could say: it has enough words, and is no question."""
    if said.rstrip("\"'\u201d\u2019)*_ ").endswith(("?", "\uff1f")):
        return False
    words = sum(1 for word in keyword_tokens(said) if not word.isdigit())
    is_whole = bool(_SENTENCE_ENDS.search(said)) and not said.endswith(":")
    facts = [fact for fact in find_facts(normalize(said)) if any(map(str.isdigit, fact.text))]
    return words >= (_FEWEST_WORDS if is_whole or facts else _FEWEST_OF_FRAGMENT) or (bool(facts) and words > 0)
