"""Write a checked text as a Word file: a footnote for each supported statement, a comment for each other claim."""

import io
import re
import zipfile
from collections.abc import Iterator
from xml.sax.saxutils import escape

from local_rag.display import Name, display_path, one_line, xml_text
from local_rag.verification.report import headline, quoted, said_of, where
from local_rag.verification.verdicts import VERDICTS, Checked, Verification

_NAMESPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml"
_PARTS = ("document", "footnotes", "comments", "styles")
_LINE = re.compile(r"(?P<heading>#{1,6})\s+|\s{0,40}(?P<item>[-*+\u2022]|\d{1,3}[.)])\s+")
_RAISED = '<w:rPr><w:vertAlign w:val="superscript"/></w:rPr>'
_MOST_LEVELS = 6
_DAY = (1980, 1, 1, 0, 0, 0)  # of the parts, so the same text gives the same file


def verification_as_word(found: Verification, name: Name = display_path) -> bytes:
    """Return a checked text as a .docx file; of its markup, headings and the lines of lists stay."""
    writer = _Writer(found, name)
    parts = {
        "[Content_Types].xml": _content_types(),
        "_rels/.rels": _relations({"officeDocument": "word/document.xml"}),
        "word/_rels/document.xml.rels": _relations({part: f"{part}.xml" for part in _PARTS[1:]}),
        "word/document.xml": _part("document", f"<w:body>{''.join(writer.paragraphs())}</w:body>"),
        "word/footnotes.xml": _part("footnotes", _SEPARATORS + "".join(writer.footnotes)),
        "word/comments.xml": _part("comments", "".join(writer.comments)),
        "word/styles.xml": _part("styles", _styles()),
    }
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, text in parts.items():
            archive.writestr(zipfile.ZipInfo(path, _DAY), text, zipfile.ZIP_DEFLATED)
    return file.getvalue()


class _Writer:
    def __init__(self, found: Verification, name: Name) -> None:
        self._found, self._name = found, name
        self.footnotes, self.comments = list[str](), list[str]()

    def paragraphs(self) -> Iterator[str]:
        """Yield the paragraphs of the text, and the counts of verdicts below it."""
        waiting, start = [one for one in self._found.statements if one.verdict != "no claim"], 0
        for first, last in _paragraph_spans(self._found.text):
            inside = [one for one in waiting if start <= one.start < last]
            waiting = [one for one in waiting if one.start >= last]
            yield self._paragraph(first, last, inside)
            start = last
        yield f"<w:p>{_run(headline(self._found))}</w:p>"

    def _paragraph(self, first: int, last: int, inside: list[Checked]) -> str:
        text = self._found.text
        line = _LINE.match(text, first, last)
        style, at = "", first
        if line and line["heading"]:
            style, at = f'<w:pPr><w:pStyle w:val="Heading{len(line["heading"])}"/></w:pPr>', line.end()
        runs = list[str]()
        for one in inside:
            begin, end = max(at, one.start), min(one.end, last)
            runs.append(_run(text[at:begin]))
            runs.append(self._noted(one, _run(text[begin:end])))
            at = max(at, end)
        return f"<w:p>{style}{''.join(runs)}{_run(text[at:last])}</w:p>"

    def _noted(self, one: Checked, run: str) -> str:
        """Return the run of a statement with its footnote or its comment."""
        quotes = [f"{quoted(each, '[{}]'.format)} ({where(each, self._name)})" for each in one.quotes]
        if one.verdict == "supported":
            number = len(self.footnotes) + 1
            self.footnotes.append(f'<w:footnote w:id="{number}"><w:p>{_run(" ".join(quotes))}</w:p></w:footnote>')
            return f'{run}<w:r>{_RAISED}<w:footnoteReference w:id="{number}"/></w:r>'
        number = len(self.comments)
        said = said_of(one, "[{}]".format) if any(each.differs for each in one.quotes) else ""
        lines = [f"{one.verdict}: {VERDICTS[one.verdict]}", *filter(None, [said]), *quotes]
        told = "".join(f"<w:p>{_run(line)}</w:p>" for line in lines)
        self.comments.append(f'<w:comment w:id="{number}" w:author="local-rag" w:initials="lr">{told}</w:comment>')
        mark = f'<w:r><w:commentReference w:id="{number}"/></w:r>'
        return f'<w:commentRangeStart w:id="{number}"/>{run}<w:commentRangeEnd w:id="{number}"/>{mark}'


def _paragraph_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of paragraphs, headings, items and rows, without the white space around them."""
    start, at = -1, 0
    for line in [*text.splitlines(keepends=True), ""]:
        begins = _LINE.match(line) or line.startswith("|")
        if start >= 0 and (begins or not line.strip() or text.startswith("#", start)):
            yield start, start + len(text[start:at].rstrip())
            start = -1
        if start < 0 and line.strip():
            start = at
        at += len(line)


def _run(text: str) -> str:
    """Return a run of text on one line; what XML does not hold is replaced."""
    if not text:
        return ""
    return f'<w:r><w:t xml:space="preserve">{escape(xml_text(one_line(text)))}</w:t></w:r>'


def _part(root: str, inside: str) -> str:
    return f'{_HEAD}<w:{root} xmlns:w="{_NAMESPACE}">{inside}</w:{root}>'


def _relations(targets: dict[str, str]) -> str:
    lines = (
        f'<Relationship Id="r{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets.items(), start=1)
    )
    return f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{"".join(lines)}</Relationships>'


def _content_types() -> str:
    kinds = {part: f"{_TYPE}.{'document.main' if part == 'document' else part}+xml" for part in _PARTS}
    overrides = "".join(f'<Override PartName="/word/{part}.xml" ContentType="{kind}"/>' for part, kind in kinds.items())
    default = '<Default Extension="{}" ContentType="{}"/>'.format
    package = default("rels", "application/vnd.openxmlformats-package.relationships+xml") + default(
        "xml", "application/xml"
    )
    return f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">{package}{overrides}</Types>'


def _styles() -> str:
    return "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{level}"><w:name w:val="heading {level}"/>'
        f'<w:pPr><w:outlineLvl w:val="{level - 1}"/></w:pPr>'
        f'<w:rPr><w:b/><w:sz w:val="{38 - 3 * level}"/></w:rPr></w:style>'
        for level in range(1, _MOST_LEVELS + 1)
    )


_SEPARATORS = (
    '<w:footnote w:type="separator" w:id="-1"><w:p><w:r><w:separator/></w:r></w:p></w:footnote>'
    '<w:footnote w:type="continuationSeparator" w:id="0"><w:p><w:r><w:continuationSeparator/></w:r></w:p></w:footnote>'
)
