"""Convert Rich Text Format."""

import re

from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Converted, notes_of
from local_rag.reading.decode import clean
from local_rag.reading.provenance import make_provenance

_CODE_PAGE = re.compile(r"\\ansicpg(\d{3,5})\b")
_PICTURE = re.compile(r"\\pict\b")
# striprtf passes over these groups, which are text.
_BESIDE_THE_TEXT = re.compile(r"(?:\\\*)?\\(?:footnote|annotation|header[lrf]?|footer[lrf]?)\b")
_INFORMATION = r"\{\\%s ([^{}\\]{1,500})\}"


def convert_rtf(data: bytes) -> Converted:
    """Convert a document of a word processor."""
    from striprtf.striprtf import rtf_to_text

    source = data.decode("latin-1").lstrip()  # characters beyond ASCII are escaped
    if not source.startswith("{\\rtf"):
        raise ReadError("not a file in Rich Text Format")
    page = _CODE_PAGE.search(source, 0, 4096)
    text = rtf_to_text(
        _BESIDE_THE_TEXT.sub("", source), encoding=f"cp{page[1]}" if page else "cp1252", errors="replace"
    )
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # emoji are escaped as two halves
    title, author = (re.search(_INFORMATION % name, source[:20_000]) for name in ("title", "author"))
    return Converted(
        title[1] if title else None,
        clean(text).strip(),
        "text",
        notes=notes_of({"image*": len(_PICTURE.findall(source))}),
        provenance=make_provenance(author=author[1] if author else None),
    )
