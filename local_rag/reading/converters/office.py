"""Convert Word and PowerPoint files."""

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from local_rag.reading.converters.converted import Converted, notes_of
from local_rag.reading.converters.markup import parse_html, to_markdown
from local_rag.reading.converters.xml_parts import parse_xml
from local_rag.reading.decode import clean
from local_rag.reading.provenance import office_provenance

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_STYLES = "p[style-name='Title'] => h1:fresh\ncomment-reference => sup"
_FORMULAS = {
    "f": "{num}/{den}",
    "sSup": "{e}^{sup}",
    "sSub": "{e}_{sub}",
    "sSubSup": "{e}_{sub}^{sup}",
    "rad": "sqrt {e}",
}
_FRAME = re.compile(r"word/(header|footer)\d*\.xml")


def convert_docx(data: bytes) -> Converted:
    """Convert a Word document; its title becomes the first heading, page headers and footers stand around the text."""
    import mammoth

    frames, left_out = _word_parts(data)

    def describe(image: Any) -> dict[str, str]:
        left_out["image* without a description"] += not (image.alt_text or "").strip()
        return {"src": ""}

    prepared = io.BytesIO(_with_formulas(data))
    result = mammoth.convert_to_html(
        prepared, style_map=_STYLES, convert_image=mammoth.images.img_element(describe), external_file_access=False
    )
    page = parse_html(f"<body>{result.value}</body>")
    text = to_markdown(page.body or page)
    text = clean("\n\n".join(filter(None, ["\n".join(frames["header"]), text, "\n".join(frames["footer"])])))
    return Converted(None, text, "markdown", notes=notes_of(left_out), provenance=office_provenance(data))


def _word_parts(data: bytes) -> tuple[dict[str, list[str]], Counter[str]]:
    """Return the different lines of page headers and footers, and how many parts are not read."""
    frames: dict[str, dict[str, None]] = {"header": {}, "footer": {}}  # ordered sets
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        for name in sorted(filter(_FRAME.fullmatch, names)):
            lines = frames["header" if "header" in name else "footer"]
            for paragraph in parse_xml(archive.read(name)).iter(f"{_WORD}p"):
                line = "".join(one.text or " " for one in paragraph.iter(f"{_WORD}t", f"{_WORD}tab", f"{_WORD}br"))
                if any(map(str.isalpha, line)):  # not the number of a page
                    lines[" ".join(line.split())] = None
    left_out = Counter(
        {
            "chart*": sum(bool(re.fullmatch(r"word/charts/chart\d*\.xml", name)) for name in names),
            "diagram*": sum(bool(re.fullmatch(r"word/diagrams/data\d*\.xml", name)) for name in names),
            "embedded file*": sum(name.startswith("word/embeddings/") for name in names),
        }
    )
    left_out["embedded file*"] = max(0, left_out["embedded file*"] - left_out["chart*"])  # each chart embeds its sheet
    return {kind: list(lines) for kind, lines in frames.items()}, left_out


def _with_formulas(data: bytes) -> bytes:
    """Write formulas as text, which Mammoth would drop."""
    source = zipfile.ZipFile(io.BytesIO(data))
    document = source.read("word/document.xml")
    if b":oMath" not in document:
        return data
    root = parse_xml(document)
    for formula in list(root.iter(f"{_MATH}oMath")):
        parent = formula.getparent()
        run = parent.makeelement(f"{_WORD}r")
        text = run.makeelement(f"{_WORD}t")
        text.text = f" {_formula(formula)} "
        run.append(text)
        run.tail = formula.tail
        if parent.tag == f"{_MATH}oMathPara":  # Mammoth reads only runs directly in a paragraph
            parent.addprevious(run)
        else:
            parent.replace(formula, run)
    return _replaced(source, "word/document.xml", root)


def _replaced(source: zipfile.ZipFile, name: str, root: Any) -> bytes:
    from lxml import etree

    copy = io.BytesIO()
    with zipfile.ZipFile(copy, "w") as archive:
        for member in source.infolist():
            archive.writestr(member.filename, etree.tostring(root) if member.filename == name else source.read(member))
    return copy.getvalue()


