"""Read the lines of a PDF's page with their place and size, from what PDFium says of each character."""

import ctypes
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from operator import itemgetter
from typing import Any, NamedTuple

from local_rag.reading.converters.notation import subscript, superscript
from local_rag.reading.decode import clean
from local_rag.reading.spaced_words import FEWEST_LETTERS, is_spaced_word
from local_rag.text.struck import SIGN, strike

_WIDE = 0.75  # a gap of this part of a line's height separates cells: a space is 0.25, in justified text up to 0.6
_MOST_WORDS = 20_000  # of a page: longer ones are read as text alone
_SMALLER = 0.88  # of a line's height: a character that may be raised or lowered
_RISE, _FALL = 0.12, -0.04  # of a line's height, from its baseline
_LONGEST_RAISED = 20  # characters
_ACROSS = 2.0  # times as high as lines that it covers is a line that is no part of them
_STRUCK_FROM, _STRUCK_TO = 0.35, 0.65  # of a word's height: where a line strikes it out
_TOUCHING = 0.12  # of a line's height: a smaller gap is no space
_FEWEST_APART, _MOSTLY_APART, _WIDER = 5, 0.8, 1.6  # letters of a line; their share; the gap of words to theirs
_BOLD = 600  # of 100 to 900: the weight of a font
_BOLD_NAME = re.compile(rb"bold|black|heavy|demi", re.IGNORECASE)
_HYPHENS = "-\u00ad\u2010\ufffe"
_LINE_END = re.compile(r"\n|(?<=\ufffe)(?=[^\s])")  # PDFium ends no line at a hyphen within a word
_RANGE = re.compile(r"[^\W_][-\u2010-\u2013]\Z")  # of numbers, or a code, which goes on with a digit in the next line
Box = tuple[float, float, float, float]  # left, bottom, right, top in points, from below


class Rule(NamedTuple):
    """A straight line: `at` is its height or its distance from the left, `start` and `end` its extent, in points."""

    at: float
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Rules:
    """The level and the upright lines that a page draws, and the upright ones of low frames."""

    level: tuple[Rule, ...] = ()
    upright: tuple[Rule, ...] = ()
    posts: tuple[Rule, ...] = ()

    def part(self, left: float, right: float, height: float) -> bool:
        """Return whether an upright line stands between two places at a height."""
        return any(left <= one.at <= right and one.start <= height <= one.end for one in self.upright)

    def strike(self, first: Box, last: Box, left: float, right: float) -> bool:
        """Return whether a level line, which these are sorted by height, runs through the middle of a whole word.

        One that goes on beyond the words of the line, from `left` to `right`, is that of squared paper or of a table,
        and one that upright lines meet at both ends is that of a box.
        """
        height = first[3] - first[1]
        low, high = first[1] + _STRUCK_FROM * height, first[1] + _STRUCK_TO * height
        slack = _TOUCHING * height
        return any(
            left - height <= one.start <= first[0] + slack
            and last[2] - slack <= one.end <= right + height
            and not all(self._turns(one.at, end, slack, low, high) for end in (one.start, one.end))
            for one in _between(self.level, low, high)
        )

    def _turns(self, height: float, end: float, slack: float, low: float, high: float) -> bool:
        """Return whether a level line goes on upright at one end.

        That is beyond the heights between which lines strike out, or it is that of a low frame.
        """
        if any(
            one.start - slack <= height <= one.end + slack for one in _between(self.posts, end - slack, end + slack)
        ):
            return True
        return any(
            one.start - slack <= height <= one.end + slack and (one.start < low or one.end > high)
            for one in _between(self.upright, end - slack, end + slack)
        )


def _between(rules: Sequence[Rule], low: float, high: float) -> Sequence[Rule]:
    """Return the rules at these places, of those that are sorted by it."""
    places = itemgetter(0)
    return rules[bisect_left(rules, low, key=places) : bisect_right(rules, high, key=places)]


