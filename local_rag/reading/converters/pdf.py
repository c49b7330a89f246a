"""Convert PDF files."""

import re

from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Converted
from local_rag.reading.decode import clean
from local_rag.reading.provenance import pdf_provenance

_WRAPPED_LINE = re.compile(r"(?<=[a-z,;])\n(?=[a-z(])")
_FILE_TITLE = re.compile(r"untitled.*|microsoft \w+ - .*|.*\.(?:docx?|pptx?|xlsx?|pdf|tex|dvi|indd|qxd)", re.IGNORECASE)


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
    notes = (f"{empty} of {len(texts)} pages contain no text; run OCR on them",) if empty else ()
    provenance = pdf_provenance(named)
    return Converted(title, "\n\n".join(texts), "text", pages=tuple(pages), notes=notes, provenance=provenance)


def _rejoin_lines(text: str) -> str:
    # PDFium marks a hyphen at the end of a line with U+FFFE and drops the line break.
    text = re.sub(r"(?<=[a-z])\ufffe(?=[a-z])", "", text).replace("\ufffe", "-")
    return _WRAPPED_LINE.sub(" ", text)
