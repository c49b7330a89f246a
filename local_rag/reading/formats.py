"""Convert HTML, PDF, Office files, books, mail and tables to text."""

import contextlib
import csv
import email
import email.policy
import io
import re
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from local_rag.errors import ReadError
from local_rag.reading.decode import clean, decode
from local_rag.reading.provenance import make_provenance, office_provenance, pdf_provenance, web_provenance
from local_rag.records import UNKNOWN, DocumentKind, Provenance

if TYPE_CHECKING:
    from markitdown import DocumentConverter

MAX_EXPANDED_BYTES = 500 * 1000 * 1000
MAX_EXPANSION = 200

_IMAGE = re.compile(r"!\[([^\]\n]*)\]\([^)\n]*\)")
_WRAPPED_LINE = re.compile(r"(?<=[a-z,;])\n(?=[a-z(])")
_FILE_TITLE = re.compile(r"untitled.*|microsoft \w+ - .*|.*\.(?:docx?|pptx?|xlsx?|pdf|tex|dvi|indd|qxd)", re.IGNORECASE)
# Markdown's own signs are text to a search engine: snake_case must not become snake\_case.
_NO_ESCAPES = {"escape_underscores": False, "escape_asterisks": False, "escape_misc": False}


@dataclass(frozen=True, slots=True)
class Converted:
    """What a converter makes of a file; `title` is None where it names none, the others are as in Document."""

    title: str | None
    text: str
    kind: DocumentKind
    pages: tuple[int, ...] = ()
    note: str = ""
    provenance: Provenance = UNKNOWN


def convert(suffix: str, data: bytes) -> Converted:
    """Convert a file's bytes by the file's suffix, one of CONVERTED; raise ReadError with a short reason."""
    if suffix in _ARCHIVES:
        _check_archive(data)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the parsers' notes about odd files mean nothing to the reader
            converted = CONVERTED[suffix](data)
            return replace(converted, provenance=office_provenance(data)) if suffix in _OFFICE else converted
    except (ReadError, ImportError):  # a broken installation is no fault of the file
        raise
    except MemoryError as error:
        raise ReadError("takes too much memory to read") from error
    except RecursionError as error:
        raise ReadError("is nested too deeply") from error
    except Exception as error:  # parsers of foreign files raise anything
        raise ReadError(f"damaged {suffix[1:].upper()} file ({type(error).__name__})") from error


def _check_archive(data: bytes) -> None:
    """Refuse an archive that is none, or that is made to fill the memory."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            expanded = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError) as error:
        old = data.startswith(b"\xd0\xcf\x11\xe0")
        raise ReadError("encrypted, or an Office file of before 2007" if old else "damaged file") from error
    if expanded > MAX_EXPANDED_BYTES or expanded > MAX_EXPANSION * len(data):
        raise ReadError(f"expands to {expanded / 1e6:.0f} MB, looks like a zip bomb")


def _convert_html(data: bytes) -> Converted:
    """Keep the part that the page itself marks as its main content; where it marks none, let trafilatura find it."""
    from bs4 import BeautifulSoup
    from markitdown.converters import HtmlConverter

    page = BeautifulSoup(data, "lxml")
    title = page.title.get_text() if page.title else None
    said = web_provenance(page)
    for noise in page.select("script, style, noscript, template, nav, a.headerlink"):
        noise.decompose()
    articles = page.find_all("article")
    main = page.select_one("main, [role=main]") or (articles[0] if len(articles) == 1 else None)
    if main is None:
        text = _extract_main_content(str(page))
        # It turns short pages into bare lines: then the whole page, less what is marked as its frame, serves better.
        if re.search(r"^#", text, re.MULTILINE) or (text and not page.select("h1, h2, h3")):
            return Converted(title=title, text=clean(text), kind="markdown", provenance=said)
        main = page.body or page
        for noise in main.select("header:not(:has(h1)), footer, aside"):
            noise.decompose()
    markdown = HtmlConverter().convert_string(str(main), strip=["a"], **_NO_ESCAPES).markdown
    return Converted(title=title, text=clean(_IMAGE.sub(r"\1", markdown)), kind="markdown", provenance=said)


def _extract_main_content(page: str) -> str:
    import trafilatura

    return trafilatura.extract(page, output_format="markdown", favor_recall=True, include_comments=False) or ""


def _convert_pdf(data: bytes) -> Converted:
    """Join the pages' text with blank lines, words and sentences mended where a line break cut them."""
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
    texts = [_mend_lines(text) for text in texts]
    pages = []
    start = 0
    for text in texts:
        pages.append(start)
        start += len(text) + len("\n\n")
    empty = sum(not text.strip() for text in texts)
    note = f"{empty} of {len(texts)} pages hold no text; run OCR on them" if empty else ""
    said = pdf_provenance(named)
    return Converted(title, "\n\n".join(texts), "text", pages=tuple(pages), note=note, provenance=said)


def _mend_lines(text: str) -> str:
    # PDFium marks a hyphen at the end of a line with U+FFFE and drops the line break.
    text = re.sub(r"(?<=[a-z])\ufffe(?=[a-z])", "", text).replace("\ufffe", "-")
    return _WRAPPED_LINE.sub(" ", text)


def _convert_pptx(data: bytes) -> Converted:
    """Count each slide as a page; the comments by which MarkItDown numbers them give way to blanks."""
    from markitdown.converters import PptxConverter

    text = _markitdown(PptxConverter(), data)
    pages: list[int] = []
    start = 0
    while (start := text.find(comment := f"<!-- Slide number: {len(pages) + 1} -->", start)) >= 0:
        pages.append(start)
        text = text[:start] + " " * len(comment) + text[start + len(comment) :]
    return Converted(title=None, text=text, kind="markdown", pages=tuple(pages))


