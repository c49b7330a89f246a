"""Rewrite the XML of a Word document so that Mammoth reads all of its text as a reader of the paper does.

Mammoth drops what it does not know. So everything that only stands around text is unwrapped, whatever it is called;
what was deleted, moved away or hidden is removed; text boxes, formulas, symbols and the numbers of paragraphs become
text; and each heading has a style that Mammoth knows.
"""

import re
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from local_rag.reading.converters.converted import between
from local_rag.reading.converters.notation import subscript, superscript
from local_rag.reading.converters.word_styles import STRIKES, WORD, Numbering, Styles, is_on, value_of

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_CHOICES = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_RELATIONS = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_DESCRIBED = "{http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing}docPr"
_VML = "{urn:schemas-microsoft-com:vml}"
LABEL_BEGINS, LABEL_ENDS = "\ue000", "\ue001"  # characters for private use, around the number of a paragraph
CHUNK_SIGN = "\ue002{}\ue002"  # where a file of another format is a part of the text

_SIGN = re.compile("[\ue000-\ue002]")
_TEXT, _PARAGRAPH, _RUN, _BOX = f"{WORD}t", f"{WORD}p", f"{WORD}r", f"{WORD}txbxContent"
_PROPERTY_NAMES = "pPr rPr tblPr tblPrEx tblGrid trPr tcPr sectPr sdtPr"
_PROPERTIES = {f"{WORD}{name}" for name in _PROPERTY_NAMES.split()}
_SHAPES = f"{WORD}drawing", f"{WORD}pict", f"{WORD}object"
_READ_NAMES = (
    "t r p fldChar instrText tab noBreakHyphen softHyphen tbl tr tc ins smartTag txbxContent br body "
    "footnote footnoteReference endnote endnoteReference comment commentReference sdt sdtContent"
)
_READ = {f"{WORD}{name}" for name in _READ_NAMES.split()}
_TAKEN_AWAY = {f"{WORD}{name}" for name in ("del", "moveFrom", "rt", "rubyPr", "delText", "delInstrText")}
_NOT_READ = {f"{WORD}subDoc": "linked document*", f"{WORD}contentPart": "drawing* in ink"}
_COUNTED_FIELDS = ("LISTNUM", "AUTONUM")  # whose numbers are stored nowhere
_HOLDS_TEXT = _TEXT, f"{MATH}t", f"{_DRAWING}t", f"{_VML}textpath", f"{_VML}imagedata"
_DEEPEST_LEVEL = 4  # from 0, of the lists that Mammoth knows
_LONGEST_HEADING = 250  # characters: contracts give whole clauses the level of a heading
_RAISED, _LONGEST_RAISED = 4, 12  # half points, and characters
_HEADINGS = 6
_DROPPED = {"drop", "margin"}
_MOST_DIGITS = 9


