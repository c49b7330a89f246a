"""Split an answer into its sentences, each with the sources it cites."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from local_rag.verification.citations import find_citations

# Behind these a full stop ends no sentence, unless what follows is a line of its own.
_ABBREVIATIONS = frozenset(
    """e.g i.e eg ie cf vs etc al approx ca no nos fig figs eq sec ch art vol pp p ed eds est dept ext tel min max avg
    dr mr mrs ms prof st sr jr rev gen col capt lt sgt gov sen rep hon inc ltd co corp bros u.s u.k u.n a.m p.m
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun kr bzw z.b
    """.split()  # noqa: SIM905  a list of that many quoted words is no easier to read
)
_CITATION = r"\s{0,99}[\[\u3010\uff3b][\d\s,;:&#\u2013\u2014-]{1,60}[\]\u3011\uff3d]"
# A full stop may be followed by what closes, and by citations; the next sentence begins with the text behind.
_END = re.compile(rf"(?:[.!?\u2026]+|[\u3002\uff01\uff1f])[\"'\u201d\u2019)*_`]{{0,4}}(?:{_CITATION})*\.?(\s+|$)|\n\s*")
LIST_NUMBER = re.compile(r"\s*(?:(?:[-*\u2022]|\(?\d{1,3}[.)]|[a-zA-Z][.)])\s+)?")
_LAST_WORD = re.compile(r"[\w.]*\Z")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence as it stands in the answer, with the white space behind it, and the sources that it stands on.

    `own` says that it cites them itself.
    """

    text: str
    citations: tuple[int, ...]
    own: bool


def split_sentences(text: str) -> list[str]:
    """Split a text after its sentences and lines; the parts make up the text."""
    parts, begun = list[str](), 0
    for match in _END.finditer(text):
        if match.end() < len(text) and not _ends(text, begun, match):
            continue
        if text[begun : match.end()].strip():
            parts.append(text[begun : match.end()])
            begun = match.end()
    if text[begun:].strip():
        parts.append(text[begun:])
    elif parts:
        parts[-1] += text[begun:]
    return parts


def _ends(text: str, begun: int, match: re.Match[str]) -> bool:
    """Say whether a full stop that stands in the midst of a text ends a sentence."""
    if "\n" in match[0]:
        return True
    before = text[begun : match.start()]
    if LIST_NUMBER.fullmatch(before + match[0].strip()[:1] + " "):
        return False
    following = text[match.end()]
    word = _LAST_WORD.search(before)
    last = word[0].lower() if word else ""
    if match[0].strip() == "." and (last in _ABBREVIATIONS or (len(last) == 1 and last.isalpha())):
        # An abbreviation may end a sentence too; a number or a small letter behind it says that it does not.
        return last in {"etc", "a.m", "p.m", "inc", "ltd", "co"} and following.isupper()
    return not following.islower()


def cited_sentences(text: str) -> list[Sentence]:
    """Return the sentences with their citations: one that cites nothing stands on those of the next that does.

    Behind the last that does, on those of the last. Where none does, `citations` are empty.
    """
    parts = split_sentences(text)
    found = [tuple(dict.fromkeys(n for _, numbers in find_citations(iter([part])) for n in numbers)) for part in parts]
    return inherit_citations([Sentence(part, own, bool(own)) for part, own in zip(parts, found, strict=True)])


def inherit_citations(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Let those that cite nothing stand on what their neighbours cite."""
    found = [sentence.citations if sentence.own else () for sentence in sentences]
    return [
        replace(sentence, citations=sentence.citations if sentence.own else _nearest(found, place))
        for place, sentence in enumerate(sentences)
    ]


def _nearest(found: Sequence[tuple[int, ...]], place: int) -> tuple[int, ...]:
    return next((numbers for numbers in (*found[place:], *reversed(found[:place])) if numbers), ())


def with_citations(sentence: Sentence, numbers: Sequence[int]) -> str:
    """Return a sentence's text with other citations in the place of its own or behind it, none for no numbers."""
    others = f" [{', '.join(map(str, numbers))}]" if numbers else ""
    pieces = [others if cited else text for text, cited in find_citations(iter([sentence.text.rstrip()]))]
    space = sentence.text[len(sentence.text.rstrip()) :]
    return "".join(pieces) + ("" if sentence.own else others) + space
