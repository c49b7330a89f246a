"""Convert Word and PowerPoint files; the parts of a Word document may have any names."""

import io
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from local_rag.reading.converters.converted import (
    Attachment,
    Converted,
    join_pages,
    name_of,
    notes_of,
    parse_xml,
    related_parts,
)
from local_rag.reading.converters.html_notes import place_notes
from local_rag.reading.converters.html_pages import convert_whole_page, parse_html, to_markdown
from local_rag.reading.converters.mail import convert_web_archive
from local_rag.reading.converters.notation import numeral
from local_rag.reading.converters.number_format import show_cell
from local_rag.reading.converters.runs import Run, write_runs
from local_rag.reading.converters.word_styles import Numbering, Styles
from local_rag.reading.converters.word_text import (
    CHUNK_SIGN,
    LABEL_BEGINS,
    LABEL_ENDS,
    WordText,
    lines_of,
    numbering_part,
    remove_missing,
)
from local_rag.reading.decode import clean
from local_rag.reading.provenance import office_provenance

if TYPE_CHECKING:
    from bs4 import BeautifulSoup

_STRICT = b"http://purl.oclc.org/ooxml/"
_TRANSITIONAL = {  # the names of the two editions of the standard
    b"http://purl.oclc.org/ooxml/wordprocessingml/main": b"http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    b"http://purl.oclc.org/ooxml/officeDocument/relationships": b"http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    b"http://purl.oclc.org/ooxml/officeDocument/math": b"http://schemas.openxmlformats.org/officeDocument/2006/math",
    b"http://purl.oclc.org/ooxml/drawingml/": b"http://schemas.openxmlformats.org/drawingml/2006/",
}
_READ_BY_MAMMOTH = re.compile(r"\[Content_Types\]\.xml|.*\.rels|.*\.xml")
_LEFT_ALONE = re.compile(r"(?:.*/)?(?:theme|charts|diagrams|embeddings|media|fonts|customXml|glossary|activeX)/.*")


class WordPackage:
    """The parts of a document by name."""

    def __init__(self, data: bytes) -> None:
        self._archive = zipfile.ZipFile(io.BytesIO(data))
        self.names = self._archive.namelist()
        self._members = set(self.names)
        self._changed: dict[str, Any] = {}
        self.main = next((target for _, kind, target in self.related("") if kind == "officeDocument"), "")
        if self.main not in self._members:
            self.main = "word/document.xml"

    def related(self, name: str) -> list[tuple[str, str, str]]:
        """Return the id, the kind and the name of each part that a part refers to."""
        try:
            return related_parts(self._archive, name)
        except KeyError:
            return []

    def identities(self, name: str) -> set[str]:
        """Return the ids by which a part may refer to others, within the file or beyond it."""
        folder, _, base = name.rpartition("/")
        relations = f"{folder}/_rels/{base}.rels".lstrip("/")
        if relations not in self._members:
            return set()
        return {one.get("Id", "") for one in parse_xml(self._archive.read(relations)).iter("{*}Relationship")}

    def parts(self, kind: str) -> list[str]:
        """Return the names of the parts of a kind that the document refers to, such as `footnotes`."""
        return [name for _, of, name in self.related(self.main) if of == kind and name in self._members]

    def bytes_of(self, name: str) -> bytes:
        """Return the content of a part."""
        return self._archive.read(name)

    def root(self, name: str) -> Any:
        """Return the root of a part, in the names of the standard's transitional edition."""
        data = self._archive.read(name)
        if _STRICT in data:
            for strict, transitional in _TRANSITIONAL.items():
                data = data.replace(strict, transitional)
        return parse_xml(data)

    def replace(self, name: str, root: Any) -> None:
        """Put another root in the place of a part."""
        self._changed[name] = root

    def packed(self) -> io.BytesIO:
        """Return the document with its changes, without what Mammoth does not open."""
        from lxml import etree

        copy = io.BytesIO()
        with zipfile.ZipFile(copy, "w") as archive:
            for name in dict.fromkeys(self.names):
                if name in self._changed:
                    archive.writestr(name, etree.tostring(self._changed[name]))
                elif _READ_BY_MAMMOTH.fullmatch(name) and not _LEFT_ALONE.fullmatch(name):
                    archive.writestr(name, self._archive.read(name))
        copy.seek(0)
        return copy


