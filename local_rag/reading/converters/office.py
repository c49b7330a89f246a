"""Convert Office documents, books and notebooks."""

import io
import re
from typing import TYPE_CHECKING

from local_rag.reading.converters.converted import NO_ESCAPES, Converted, without_images
from local_rag.reading.decode import clean
from local_rag.reading.provenance import make_provenance, office_provenance

if TYPE_CHECKING:
    from markitdown import DocumentConverter


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


def convert_notebook(data: bytes) -> Converted:
    """Convert a Jupyter notebook."""
    from markitdown.converters import IpynbConverter

    return Converted(title=None, text=_markitdown(IpynbConverter(), data), kind="markdown")


def _markitdown(converter: "DocumentConverter", data: bytes, **options: str) -> str:
    """Run one of MarkItDown's converters directly: it guesses nothing, loads no plugin and downloads nothing."""
    from markitdown import StreamInfo

    result = converter.convert(io.BytesIO(data), StreamInfo(charset="utf-8"), **NO_ESCAPES, **options)
    return clean(without_images(result.markdown))