@dataclass(frozen=True, slots=True)
class Cell:
    """Words without a wide gap between them, and their extent."""

    text: str
    left: float
    right: float


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page; `height` is that of its font, 0 if it is not known, and `top` is measured from below.

    `is_aside` says that it is no part of the running text: it is turned, or large and lies across other lines.
    """

    cells: tuple[Cell, ...]
    top: float = 0.0
    height: float = 0.0
    is_bold: bool = False
    is_aside: bool = False

    @property
    def text(self) -> str:
        """Return the words."""
        return " ".join(cell.text for cell in self.cells)


@dataclass(frozen=True, slots=True)
class RecognizedPage:
    """The lines of a page, and the mean confidence from 0 to 1 with which their characters were read."""

    lines: tuple[Line, ...]
    confidence: float


@dataclass(slots=True)
class _Word:
    """A word with the boxes of its first and last character; `is_joined` to the one before it, without a space."""

    text: str
    offset: int
    first: Box | None
    last: Box | None
    is_joined: bool = False

    @property
    def height(self) -> float:
        return self.first[3] - self.first[1] if self.first else 0.0


class Characters:
    """The characters of a page by their offset in its text."""

    def __init__(self, textpage: Any, length: int) -> None:
        import pypdfium2.raw as pdfium

        self._pdfium, self._page = pdfium, textpage.raw
        self._box, self._x, self._y = pdfium.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
        self._name = ctypes.create_string_buffer(100)
        self._is_same = textpage.count_chars() == length

    def box(self, offset: int) -> Box | None:
        """Return the box of a character, as high as its font; None if it has none."""
        index, box = self._index(offset), self._box
        if index < 0 or not self._pdfium.FPDFText_GetLooseCharBox(self._page, index, ctypes.byref(box)):
            return None
        return box.left, box.bottom, box.right, box.top

    def baseline(self, offset: int) -> float:
        """Return the height of the line that a character stands on, in points."""
        self._pdfium.FPDFText_GetCharOrigin(
            self._page, self._index(offset), ctypes.byref(self._x), ctypes.byref(self._y)
        )
        return self._y.value

    def is_upright(self, offset: int) -> bool:
        """Return whether a character is not turned."""
        return bool(abs(self._pdfium.FPDFText_GetCharAngle(self._page, self._index(offset))) < 0.01)  # noqa: PLR2004

    def is_unknown(self, offset: int) -> bool:
        """Return whether the font of a character does not tell what it is."""
        return bool(self._pdfium.FPDFText_HasUnicodeMapError(self._page, self._index(offset)) == 1)

    def is_bold(self, offset: int) -> bool:
        """Return whether the font of a character is bold, by its weight or its name."""
        index = self._index(offset)
        if self._pdfium.FPDFText_GetFontWeight(self._page, index) >= _BOLD:
            return True
        length = self._pdfium.FPDFText_GetFontInfo(self._page, index, self._name, len(self._name), None)
        return bool(_BOLD_NAME.search(self._name.raw[: min(length, len(self._name))]))

    def _index(self, offset: int) -> int:
        if self._is_same:
            return offset
        return int(self._pdfium.FPDFText_GetCharIndexFromTextIndex(self._page, offset))


def lines_of(textpage: Any, rules: Rules) -> tuple[list[Line], int]:
    """Return the lines of a page in the order of its text, and how many characters nothing tells; none is blank."""
    text = textpage.get_text_range()
    if text.count(" ") > _MOST_WORDS:
        return [Line((Cell(line, 0, 0),)) for line in clean(text).split("\n") if line.strip()], 0
    characters = Characters(textpage, len(text))
    fragments, unknown, start = list[list[_Word]](), 0, 0
    for written in _LINE_END.split(text):
        of_line, left_out = _words(written, start, characters)
        start += len(written) + (text[start + len(written) : start + len(written) + 1] == "\n")
        unknown += left_out
        for words in map(_with_letters_joined, _lines_apart(of_line)):
            if fragments and _goes_on(fragments[-1], words, characters):
                fragments[-1] += words
            else:
                fragments.append(words)
    lines = list[Line]()
    for words in fragments:
        one = _line(words, characters, rules)
        if lines and _is_beside(lines[-1], one):  # PDFium may break a line between cells
            one = replace(one, cells=(*lines.pop().cells, *one.cells))
        lines.append(one)
    return [replace(one, is_aside=True) if _lies_across(one, lines) else one for one in lines], unknown


def _lies_across(line: Line, lines: Sequence[Line]) -> bool:
    """Return whether a line is larger than two others that it covers in part, as a watermark is."""
    left, right, bottom = line.cells[0].left, line.cells[-1].right, line.top - line.height
    covered = (
        other
        for other in lines
        if 0 < _ACROSS * other.height < line.height
        and bottom < other.top - other.height / 2 < line.top
        and other.cells[0].left < right
        and left < other.cells[-1].right
    )
    return line.height > 0 and len(list(islice(covered, 2))) > 1


def _words(line: str, start: int, characters: Characters) -> tuple[list[_Word], int]:
    """Return the words of a line, and how many characters are left out because nothing tells what they are."""
    words, offset, unknown = list[_Word](), start, 0
    for word in line.replace("\r", " ").replace("\t", " ").split(" "):
        if word.strip():
            if characters.is_unknown(offset) and (
                sum(characters.is_unknown(offset + at) for at in range(len(word))) > len(word) / 2
            ):
                unknown += len(word)
            else:
                first, last = characters.box(offset), characters.box(offset + len(word) - 1)
                words.append(_Word(word, offset, first, last))
        offset += len(word) + 1
    return words, unknown


def _lines_apart(words: Sequence[_Word]) -> Iterator[list[_Word]]:
    """Yield the words that stand beside each other: on a page with few, PDFium takes several lines for one."""
    line = list[_Word]()
    for word in words:
        before, after = (line[-1].last if line else None), word.first
        if before and after and after[3] < before[1] and after[0] < before[0]:
            yield line
            line = []
        line.append(word)
    if line:
        yield line


def _with_letters_joined(words: list[_Word]) -> list[_Word]:
    """Join the letters of words that are set apart, as in "N O T I C E": wider gaps stand between the words."""
    letters = sum(len(word.text) == 1 and word.text.isalpha() for word in words)
    if len(words) >= _FEWEST_APART and letters >= _MOSTLY_APART * len(words):
        return [_one_word(part) for part in _parts_apart(words)]
    if letters < FEWEST_LETTERS:
        return words
    runs = list[list[_Word]]()
    for word in words:
        if runs and _may_go_on(runs[-1][-1], word):
            runs[-1].append(word)
        else:
            runs.append([word])
    parts = (part for run in runs for part in _parts_apart(run))
    return [
        word for part in parts for word in ([_one_word(part)] if is_spaced_word([one.text for one in part]) else part)
    ]


def _may_go_on(letter: _Word, other: _Word) -> bool:
    """Return whether two letters may be those of one word, in one cell."""
    if not all(len(one.text) == 1 and one.text.isalpha() for one in (letter, other)):
        return False
    return 0 < _gap(letter, other) <= _WIDE * letter.height


def _gap(word: _Word, other: _Word) -> float:
    return other.first[0] - word.last[2] if word.last and other.first else 0.0


def _parts_apart(words: Sequence[_Word]) -> list[list[_Word]]:
    """Divide words at the gaps that are wider than most; all are apart if the gaps are not known."""
    gaps = [_gap(one, other) for one, other in pairwise(words)]
    usual = sorted(gaps)[len(gaps) // 3] if gaps else 0.0
    parts = [[words[0]]]
    for word, gap in zip(words[1:], gaps, strict=True):
        if 0 < gap <= _WIDER * usual:
            parts[-1].append(word)
        else:
            parts.append([word])
    return parts


def _one_word(words: Sequence[_Word]) -> _Word:
    first, last = words[0], words[-1]
    return _Word("".join(word.text for word in words), first.offset, first.first, last.last, first.is_joined)


def _goes_on(before: Sequence[_Word], after: Sequence[_Word], characters: Characters) -> bool:
    """Return whether a line goes on: PDFium breaks it behind a raised character. Say so to the word that is joined."""
    one, other = before[-1], after[0]
    if one.last is None or other.first is None:
        return False
    height = max(one.height, other.height)
    gap = other.first[0] - one.last[2]
    is_near = -_TOUCHING * height <= gap <= _WIDE * height and abs(other.first[1] - one.last[1]) < height / 2
    if not is_near or not characters.is_upright(other.offset):
        return False
    other.is_joined = gap < _TOUCHING * height
    return True


def _line(words: Sequence[_Word], characters: Characters, rules: Rules) -> Line:
    """Put words together to cells; what is smaller than most of the line and off its baseline is raised or lowered."""
    heights = Counter[float]()
    for word in words:
        heights[word.height] += len(word.text)
    height = max(heights, key=heights.__getitem__)
    usual = next(word for word in words if word.height == height)
    if not characters.is_upright(usual.offset):  # the boxes of turned letters are as high as these are wide
        height = 0.0
    top = usual.first[3] if usual.first and height else 0.0
    boxes = [box for word in words for box in (word.first, word.last) if box]
    extent = min((box[0] for box in boxes), default=0.0), max((box[2] for box in boxes), default=0.0)
    baseline: float | None = None
    cells: list[Cell] = []
    for word in words:
        text = word.text
        if height and _may_be_raised(word, height):
            baseline = characters.baseline(usual.offset) if baseline is None else baseline
            text = _with_raised(word, height, baseline, characters)
        is_word = any(map(str.isalnum, text))  # of which no stroke is a line through the middle, as of a dash
        if height and is_word and word.first and word.last and rules.strike(word.first, word.last, *extent):
            text = strike(text)
        end = cells[-1].right if cells else 0.0
        left, right = (word.first[0], word.last[2]) if word.first and word.last else (end, end)
        if cells and word.is_joined:
            cells[-1] = Cell(f"{cells[-1].text}{clean(text)}", cells[-1].left, right)
        elif cells and left - end <= _WIDE * (height or 1.0) and not rules.part(end, left, top - height / 2):
            cells[-1] = Cell(f"{cells[-1].text} {clean(text)}", cells[-1].left, right)
        else:
            cells.append(Cell(clean(text), left, right))
    cells = [replace(cell, text=cell.text.replace(f"{SIGN} {SIGN}", " ")) for cell in cells]
    ends = words[0].offset, words[-1].offset
    is_bold, is_aside = all(map(characters.is_bold, ends)), not characters.is_upright(usual.offset)
    return Line(tuple(cells), top, height, is_bold, is_aside)


def _may_be_raised(word: _Word, height: float) -> bool:
    """Return whether a word may contain raised characters: small ones at its ends, or digits between others."""
    ends = min(one[3] - one[1] for one in (word.first, word.last) if one) if word.first or word.last else height
    return ends < _SMALLER * height or (len(word.text) > 2 and any(map(str.isdigit, word.text[1:-1])))  # noqa: PLR2004


def _with_raised(word: _Word, height: float, baseline: float, characters: Characters) -> str:
    pieces: list[tuple[int, str]] = []
    for at, character in enumerate(word.text):
        box = characters.box(word.offset + at)
        place = 0
        if box and 0 < box[3] - box[1] < _SMALLER * height and characters.is_upright(word.offset + at):
            rise = (characters.baseline(word.offset + at) - baseline) / height
            place = 1 if _RISE < rise < 1 else -1 if -1 < rise < _FALL else 0
        if pieces and pieces[-1][0] == place:
            pieces[-1] = place, pieces[-1][1] + character
        else:
            pieces.append((place, character))
    return "".join(
        text if not place or len(text) > _LONGEST_RAISED else (superscript if place > 0 else subscript)(text)
        for place, text in pieces
    )


def _is_beside(line: Line, other: Line) -> bool:
    same = abs(line.top - other.top) < line.height / 4 and abs(line.height - other.height) < line.height / 4
    return same and other.cells[0].left > line.cells[-1].right + _WIDE * line.height


def join_lines(before: str, after: str) -> str:
    """Join two lines of a paragraph."""
    if breaks_word(before, after):
        return before[:-1] + after
    return before + after if breaks_range(before, after) else f"{before} {after}"


def breaks_word(before: str, after: str) -> bool:
    """Return whether a line ends within a word that goes on in the next one."""
    ends = before[-1:] in set(_HYPHENS) and before[-2:-1].isalpha()
    return ends and after[:1].isalpha() and not after[:1].isupper()


def breaks_range(before: str, after: str) -> bool:
    """Return whether a line ends within a range of numbers, or a code, that goes on with a digit in the next one."""
    return bool(_RANGE.search(before)) and after[:1].isdecimal()