def _convert_docx(data: bytes) -> Converted:
    from markitdown.converters import DocxConverter

    text = _markitdown(DocxConverter(), data, style_map="p[style-name='Title'] => h1:fresh")
    return Converted(title=None, text=text, kind="markdown")


def _convert_epub(data: bytes) -> Converted:
    from markitdown.converters import EpubConverter

    text = _markitdown(EpubConverter(), data)
    # MarkItDown writes what the book says of itself above it, in lines such as `**Title:** The Sea`.
    named = dict(re.findall(r"^\*\*(Title|Authors|Date):\*\* (.*)$", text[:4000], re.MULTILINE))
    said = make_provenance(date=named.get("Date"), author=named.get("Authors"))
    return Converted(title=named.get("Title"), text=text, kind="markdown", provenance=said)


def _convert_mail(data: bytes) -> Converted:
    """Write who wrote to whom and when above the text, the names of attachments below it."""
    mail = email.message_from_bytes(data, policy=email.policy.default)
    # Parsing a header takes time in proportion to the square of its length.
    raw = {name.title(): str(value)[:_MAX_HEADER] for name, value in reversed(list(mail.raw_items()))}
    head = {
        name: " ".join(str(mail.policy.header_fetch_parse(name, raw[name])).split())
        for name in _MAIL_HEADERS
        if name in raw
    }
    if not head:
        raise ReadError("not a mail: it has no sender, recipient, date or subject")
    body = mail.get_body(("plain", "html"))
    content = (cast(bytes, body.get_payload(decode=True)) or b"") if body else b""
    kind: DocumentKind = "text"
    if body and body.get_content_type() == "text/html":
        text, kind = _convert_html(content).text, "markdown"
    else:
        text = _decode_as(content, body.get_content_charset("") if body else "")
    attached = [name for part in mail.iter_attachments() if (name := part.get_filename())]
    foot = [f"Attachments: {', '.join(attached)}"] if attached else []
    top = "\n".join(f"{name}: {value}" for name, value in head.items())
    said = make_provenance(date=head.get("Date"), author=head.get("From"))
    text = clean("\n\n".join([top, text.strip(), *foot]))
    return Converted(head.get("Subject") or None, text, kind, provenance=said)


def _decode_as(data: bytes, encoding: str) -> str:
    """Decode as the mail says, or where that is not so, as most mails are; a short text says too little to guess."""
    for name in (encoding, "utf-8"):
        with contextlib.suppress(LookupError, UnicodeError):
            return data.decode(name)
    return data.decode("cp1252", errors="replace")


def _convert_notebook(data: bytes) -> Converted:
    from markitdown.converters import IpynbConverter

    return Converted(title=None, text=_markitdown(IpynbConverter(), data), kind="markdown")


def _markitdown(converter: "DocumentConverter", data: bytes, **options: str) -> str:
    """Run one of MarkItDown's converters by itself: nothing is guessed, no plugin is loaded, nothing is fetched."""
    from markitdown import StreamInfo

    result = converter.convert(io.BytesIO(data), StreamInfo(charset="utf-8"), **_NO_ESCAPES, **options)
    return clean(_IMAGE.sub(r"\1", result.markdown))


def _convert_xlsx(data: bytes) -> Converted:
    """Write each sheet as a section, each row as a line that names its columns."""
    import openpyxl  # type: ignore[import-untyped]

    workbook = openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=True)
    sections = []
    for sheet in workbook.worksheets:
        sheet.reset_dimensions()  # the size that a sheet claims may be all of Excel's million rows
        lines = list(_lines_of_table([_cell(value) for value in row] for row in sheet.iter_rows(values_only=True)))
        if lines:
            sections.append("\n".join([f"## {_cell(sheet.title)}", "", *lines]))
    workbook.close()
    return Converted(title=None, text=clean("\n\n".join(sections)), kind="markdown")


def _convert_csv(data: bytes) -> Converted:
    text = decode(data)
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(text[: 64 * 1024], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel_tab if text.count("\t") > text.count(",") else csv.excel
    rows = ([_cell(value) for value in row] for row in csv.reader(io.StringIO(text, newline=""), dialect))
    return Converted(title=None, text="\n".join(_lines_of_table(rows)), kind="text")


def _lines_of_table(rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Write a table so that each row can be understood by itself: `Row 2: Name: Ada; Born: 1815`.

    The first row with two cells names the columns, unless one of them is a number; rows above it are taken as captions.
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


CONVERTED: dict[str, Callable[[bytes], Converted]] = {
    ".csv": _convert_csv,
    ".docx": _convert_docx,
    ".eml": _convert_mail,
    ".epub": _convert_epub,
    ".htm": _convert_html,
    ".html": _convert_html,
    ".ipynb": _convert_notebook,
    ".pdf": _convert_pdf,
    ".pptx": _convert_pptx,
    ".tsv": _convert_csv,
    ".xhtml": _convert_html,
    ".xlsx": _convert_xlsx,
}
_MAX_HEADER = 2000  # characters
_MAIL_HEADERS = ("From", "To", "Cc", "Date", "Subject")
_OFFICE = {".docx", ".pptx", ".xlsx"}
_ARCHIVES = {".epub", *_OFFICE}
