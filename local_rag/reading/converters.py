"""Convert HTML, PDF, Office files, books, mail and tables to text: one function per format."""

import contextlib
import csv
import email
import email.policy
import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from local_rag.errors import ReadError
from local_rag.reading.decode import clean, decode
from local_rag.reading.provenance import make_provenance, office_provenance, pdf_provenance, web_provenance
from local_rag.records import UNKNOWN, DocumentKind, Provenance

if TYPE_CHECKING:
    from markitdown import DocumentConverter

MAX_EXPANDED_BYTES = 500 * 1000 * 1000
MAX_EXPANSION = 200
_MAX_HEADER = 2000  # characters
_MAIL_HEADERS = ("From", "To", "Cc", "Date", "Subject")

_IMAGE = re.compile(r"!\[([^\]\n]*)\]\([^)\n]*\)")
_WRAPPED_LINE = re.compile(r"(?<=[a-z,;])\n(?=[a-z(])")
_FILE_TITLE = re.compile(r"untitled.*|microsoft \w+ - .*|.*\.(?:docx?|pptx?|xlsx?|pdf|tex|dvi|indd|qxd)", re.IGNORECASE)
# A search engine takes escapes for text, so snake_case must not become snake\_case.
_NO_ESCAPES = {"escape_underscores": False, "escape_asterisks": False, "escape_misc": False}


@dataclass(frozen=True, slots=True)
class Converted:
    """The result of a converter; `title` is None if the file has none, other fields as in Document."""

    title: str | None
    text: str
    kind: DocumentKind
    pages: tuple[int, ...] = ()
    note: str = ""
    provenance: Provenance = UNKNOWN


def check_archive(data: bytes) -> None:
    """Raise ReadError if the data is not a zip archive or expands enough to fill the memory."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            expanded = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        old = data.startswith(b"\xd0\xcf\x11\xe0")
        raise ReadError("encrypted, or in an Office format from before 2007" if old else "damaged file") from error
    if expanded > MAX_EXPANDED_BYTES or expanded > MAX_EXPANSION * len(data):
        raise ReadError(f"expands to {expanded / 1e6:.0f} MB, probably a zip bomb")


def convert_html(data: bytes) -> Converted:
    """Convert the element that the page marks as its main content; without one, let trafilatura find it."""
    from bs4 import BeautifulSoup
    from markitdown.converters import HtmlConverter

    page = BeautifulSoup(data, "lxml")
    title = page.title.get_text() if page.title else None
    provenance = web_provenance(page)
    for noise in page.select("script, style, noscript, template, nav, a.headerlink"):
        noise.decompose()
    articles = page.find_all("article")
    main = page.select_one("main, [role=main]") or (articles[0] if len(articles) == 1 else None)
    if main is None:
        text = _extract_main_content(str(page))
        # trafilatura reduces short pages to bare lines. The whole page without header and footer is better then.
        if re.search(r"^#", text, re.MULTILINE) or (text and not page.select("h1, h2, h3")):
            return Converted(title=title, text=clean(text), kind="markdown", provenance=provenance)
        main = page.body or page
        for noise in main.select("header:not(:has(h1)), footer, aside"):
            noise.decompose()
    markdown = HtmlConverter().convert_string(str(main), strip=["a"], **_NO_ESCAPES).markdown
    return Converted(title=title, text=clean(_IMAGE.sub(r"\1", markdown)), kind="markdown", provenance=provenance)


def _extract_main_content(page: str) -> str:
    import trafilatura

    return trafilatura.extract(page, output_format="markdown", favor_recall=True, include_comments=False) or ""


def convert_pdf(data: bytes) -> Converted:
    """Join the pages' text with blank lines; rejoin words and sentences that a line break cut."""
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        raise ReadError("encrypted PDF" if "password" in str(error).lower() else "damaged PDF file") from error
    try:
        texts = [clean(page.get_textpage().get_text_range()) for page in pdf]
        named = pdf.get_metadata_dict()
    finally:
        pdf.close()
    if not any(text.strip() for text in texts):
        raise ReadError("no text layer; run OCR first")
    title = named.get("Title", "").strip()
    if not title or _FILE_TITLE.fullmatch(title):
        title = next(line for text in texts for line in text.split("\n") if line.strip())[:120]
    texts = [_rejoin_lines(text) for text in texts]
    pages = []
    start = 0
    for text in texts:
        pages.append(start)
        start += len(text) + len("\n\n")
    empty = sum(not text.strip() for text in texts)
    note = f"{empty} of {len(texts)} pages contain no text; run OCR on them" if empty else ""
    provenance = pdf_provenance(named)
    return Converted(title, "\n\n".join(texts), "text", pages=tuple(pages), note=note, provenance=provenance)


def _rejoin_lines(text: str) -> str:
    # PDFium marks a hyphen at the end of a line with U+FFFE and drops the line break.
    text = re.sub(r"(?<=[a-z])\ufffe(?=[a-z])", "", text).replace("\ufffe", "-")
    return _WRAPPED_LINE.sub(" ", text)


def convert_pptx(data: bytes) -> Converted:
    """Count each slide as a page; replace MarkItDown's comments with slide numbers by blanks."""
    from markitdown.converters import PptxConverter

    text = _markitdown(PptxConverter(), data)
    pages: list[int] = []
    start = 0
    while (start := text.find(comment := f"<!-- Slide number: {len(pages) + 1} -->", start)) >= 0:
        pages.append(start)
        text = text[:start] + " " * len(comment) + text[start + len(comment) :]
    return Converted(None, text, "markdown", pages=tuple(pages), provenance=office_provenance(data))


