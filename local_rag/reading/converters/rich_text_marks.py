"""Rewrite a Rich Text file before it is read: nothing deleted or hidden; numbers, notes and boxes as text."""

import re
from collections import Counter
from dataclasses import dataclass, replace

from local_rag.reading.converters.raised import subscript, superscript

_TOKEN = re.compile(
    r"\\(?P<word>[a-z]{1,40})(?P<number>-?\d{1,10})?[ ]?|\\'[0-9a-fA-F]{2}|\\[^a-z]"
    r"|(?P<brace>[{}])|[^\\{}\r\n]+|[\r\n]+|\\",
    re.DOTALL,
)
_ENDS = {"par", "line", "cell", "row", "sect", "page", "column", "nestcell", "nestrow"}
_CHARACTERS = {"tab", "emdash", "endash", "emspace", "enspace", "bullet", "lquote", "rquote", "ldblquote", "rdblquote"}
_NOTES, _FRAMES, _LABELS = {"footnote", "annotation"}, re.compile(r"header[lrf]?|footer[lrf]?"), {"listtext", "pntext"}
_BOXES = {"shp", "shpinst", "shptxt", "do", "dptxbxtext"}
_HIDING, _DELETING = {"v"}, {"deleted", "mvf"}
_UP, _DOWN, _END = "\ue02b", "\ue02c", "\ue02d"  # characters for private use, around what is raised or lowered
_RAISING = {"super": _UP, "up": _UP, "sub": _DOWN, "dn": _DOWN, "nosupersub": ""}
_RAISED = re.compile(f"([{_UP}{_DOWN}])([^{_UP}-{_END}\n]*)(?:{_END}|$)", re.MULTILINE)
_OFF = "0"


@dataclass(frozen=True, slots=True)
class _State:
    """What holds in a group."""

    hidden: bool = False
    deleted: bool = False
    raised: str = ""
    closing: str = ""  # what is written at the end of the group
    is_label: bool = False
    is_left_out: bool = False


def rewrite(source: str, left_out: Counter[str]) -> str:
    """Return the source without what is deleted or hidden, and with marks around what is raised; see `write_raised`."""
    rewriter = _Rewriter()
    for token in _TOKEN.finditer(source):
        rewriter.take(token[0], token["word"], token["number"], token["brace"])
    left_out["hidden word*"] += len("".join(rewriter.hidden).split())
    return "".join(rewriter.written)


class _Rewriter:
    """Take one token after the other; `written` is the new source."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.hidden: list[str] = []
        self._stack: list[_State] = []
        self._state, self._raised = _State(), ""
        self._label: list[str] = []
        self._begins = False  # a group has begun
        self._is_starred = False  # with a mark that its destination may be skipped

    def take(self, text: str, word: str | None, number: str | None, brace: str | None) -> None:
        """Take a token: a brace, a control word, or text."""
        if brace == "{":
            self._stack.append(self._state)
            self._state = replace(self._state, closing="")
            self.written.append(text)
            self._begins, self._is_starred = True, False
            return
        if text == "\\*" and self._begins:
            self._is_starred = True
            return
        opened = _opened(word, self._state) if word and self._begins else None
        if self._is_starred and opened is None:
            self.written.append("\\*")
        self._begins = self._is_starred = False
        if brace == "}":
            self._close()
        elif opened is not None:
            self._state, begun = opened
            self.written.append(begun)
        elif word is not None and (changed := _changed(word, number, self._state)) is not None:
            self._state = changed
        else:
            self._write(text, word)

    def _close(self) -> None:
        if self._state.closing and not self._state.is_left_out:
            self.written.append(self._state.closing)
        before = self._stack.pop() if self._stack else _State()
        if self._state.is_label and not before.is_label:
            self.written.append(_label(self._label))
            self._label = []
        self._state = before
        self.written.append("}")

    def _write(self, text: str, word: str | None) -> None:
        state = self._state
        is_text = word is None or word in _ENDS or word in _CHARACTERS or word == "u"
        if state.is_left_out or (is_text and (state.deleted or state.hidden)):
            if state.hidden and word is None and not state.deleted:
                self.hidden.append(text)
            return
        if state.is_label:
            self._label.append(" " if word == "tab" else text if is_text else "")
            return
        wanted = "" if word in _ENDS else state.raised
        if is_text and wanted != self._raised and text.strip("\r\n"):
            self.written += [_mark(one) for one in (_END if self._raised else "", wanted) if one]
            self._raised = wanted
        self.written.append(text)


def write_raised(text: str) -> str:
    """Write what stands between the marks of `rewrite` as superscripts and subscripts."""
    return _RAISED.sub(lambda found: (superscript if found[1] == _UP else subscript)(found[2]), text).replace(_END, "")


def _opened(word: str, state: _State) -> tuple[_State, str] | None:
    """Return what holds in a group that begins with a word, and what is written in the word's place."""
    if word in _NOTES:
        return replace(state, closing=")", raised=""), " ("
    if _FRAMES.fullmatch(word) or word in _BOXES:
        return state, ""
    if word in _LABELS:
        return replace(state, is_label=True), ""
    if word in {"sp", "shprslt"}:  # a property of a shape, and its picture for older programs
        return replace(state, is_left_out=True), ""
    return None


def _changed(word: str, number: str | None, state: _State) -> _State | None:
    """Return what holds after a word that hides, deletes or raises text; None for any other."""
    is_on = number != _OFF
    if word in _RAISING:
        return replace(state, raised=_RAISING[word] if is_on else "")
    if word in _HIDING:
        return replace(state, hidden=is_on)
    if word in _DELETING:
        return replace(state, deleted=is_on)
    if word == "plain" and (state.hidden or state.deleted or state.raised):
        return replace(state, hidden=False, deleted=False, raised="")
    return None


def _label(written: list[str]) -> str:
    """Write the number of a paragraph as the document shows it; a sign of any other kind as a dash."""
    text = " ".join("".join(written).split())
    return f"{text} " if any(map(str.isalnum, re.sub(r"\\'[0-9a-fA-F]{2}|\\u-?\d+ ?\??", "", text))) else "- "


def _mark(character: str) -> str:
    return f"{{\\uc1\\u{ord(character)}?}}"