class WordText:
    """Prepare the parts of a document one after the other; what is left out is counted in `left_out`.

    `chunks` are the ids of the files of other formats within the text, in the order of their signs.
    """

    def __init__(self, styles: Styles, numbering: Numbering, left_out: Counter[str]) -> None:
        self.chunks: list[str] = []
        self._styles, self._numbering, self._left_out = styles, numbering, left_out

    def prepare(self, root: Any) -> None:
        """Rewrite a part in place."""
        _choose_alternatives(root)
        self._remove_deleted(root)
        for run in list(root.iter(_RUN)):
            self._prepare_run(run)
        self._unwrap(root)
        _write_formulas(root)
        _write_chosen(root)
        _balance_fields(root, self._left_out)
        _lift_text_boxes(root)
        _join_large_letters(root)
        for paragraph in root.iter(_PARAGRAPH):
            self._prepare_paragraph(paragraph)

    def _remove_deleted(self, root: Any) -> None:
        """Remove what is deleted or was moved away; a paragraph whose end is so is joined with the next one."""
        for mark in list(root.iter(f"{WORD}moveFrom", f"{WORD}del")):
            parent = mark.getparent()
            if parent is None or parent.tag == f"{WORD}rPr":
                mark.tag = f"{WORD}del"
            elif parent.tag == f"{WORD}trPr":
                _remove(parent.getparent())
        self._left_out["reading aid*"] += sum(1 for _ in root.iter(f"{WORD}rt"))
        for name in _TAKEN_AWAY:
            for element in [one for one in root.iter(name) if one.getparent().tag not in _PROPERTIES]:
                _remove(element)

    def _unwrap(self, part: Any) -> None:
        """Put the text of elements that Mammoth does not know where they stand, and a sign where a chunk stands."""
        waiting = [part]
        while waiting:
            children = deque(waiting.pop())
            while children:
                child = children.popleft()
                if not isinstance(child.tag, str) or child.tag in _PROPERTIES or child.tag.startswith(MATH):
                    continue
                if child.tag in _NOT_READ:
                    self._left_out[_NOT_READ[child.tag]] += 1
                elif child.tag == f"{WORD}altChunk":
                    self._mark_chunk(child)
                elif child.tag in _SHAPES:
                    waiting += child.iter(_BOX)
                elif child.tag in _READ:
                    waiting.append(child)
                elif len(child) and _holds_text(child):
                    children.extendleft(reversed(_expose(child)))

    def _mark_chunk(self, chunk: Any) -> None:
        paragraph = chunk.makeelement(_PARAGRAPH)
        paragraph.append(_text_run(paragraph, CHUNK_SIGN.format(len(self.chunks))))
        self.chunks.append(chunk.get(f"{_RELATIONS}id", ""))
        chunk.getparent().replace(chunk, paragraph)

    def _prepare_run(self, run: Any) -> None:
        """Write line ends and symbols as text, remove hidden text, and mark what a style or its place marks."""
        properties = run.find(f"{WORD}rPr")
        if self._is_hidden(run, properties):
            self._left_out["hidden word*"] += sum(len((text.text or "").split()) for text in run.iter(_TEXT))
            for child in list(run):
                if child.tag in {_TEXT, f"{WORD}tab", f"{WORD}br", f"{WORD}sym"}:
                    _remove(child)
            return
        for child in run:
            if child.tag == f"{WORD}cr":
                child.tag = f"{WORD}br"
            elif child.tag == f"{WORD}ptab":
                child.tag = f"{WORD}tab"
            elif child.tag == f"{WORD}sym":
                self._write_symbol(child)
            elif child.tag == _TEXT and child.text and _SIGN.search(child.text):
                child.text = _SIGN.sub(" ", child.text)
        self._strike(run, properties)
        if properties is None:
            return
        if properties.find(f"{WORD}vertAlign") is not None:
            for name in ("b", "i"):  # marks of emphasis would stand between what is raised
                _remove_first(properties, name)
        elif raised := self._styles.vertical(value_of(properties, "rStyle")) or _by_position(run, properties):
            properties.append(_made(properties, "vertAlign", raised))

    def _is_hidden(self, run: Any, properties: Any | None) -> bool:
        direct = None if properties is None else properties.find(f"{WORD}vanish")
        return is_on(direct) if direct is not None else self._is_of(self._styles.hiding, run, properties)

    def _strike(self, run: Any, properties: Any | None) -> None:
        """Mark a run as struck out in the one way that Mammoth knows, if it or its style says so in any."""
        own = [one for name in STRIKES for one in run.iterfind(f"{WORD}rPr/{WORD}{name}")]
        struck = any(map(is_on, own)) if own else self._is_of(self._styles.striking, run, properties)
        for one in own:
            _remove(one)
        if struck:
            if properties is None:
                properties = _made(run, "rPr", None)
                run.insert(0, properties)
            properties.append(_made(properties, "strike", None))

    def _is_of(self, styles: Collection[str | None], run: Any, properties: Any | None) -> bool:
        """Return whether the style of a run, or that of its paragraph, is one of these."""
        if not styles:
            return False
        of_paragraph = value_of(next(run.iterancestors(_PARAGRAPH), None), f"pPr/{WORD}pStyle")
        return value_of(properties, "rStyle") in styles or of_paragraph in styles

    def _write_symbol(self, symbol: Any) -> None:
        from mammoth.docx.dingbats import dingbats

        font, code = symbol.get(f"{WORD}font"), symbol.get(f"{WORD}char", "")
        try:
            number = int(code, 16)
        except ValueError:
            number = 0
        found = dingbats.get((font, number)) or dingbats.get((font, number & 0xFF))
        if not found and 0 < number < 0xE000:  # noqa: PLR2004  a character of Unicode, not of the font
            found = number
        symbol.tag = _TEXT
        symbol.text = chr(found) if found else ""
        self._left_out["symbol* of an unknown font"] += not found

    def _prepare_paragraph(self, paragraph: Any) -> None:
        """Write the number of a paragraph, and name the style of a heading."""
        properties = paragraph.find(f"{WORD}pPr")
        if properties is not None and properties.find(f"{WORD}rPr/{WORD}del") is not None:
            return
        written = "".join(text.text or "" for text in paragraph.iter(_TEXT))
        in_table = next(paragraph.iterancestors(f"{WORD}tc"), None) is not None
        label = self._numbering.label(properties)
        level = self._styles.heading_level(properties)
        if properties is None:
            return
        if level and not in_table:
            _remove_first(properties, "pStyle")
            if len(written) <= _LONGEST_HEADING:
                properties.insert(0, _made(properties, "pStyle", f"Heading{min(level, _HEADINGS)}"))
        _remove_first(properties, "numPr")
        if label is None or not written.strip():
            return
        if not in_table:
            listed = _made(properties, "numPr", None)
            listed.append(_made(listed, "ilvl", str(min(label.level, _DEEPEST_LEVEL))))
            listed.append(_made(listed, "numId", "1" if label.text else "2"))
            properties.append(listed)
        if label.text or in_table:
            run = _text_run(paragraph, f"{LABEL_BEGINS}{label.text or '-'}{LABEL_ENDS}")
            properties.addnext(run)


