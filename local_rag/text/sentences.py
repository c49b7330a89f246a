"""Split a text into its sentences: exactly for what a model reads and writes, quickly for what is looked up."""

import re
from collections.abc import Iterator

from local_rag.text.notes import begins_note, note_spans

# A full stop after one of these does not end a sentence, unless a new line follows.
_ABBREVIATIONS = frozenset(
    """e.g i.e eg ie cf vs etc al approx ca no nos fig figs eq sec ch art vol pp p ed eds est dept ext tel min max avg
    dr mr mrs ms prof st sr jr rev gen col capt lt sgt gov sen rep hon inc ltd co corp bros u.s u.k u.n a.m p.m
    jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thur thurs fri sat sun kr bzw z.b
    d.h i.a i.v z.t z.hd nr ggf vgl inkl evtl bspw zzgl bzgl
    """.split()  # noqa: SIM905  a list of that many quoted words is no easier to read
)
# "am 18. Oktober": a German ordinal, whose full stop ends no sentence before one of these.
_ORDINAL = re.compile(r"(?<![\d.,])\d{1,2}\Z")
_COUNTED = re.compile(
    r"(?:Januar|J\u00e4nner|Februar|M\u00e4rz|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"
    r"|Quartal|Halbjahr|Jahrhundert|Stock|Obergeschoss|Auflage)"
)
# "z. Hd. Frau Farrar"; alone, "HD." may end a sentence.
_ATTENTION = re.compile(r"\bz\.\s?Hd\Z", re.IGNORECASE)
_CITATION = r"\s{0,99}[\[\u3010\uff3b][\d\s,;:&#\u2013\u2014-]{1,60}[\]\u3011\uff3d]"
# Closing marks and citations may follow the full stop; they belong to the sentence that it ends.
_END = re.compile(
    rf"(?:(?<![.!?\u2026])[.!?\u2026]+|[\u3002\uff01\uff1f])[\"'\u201d\u2019)*_`]{{0,4}}(?:{_CITATION})*\.?(\s+|$)|\n\s*"
)
LIST_NUMBER = re.compile(r"\s*(?:(?:[-*\u2022]|\(?\d{1,3}[.)]|[a-zA-Z][.)])\s+)?")
# A sentence or line that marks alone tell: quick, and the same in all languages that end sentences so.
_SENTENCE = re.compile(r"[^\n.!?]+(?:[.!?](?!\s|\Z)[^\n.!?]*)*[.!?]*")
# The end of a line within a paragraph.
_WRAPPED = re.compile(r"(?<=[^\n|])\n(?=[^\n|#*>\-\d\s])")
_MOST_SENTENCES = 2000
_WORD = re.compile(r"[\w.]*")
_LONGEST_WORD = 60  # characters before a full stop that are looked at


def split_sentences(text: str) -> list[str]:
    """Split a text after each sentence and line; joined, the parts are the text again.

    A note belongs to the sentence that its sign stands in.
    """
    parts, begun, notes = list[str](), 0, note_spans(text)
    for match in _END.finditer(text):
        while notes and notes[0][1] < match.end():
            del notes[0]
        is_noted = bool(notes) and (notes[0][0] < match.end() < notes[0][1] or begins_note(text, match.end()))
        if match.end() < len(text) and ((is_noted and "\n" not in match[0]) or not _ends(text, begun, match)):
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
    if "\n" in match[0]:
        return True
    before = text[max(begun, match.start() - _LONGEST_WORD) : match.start()]
    if match.start() - begun < _LONGEST_WORD and LIST_NUMBER.fullmatch(before + match[0].strip()[:1] + " "):
        return False
    is_ordinal = _COUNTED.match(text, match.end()) and _ORDINAL.search(before)
    if match[0].strip() == "." and (is_ordinal or _ATTENTION.search(before)):
        return False
    following = text[match.end()]
    # Read backwards, as only what ends here is of interest; a search from the front tries each place.
    last = _WORD.match(before[::-1])[0][::-1].lower()  # type: ignore[index]
    if match[0].strip() == "." and (last in _ABBREVIATIONS or (len(last) == 1 and last.isalpha())):
        # An abbreviation may also end a sentence, unless a number or a lower-case letter follows.
        return last in {"etc", "a.m", "p.m", "inc", "ltd", "co"} and following.isupper()
    return not following.islower()


def unwrapped(text: str) -> str:
    """Return a text with a space for the end of each line within a paragraph, so all offsets stay."""
    return _WRAPPED.sub(" ", text)


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the sentences and lines of a text, told by their marks alone; as many as are examined."""
    for number, found in enumerate(_SENTENCE.finditer(text)):
        if number == _MOST_SENTENCES:
            return
        kept = found[0].strip()
        if kept:
            start = found.start() + found[0].index(kept)
            yield start, start + len(kept)