def _formula(element: Any) -> str:
    """Write a formula on one line: `(a+b)/c`, `x^2`, `sqrt y`."""

    def part(name: str) -> str:
        found = element.find(f"{_MATH}{name}")
        text = _formula(found) if found is not None else ""
        return text if len(text) < 2 or text.isalnum() else f"({text})"  # noqa: PLR2004  one sign needs no brackets

    name = element.tag.removeprefix(_MATH)
    if name == "t":
        return element.text or ""
    if name in _FORMULAS:
        return _FORMULAS[name].format_map({one: part(one) for one in ("num", "den", "e", "sub", "sup")})
    text = "".join(map(_formula, element))
    return f"({text})" if name == "d" else text


def convert_pptx(data: bytes) -> Converted:
    """Convert slides with their tables, charts and notes; each slide counts as a page."""
    from pptx import Presentation

    left_out = Counter[str]()
    slides = []
    for slide in Presentation(io.BytesIO(data)).slides:
        blocks = list(_shapes(slide.shapes, slide.shapes.title, left_out))
        frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        if frame is not None and frame.text.strip():
            blocks.append(f"### Notes:\n{frame.text}")
        slides.append(clean("\n\n".join(filter(str.strip, blocks))))
    pages, start = list[int](), 0
    for text in slides:
        pages.append(start)
        start += len(text) + len("\n\n")
    provenance = office_provenance(data)
    text = "\n\n".join(slides)
    return Converted(None, text, "markdown", pages=tuple(pages), notes=notes_of(left_out), provenance=provenance)


def _shapes(shapes: Iterable[Any], title: Any, left_out: Counter[str]) -> Iterator[str]:
    """Yield the texts of shapes from top to bottom."""
    from pptx.enum.shapes import MSO_SHAPE_TYPE

    def place(shape: Any) -> tuple[int, int]:
        return (-1 if shape.top is None else shape.top, -1 if shape.left is None else shape.left)

    for shape in sorted(shapes, key=place):
        if shape.shape_type == MSO_SHAPE_TYPE.GROUP:
            yield from _shapes(shape.shapes, title, left_out)
        elif getattr(shape, "has_table", False):
            yield _table([[cell.text for cell in row.cells] for row in shape.table.rows])
        elif getattr(shape, "has_chart", False):
            yield _chart(shape.chart)
        elif getattr(shape, "has_text_frame", False):
            text = shape.text_frame.text.replace("\v", "\n").strip("\n")
            is_title = title is not None and shape.shape_id == title.shape_id
            yield f"# {' '.join(text.split())}" if is_title and text.strip() else text
        elif texts := _diagram(shape):
            yield "\n".join(texts)
        elif described := _description(shape):
            yield described
        elif shape.shape_type != MSO_SHAPE_TYPE.LINE:
            left_out["image* without a description"] += 1


def _description(shape: Any) -> str:
    return str(next((one.get("descr", "") for one in shape._element.iter("{*}cNvPr")), "")).strip()


def _diagram(shape: Any) -> list[str]:
    """Return the texts of a SmartArt diagram."""
    ids = next(iter(shape._element.iter("{*}relIds")), None)
    data = next((value for name, value in (ids.attrib if ids is not None else {}).items() if name.endswith("}dm")), "")
    if not data:
        return []
    paragraphs = parse_xml(shape.part.related_part(data).blob).iter("{*}p")
    texts = ("".join(one.text or "" for one in paragraph.iter("{*}t")) for paragraph in paragraphs)
    return [text for text in texts if text.strip()]


def _table(rows: list[list[str]]) -> str:
    """Write a table as Markdown; its first row is the header."""
    cells = [
        "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
        for tag, row in zip(["th", *["td"] * len(rows)], rows, strict=False)
    ]
    page = parse_html(f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>")
    return to_markdown(page.body or page)


def _chart(chart: Any) -> str:
    """Write the values of a chart as a table."""
    title = chart.chart_title.text_frame.text if chart.has_title and chart.chart_title.has_text_frame else ""
    plot = next(iter(chart.plots), None)
    categories = [str(category) for category in plot.categories] if plot is not None else []
    series = [(str(one.name or ""), list(one.values)) for one in chart.series]
    rows = [["", *(name for name, _ in series)]]
    for number in range(max([len(categories), *(len(values) for _, values in series)], default=0)):
        name = categories[number] if number < len(categories) else str(number + 1)
        values = ("" if number >= len(some) or some[number] is None else str(some[number]) for _, some in series)
        rows.append([name, *values])
    return "\n\n".join(
        filter(None, [f"### Chart: {' '.join(title.split())}" if title.strip() else "### Chart", _table(rows)])
    )