def remove_missing(roots: Mapping[str, Any], identities: Mapping[str, set[str]], left_out: Counter[str]) -> None:
    """Remove references to notes and images that are in no part, given by name with its ids: Mammoth fails on them."""
    for kind in ("footnote", "endnote", "comment"):
        known = {note.get(f"{WORD}id") for root in roots.values() for note in root.iter(f"{WORD}{kind}")}
        for root in roots.values():
            for reference in list(root.iter(f"{WORD}{kind}Reference")):
                if reference.get(f"{WORD}id") not in known:
                    _remove(reference)
                    left_out[f"{kind}* that the file does not contain"] += 1
    for name, root in roots.items():
        for image in root.iter(f"{_DRAWING}blip", f"{_VML}imagedata"):
            for attribute in (f"{_RELATIONS}{one}" for one in ("embed", "link", "id")):
                if attribute in image.attrib and image.get(attribute) not in identities[name]:
                    del image.attrib[attribute]


def numbering_part() -> Any:
    """Return the two lists that a prepared document refers to: 1 is numbered, 2 has bullets."""
    from lxml import etree

    lists = ""
    for number, numeral in enumerate(("decimal", "bullet"), start=1):
        levels = (f'<lvl w:ilvl="{at}"><numFmt w:val="{numeral}"/></lvl>' for at in range(_DEEPEST_LEVEL + 1))
        lists += f'<abstractNum w:abstractNumId="{number}">{"".join(levels)}</abstractNum>'
        lists += f'<num w:numId="{number}"><abstractNumId w:val="{number}"/></num>'
    return etree.fromstring(f'<numbering xmlns="{WORD[1:-1]}" xmlns:w="{WORD[1:-1]}">{lists}</numbering>')


def lines_of(root: Any) -> Iterator[str]:
    """Yield the text of each paragraph of a prepared part on one line, without what stands in boxes within it."""
    pieces: dict[Any, list[str]] = {paragraph: [] for paragraph in root.iter(_PARAGRAPH)}
    for one in root.iter(_TEXT, f"{WORD}tab", f"{WORD}br"):
        around = next(one.iterancestors(_PARAGRAPH), None)
        if around is not None:
            pieces[around].append(one.text or " ")
    for texts in pieces.values():
        written = "".join(texts).replace(LABEL_BEGINS, "").replace(LABEL_ENDS, " ")
        yield " ".join(written.split())