_STYLES = "p[style-name='Title'] => h1:fresh\ncomment-reference => sup"
_SAYS = re.compile(r"\S")
_PAGES, _ARCHIVES = {".htm", ".html", ".xhtml"}, {".mht", ".mhtml"}

_OTHER_SLIDES = re.compile(
    rb"application/vnd\.(?:openxmlformats-officedocument\.presentationml\.(?:slideshow|template)"
    rb"|ms-powerpoint\.(?:slideshow|template)\.macroEnabled)\.main\+xml"
)
_PRESENTATION = b"application/vnd.openxmlformats-officedocument.presentationml.presentation.main+xml"
_AROUND = {"Period": "{}. ", "Plain": "{} ", "ParenR": "{}) ", "ParenBoth": "({}) ", "": "{}. "}


def convert_docx(data: bytes) -> Converted:
    """Convert a Word document; its title becomes the first heading, page headers and footers stand around the text."""
    import mammoth

    package, left_out = WordPackage(data), Counter[str]()
    frames, chunks = _prepare(package, left_out)

    def describe(image: Any) -> dict[str, str]:
        left_out["image* without a description"] += not (image.alt_text or "").strip()
        return {"src": ""}

    result = mammoth.convert_to_html(
        package.packed(),
        style_map=_STYLES,
        convert_image=mammoth.images.img_element(describe),
        external_file_access=False,
    )
    page = parse_html(f"<body>{result.value}</body>")
    place_notes(page)
    text = to_markdown(page.body or page, _labels(page))
    text = text.replace(LABEL_BEGINS, "").replace(LABEL_ENDS, " ")
    attachments, notes = list[Attachment](), list[str]()
    for number, name in enumerate(chunks):
        written = _chunk(package, name, attachments, notes)
        text = text.replace(CHUNK_SIGN.format(number), written)
    text = clean("\n\n".join(filter(None, ["\n".join(frames["header"]), text, "\n".join(frames["footer"])])))
    return Converted(
        None,
        text,
        "markdown",
        notes=(*notes, *notes_of(left_out)),
        attachments=tuple(attachments),
        provenance=office_provenance(data),
    )