def convert_docx(data: bytes) -> Converted:
    """Convert a Word document; its title becomes the first heading."""
    from markitdown.converters import DocxConverter

    text = _markitdown(DocxConverter(), data, style_map="p[style-name='Title'] => h1:fresh")
    return Converted(None, text, "markdown", provenance=office_provenance(data))


def convert_epub(data: bytes) -> Converted:
    """Convert a book."""
    from markitdown.converters import EpubConverter

    text = _markitdown(EpubConverter(), data)
    # MarkItDown puts the book's metadata above the text, in lines such as `**Title:** The Sea`.
    named = dict(re.findall(r"^\*\*(Title|Authors|Date):\*\* (.*)$", text[:4000], re.MULTILINE))
    provenance = make_provenance(date=named.get("Date"), author=named.get("Authors"))
    return Converted(title=named.get("Title"), text=text, kind="markdown", provenance=provenance)


def convert_mail(data: bytes) -> Converted:
    """Put sender, recipients, date and subject above the text, and the names of attachments below it."""
    mail = email.message_from_bytes(data, policy=email.policy.default)
    # Cut headers, because the time to parse one grows with the square of its length.
    raw = {name.title(): str(value)[:_MAX_HEADER] for name, value in reversed(list(mail.raw_items()))}
    head = {
        name: " ".join(str(mail.policy.header_fetch_parse(name, raw[name])).split())
        for name in _MAIL_HEADERS
        if name in raw
    }
    if not head:
        raise ReadError("not a mail: no sender, recipient, date or subject")
    body = mail.get_body(("plain", "html"))
    content = (cast(bytes, body.get_payload(decode=True)) or b"") if body else b""
    kind: DocumentKind = "text"
    if body and body.get_content_type() == "text/html":
        text, kind = convert_html(content).text, "markdown"
    else:
        text = _decode_as(content, body.get_content_charset("") if body else "")
    attached = [name for part in mail.iter_attachments() if (name := part.get_filename())]
    foot = [f"Attachments: {', '.join(attached)}"] if attached else []
    top = "\n".join(f"{name}: {value}" for name, value in head.items())
    provenance = make_provenance(date=head.get("Date"), author=head.get("From"))
    text = clean("\n\n".join([top, text.strip(), *foot]))
    return Converted(head.get("Subject") or None, text, kind, provenance=provenance)


def _decode_as(data: bytes, encoding: str) -> str:
    """Decode with the mail's encoding, else with the usual ones; a short text is not enough to detect one."""
    for name in (encoding, "utf-8"):
        with contextlib.suppress(LookupError, UnicodeError):
            return data.decode(name)
    return data.decode("cp1252", errors="replace")


def convert_notebook(data: bytes) -> Converted:
    """Convert a Jupyter notebook."""
    from markitdown.converters import IpynbConverter

    return Converted(title=None, text=_markitdown(IpynbConverter(), data), kind="markdown")


def _markitdown(converter: "DocumentConverter", data: bytes, **options: str) -> str:
    """Run one of MarkItDown's converters directly: it guesses nothing, loads no plugin and downloads nothing."""
    from markitdown import StreamInfo

    result = converter.convert(io.BytesIO(data), StreamInfo(charset="utf-8"), **_NO_ESCAPES, **options)
    return clean(_IMAGE.sub(r"\1", result.markdown))


def convert_xlsx(data: bytes) -> Converted:
    """Write each sheet as a section and each row as a line that names its columns."""
    import openpyxl  # type: ignore[import-untyped]

    workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    sections = []
    for sheet in workbook.worksheets:
        sheet.reset_dimensions()  # a sheet may claim all of Excel's million rows
        lines = list(_lines_of_table([_cell(value) for value in row] for row in sheet.iter_rows(values_only=True)))
        if lines:
            sections.append("\n".join([f"## {_cell(sheet.title)}", "", *lines]))
    workbook.close()
    text = clean("\n\n".join(sections))
    return Converted(None, text, "markdown", provenance=office_provenance(data))


def convert_csv(data: bytes) -> Converted:
    """Write each row of a table as a line that names its columns."""
    text = decode(data)
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(text[: 64 * 1024], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel_tab if text.count("\t") > text.count(",") else csv.excel
    rows = ([_cell(value) for value in row] for row in csv.reader(io.StringIO(text, newline=""), dialect))
    return Converted(title=None, text="\n".join(_lines_of_table(rows)), kind="text")


def _lines_of_table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Write a table with rows that can be understood alone: `Row 2: Name: Ada; Born: 1815`.

    The first row with two cells names the columns, unless one of them is a number. Rows above it are captions.
    """
    columns: Sequence[str] | None = None
    for number, row in enumerate(rows, start=1):
        filled = [cell for cell in row if cell]
        if columns is None:
            if len(filled) > 1:
                columns = () if any(re.fullmatch(r"[-+]?[\d.,]+%?", cell) for cell in filled) else row
                if columns:
                    yield f"Columns: {'; '.join(filled)}"
                    continue
            elif filled:
                yield filled[0]
                continue
        if filled:
            names = [*(columns or ()), *[""] * len(row)]
            cells = [f"{name}: {cell}" if name else cell for name, cell in zip(names, row, strict=False) if cell]
            yield f"Row {number}: {'; '.join(cells)}"


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return re.sub(r" 00:00:00$", "", " ".join(str(value).split()))