def _choose_alternatives(root: Any) -> None:
    """Of several ways to show something keep the one for older programs if it holds anything, else the first."""
    for alternatives in list(root.iter(f"{_CHOICES}AlternateContent")):
        if alternatives.getparent() is None:
            continue
        choices = [*alternatives.iterfind(f"{_CHOICES}Fallback"), *alternatives.iterfind(f"{_CHOICES}Choice")]
        kept = next((one for one in choices if _holds_text(one)), None)
        kept = next((one for one in choices if len(one)), None) if kept is None else kept
        for child in list(alternatives):
            if child is not kept:
                alternatives.remove(child)
        if kept is not None:
            _expose(kept)
        _expose(alternatives)


def _holds_text(element: Any) -> bool:
    return next(element.iter(*_HOLDS_TEXT), None) is not None


def _expose(element: Any) -> list[Any]:
    """Put the children of an element in its place, and return them."""
    parent, children = element.getparent(), list(element)
    at = parent.index(element)
    parent[at : at + 1] = children
    return children


def _remove(element: Any) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def _made(near: Any, name: str, value: str | None) -> Any:
    made = near.makeelement(f"{WORD}{name}")
    if value is not None:
        made.set(f"{WORD}val", value)
    return made


def _remove_first(properties: Any, name: str) -> None:
    found = properties.find(f"{WORD}{name}")
    if found is not None:
        properties.remove(found)


def _text_run(near: Any, text: str) -> Any:
    run = near.makeelement(_RUN)
    made = run.makeelement(_TEXT)
    made.text = text
    run.append(made)
    return run


def _by_position(run: Any, properties: Any) -> str:
    """Return how the place of a few characters above or below the line raises them."""
    place = value_of(properties, "position") or ""
    text = "".join(one.text or "" for one in run.iter(_TEXT))
    if not place.lstrip("-").isdecimal() or len(text) > _LONGEST_RAISED or abs(int(place[:6])) < _RAISED:
        return ""
    paragraph = next(run.iterancestors(_PARAGRAPH), None)
    if paragraph is not None and paragraph.find(f"{WORD}pPr/{WORD}framePr") is not None:  # a large first letter
        return ""
    return "subscript" if place.startswith("-") else "superscript"


def _write_chosen(root: Any) -> None:
    """Write what is chosen in the lists of forms, which stands in no text."""
    for chosen in list(root.iter(f"{WORD}ddList")):
        entries = [one.get(f"{WORD}val", "") for one in chosen.iterfind(f"{WORD}listEntry")]
        number = value_of(chosen, "result") or value_of(chosen, "default") or "0"
        run = next(chosen.iterancestors(_RUN), None)
        if run is not None and number.isdecimal() and len(number) < _MOST_DIGITS and int(number) < len(entries):
            run.addprevious(_text_run(run, entries[int(number)]))


def _join_large_letters(root: Any) -> None:
    """Join a large first letter, which is a paragraph by itself, with the rest of its word."""
    for frame in list(root.iter(f"{WORD}framePr")):
        letter = next(frame.iterancestors(_PARAGRAPH), None)
        rest = None if letter is None else letter.getnext()
        if letter is None or rest is None or rest.tag != _PARAGRAPH or frame.get(f"{WORD}dropCap") not in _DROPPED:
            continue
        at = 0 if rest.find(f"{WORD}pPr") is None else 1
        rest[at:at] = [run for run in letter if run.tag != f"{WORD}pPr"]
        _remove(letter)


def _balance_fields(root: Any, left_out: Counter[str]) -> None:
    """Remove marks of fields that have no beginning, on which Mammoth fails; count numbers that are stored nowhere."""
    states: list[bool] = []  # of each open field: whether its result has begun
    for mark in list(root.iter(f"{WORD}fldChar", f"{WORD}instrText")):
        kind = mark.get(f"{WORD}fldCharType")
        if mark.tag == f"{WORD}instrText":
            left_out["automatic number*"] += (mark.text or "").strip().upper().startswith(_COUNTED_FIELDS)
        elif kind == "begin":
            states.append(False)
        elif not states or (kind == "separate" and states[-1]):
            _remove(mark)
        elif kind == "separate":
            states[-1] = True
        elif kind == "end":
            states.pop()