def _prepare(package: WordPackage, left_out: Counter[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Prepare the parts with text; return the different lines of page headers and footers, and the names of chunks."""
    first = {kind: next(map(package.root, package.parts(kind)), None) for kind in ("styles", "numbering")}
    styles = Styles(first["styles"])
    text = WordText(styles, Numbering(first["numbering"], styles), left_out)
    notes = (name for kind in ("footnotes", "endnotes", "comments") for name in package.parts(kind))
    roots = {name: package.root(name) for name in (package.main, *notes)}
    remove_missing(roots, {name: package.identities(name) for name in roots}, left_out)
    for name, root in roots.items():
        text.prepare(root)
        package.replace(name, root)
    for name in package.parts("numbering"):
        package.replace(name, numbering_part())
    for name in package.parts("styles"):
        package.replace(name, styles.names())
    targets = {identity: name for identity, _, name in package.related(package.main)}
    chunks = [targets.get(identity, "") for identity in text.chunks]
    frames: dict[str, list[str]] = {}
    for kind in ("header", "footer"):
        lines: dict[str, None] = {}  # an ordered set
        for name in package.parts(kind):
            frame = package.root(name)
            text.prepare(frame)
            # A line without letters is the number of a page.
            lines |= dict.fromkeys(line for line in lines_of(frame) if any(map(str.isalpha, line)))
        frames[kind] = list(lines)
    charts, diagrams, embedded = (
        sum(bool(re.fullmatch(part, name)) for name in package.names)
        for part in (r".*/charts/chart\d*\.xml", r".*/diagrams/data\d*\.xml", r".*/embeddings/.*")
    )
    # Each chart embeds its sheet.
    left_out.update({"chart*": charts, "diagram*": diagrams, "embedded file*": max(0, embedded - charts)})
    return frames, chunks


def _labels(page: "BeautifulSoup") -> dict[int, str]:
    """Return the numbers that a Word document gives the items of its lists, by the id of their tag.

    An item without one only stands around others, as does one that begins with a list.
    """
    silent = (item for item in page.select("ul > li") if not item.find(string=_SAYS, recursive=False))
    labels = {id(item): "" for item in silent if (begin := item.find(True)) and begin.name in {"ol", "ul"}}
    for item in page.select("ol > li"):
        first = next(iter(item.find_all(string=True, limit=1)), None)
        label, ends, rest = (first or "").partition(LABEL_ENDS)
        if first is not None and ends and label.startswith(LABEL_BEGINS):
            labels[id(item)] = label.removeprefix(LABEL_BEGINS)
            first.replace_with(rest)
        else:
            labels[id(item)] = ""
    return labels


def _chunk(package: WordPackage, name: str, attachments: list[Attachment], notes: list[str]) -> str:
    """Return the text of a page that is a part of a document's text; attach a file of another format."""
    if name not in package.names:
        notes.append("1 part of another format is missing")
        return ""
    data, file = package.bytes_of(name), PurePosixPath(name)
    if file.suffix.lower() in _PAGES:
        page = convert_whole_page(data)
    elif file.suffix.lower() in _ARCHIVES:
        page = convert_web_archive(data)
    else:
        attachments.append(Attachment(file.name, data))
        return ""
    notes += page.notes
    return page.text


def convert_pptx(data: bytes) -> Converted:
    """Convert slides with their tables, charts and notes; each slide counts as a page.

    A presentation skips hidden slides, but whoever opens the file sees them.
    """
    from pptx import Presentation

    left_out, hidden = Counter[str](), 0
    slides = []
    for slide in Presentation(io.BytesIO(_as_presentation(data))).slides:
        hidden += slide._element.get("show") in {"0", "false"}
        blocks = list(_shapes(slide.shapes, slide.shapes.title, left_out))
        frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
        if frame is not None and frame.text.strip():
            blocks.append(f"Notes: {_said(frame)}")
        slides.append(clean("\n\n".join(filter(str.strip, blocks))))
    text, pages = join_pages(slides)
    notes = notes_of(left_out) + notes_of({"hidden slide*": hidden}, "read too")
    provenance = office_provenance(data)
    return Converted(_title(slides), text, "markdown", pages=pages, notes=notes, provenance=provenance)


def _shapes(shapes: Iterable[Any], title: Any, left_out: Counter[str]) -> Iterator[str]:
    from pptx.enum.shapes import MSO_SHAPE_TYPE

    def place(shape: Any) -> tuple[int, int]:
        return (-1 if shape.top is None else shape.top, -1 if shape.left is None else shape.left)

    for shape in sorted(shapes, key=place):
        if shape.shape_type == MSO_SHAPE_TYPE.GROUP:
            yield from _shapes(shape.shapes, title, left_out)
        elif getattr(shape, "has_table", False):
            yield _table(_cells(shape.table))
        elif getattr(shape, "has_chart", False):
            yield _chart(shape.chart)
        elif getattr(shape, "has_text_frame", False):
            text = _said(shape.text_frame).strip("\n")
            is_title = title is not None and shape.shape_id == title.shape_id
            yield f"# {' '.join(text.split())}" if is_title and text.strip() else text
        elif texts := _diagram(shape):
            yield "\n".join(texts)
        elif described := str(next((one.get("descr", "") for one in shape._element.iter("{*}cNvPr")), "")).strip():
            yield described
        elif shape.shape_type != MSO_SHAPE_TYPE.LINE:
            left_out["image* without a description"] += 1


def _as_presentation(data: bytes) -> bytes:
    """Give a slide show or a template the type of a presentation, which is all that tells them apart."""
    with zipfile.ZipFile(io.BytesIO(data)) as source:
        types = source.read("[Content_Types].xml")
        if not _OTHER_SLIDES.search(types):
            return data
        copy = io.BytesIO()
        with zipfile.ZipFile(copy, "w") as archive:
            archive.writestr("[Content_Types].xml", _OTHER_SLIDES.sub(_PRESENTATION, types))
            for name in dict.fromkeys(source.namelist()):
                if name != "[Content_Types].xml":
                    archive.writestr(name, source.read(name))
    return copy.getvalue()


def _title(slides: Sequence[str]) -> str | None:
    """Return the title of the first slide that has one, else the first line of all, which is no table or chart."""
    lines = [line for slide in slides for line in slide.split("\n") if line.strip()]
    titled = next((line.removeprefix("# ") for line in lines if line.startswith("# ")), None)
    return titled or next((line for line in lines if not line.startswith(("#", "|", "Notes: "))), None)


def _said(frame: Any) -> str:
    """Return the text of a frame, with the numbers of its lists and with what marks its runs."""
    counts: dict[int, int] = {}
    lines = []
    for paragraph in frame.paragraphs:
        written = write_runs(map(_run, paragraph._p))
        lines.append(f"{_number(paragraph, counts)}{written}" if written.strip() else written)
    return "\n".join(lines)


def _run(element: Any) -> Run:
    name = name_of(element)
    if name == "br":
        return Run("\n")
    text = "".join(one.text or "" for one in element.iter("{*}t")) if name in {"r", "fld", "m"} else ""
    properties = element.find("{*}rPr")
    marks = {} if properties is None else properties.attrib
    baseline = marks.get("baseline", "")
    raised = 0 if not baseline.strip("-0%") else -1 if baseline.startswith("-") else 1
    return Run(text, raised, marks.get("strike", "noStrike") != "noStrike")


def _number(paragraph: Any, counts: dict[int, int]) -> str:
    """Count a paragraph and return its number, such as `3. `; empty if it has none."""
    level = paragraph.level
    numbered = paragraph._p.find("{*}pPr/{*}buAutoNum")
    for below in [one for one in counts if one > level or (one == level and numbered is None)]:
        del counts[below]
    if numbered is None:
        return ""
    start = numbered.get("startAt", "1")
    counts[level] = counts[level] + 1 if level in counts else int(start) if start.isdecimal() else 1
    kind = numbered.get("type", "")[:40]
    around = next(one for one in _AROUND if kind.endswith(one))
    return _AROUND[around].format(numeral(counts[level], kind.removesuffix(around)))


def _diagram(shape: Any) -> list[str]:
    ids = next(iter(shape._element.iter("{*}relIds")), None)
    data = next((value for name, value in (ids.attrib if ids is not None else {}).items() if name.endswith("}dm")), "")
    if not data:
        return []
    paragraphs = parse_xml(shape.part.related_part(data).blob).iter("{*}p")
    texts = ("".join(one.text or "" for one in paragraph.iter("{*}t")) for paragraph in paragraphs)
    return [text for text in texts if text.strip()]


def _cells(table: Any) -> list[list[str]]:
    """Return the texts of a table of a slide, that of a merged cell in all its places."""
    texts = [[_said(cell.text_frame) for cell in row.cells] for row in table.rows]
    for down, row in enumerate(table.rows):
        for across, cell in enumerate(row.cells):
            if cell.is_merge_origin:
                covered = slice(across, across + cell.span_width)
                for line in texts[down : down + cell.span_height]:
                    line[covered] = [texts[down][across]] * len(line[covered])
    return texts


def _table(rows: list[list[str]]) -> str:
    """Write a table as Markdown; its first row is the header."""
    cells = [
        "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row)
        for tag, row in zip(["th", *["td"] * len(rows)], rows, strict=False)
    ]
    page = parse_html(f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>")
    return to_markdown(page.body or page)


def _chart(chart: Any) -> str:
    title = chart.chart_title.text_frame.text if chart.has_title and chart.chart_title.has_text_frame else ""
    plot = next(iter(chart.plots), None)
    categories = [str(category) for category in plot.categories] if plot is not None else []
    series = [(str(one.name or ""), list(one.values)) for one in chart.series]
    rows = [["", *(name for name, _ in series)]]
    by_category = zip_longest(categories, *(values for _, values in series))
    for number, (category, *values) in enumerate(by_category, start=1):
        name = str(number) if category is None else category
        rows.append([name, *("" if value is None else show_cell(value, "General") for value in values)])
    heading = f"### Chart: {' '.join(title.split())}" if title.strip() else "### Chart"
    return "\n\n".join(filter(None, [heading, _table(rows)]))