def _lift_text_boxes(root: Any) -> None:
    """Put the text of drawings behind them, where Mammoth reads it."""
    for drawing in list(root.iter(*_SHAPES)):
        # One within another box is lifted with it.
        if drawing.getparent() is not None and next(drawing.iterancestors(_BOX), None) is None:
            _lift(drawing)
    for box in list(root.iter(_BOX)):
        for drawing in list(box.iter(*_SHAPES)):
            if drawing.getparent() is not None and next(drawing.iter(_BOX), None) is not None:
                _lift(drawing)


def _lift(drawing: Any) -> None:
    boxes = [box for box in drawing.iter(_BOX) if not any(above.tag == _BOX for above in between(box, drawing))]
    drawn = (paragraph.iter(f"{_DRAWING}t") for paragraph in drawing.iter(f"{_DRAWING}p"))
    texts = ["".join(text.text or "" for text in paragraph) for paragraph in drawn]
    texts += [path.get("string", "") for path in drawing.iter(f"{_VML}textpath")]
    if next(drawing.iter(f"{_DRAWING}blip"), None) is None:  # Mammoth describes images
        texts += [one.get("descr", "") for one in drawing.iterfind(f"*/{_DESCRIBED}")]
    for text in filter(str.strip, texts):
        box = drawing.makeelement(_BOX)
        paragraph = box.makeelement(_PARAGRAPH)
        paragraph.append(_text_run(paragraph, text))
        box.append(paragraph)
        boxes.append(box)
    if not boxes:
        return
    lifted = _made(drawing, "pict", None)
    for box in boxes:
        _remove(box)
        lifted.append(box)
    drawing.addnext(lifted)


def _write_formulas(root: Any) -> None:
    """Write formulas as text, which Mammoth would drop."""
    for formula in list(root.iter(f"{MATH}oMath")):
        parent = formula.getparent()
        if parent is None or next(formula.iterancestors(f"{MATH}oMath"), None) is not None:
            continue
        run = _text_run(parent, f" {_formula(formula)} ")
        if parent.tag == f"{MATH}oMathPara":  # Mammoth reads only runs directly in a paragraph
            parent.addprevious(run)
        else:
            parent.replace(formula, run)


def _formula(element: Any) -> str:  # noqa: PLR0911  a table, in fact
    """Write a formula on one line: `(a+b)/c`, `x²`, `sqrt y`."""

    def said(name: str) -> str:
        found = element.find(f"{MATH}{name}")
        return "" if found is None else _formula(found)

    def part(name: str) -> str:
        text = said(name)
        return text if len(text) < 2 or text.isalnum() else f"({text})"  # noqa: PLR2004  one sign needs no brackets

    match element.tag.removeprefix(MATH):
        case "t":
            return element.text or ""
        case "f":
            return f"{part('num')}/{part('den')}"
        case "sSup" | "sSub" | "sSubSup" | "sPre":
            return part("e") + subscript(said("sub")) + superscript(said("sup"))
        case "rad":
            degree = said("deg")
            return f"root {degree} of {part('e')}" if degree else f"sqrt {part('e')}"
        case "nary":
            sign = element.find(f"{MATH}naryPr/{MATH}chr")
            sign = "∫" if sign is None else sign.get(f"{MATH}val", "")
            return f"{sign}{subscript(said('sub'))}{superscript(said('sup'))} {part('e')}"
        case "limLow" | "limUpp":
            return f"{said('e')}_({said('lim')}) "
        case "mr":
            return ", ".join(map(_formula, element.iterfind(f"{MATH}e")))
        case "eqArr":
            return "; ".join(map(_formula, element.iterfind(f"{MATH}e")))
        case "m":
            return "; ".join(map(_formula, element.iterfind(f"{MATH}mr")))
        case "d":
            return f"({', '.join(map(_formula, element.iterfind(f'{MATH}e')))})"
    return "".join(map(_formula, element))
