"""Write small Office files, books and OpenDocument files from their parts."""

import io
import zipfile
from collections.abc import Callable, Mapping

_NAMESPACES = (
    " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{place}:1.0"'
        for name, place in {
            "office": "office",
            "text": "text",
            "table": "table",
            "draw": "drawing",
            "style": "style",
            "meta": "meta",
            "presentation": "presentation",
            "svg": "svg-compatible",
        }.items()
    )
    + ' xmlns:dc="http://purl.org/dc/elements/1.1/"'
)


def saved(save: Callable[[io.BytesIO], object]) -> bytes:
    """Return what a library saves."""
    buffer = io.BytesIO()
    save(buffer)
    return buffer.getvalue()


def archive(members: Mapping[str, str]) -> bytes:
    """Return a zip archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in members.items():
            file.writestr(name, text)
    return buffer.getvalue()


def open_document(kind: str, body: str, *, masters: str = "", meta: str = "") -> bytes:
    """Return an OpenDocument file: `kind` is text, spreadsheet or presentation."""
    content = f"<office:document-content {_NAMESPACES}><office:body><office:{kind}>{body}</office:{kind}></office:body>"
    styles = f"<office:document-styles {_NAMESPACES}><office:master-styles>{masters}</office:master-styles>"
    return archive(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": f"{content}</office:document-content>",
            "styles.xml": f"{styles}</office:document-styles>",
            "meta.xml": f"<office:document-meta {_NAMESPACES}><office:meta>{meta}</office:meta></office:document-meta>",
        }
    )


def book(chapters: Mapping[str, str], spine: str, metadata: str = "<dc:title>The Sea</dc:title>") -> bytes:
    """Return a book with chapters by name, read in the order of the spine."""
    items = "".join(f'<item id="{name}" href="{name}.xhtml"/>' for name in spine.split())
    references = "".join(f'<itemref idref="{name}"/>' for name in spine.split())
    return archive(
        {
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="x/c.opf"/></rootfiles></container>',
            "x/c.opf": '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
            f"<metadata>{metadata}</metadata><manifest>{items}</manifest><spine>{references}</spine></package>",
            **{f"x/{name}.xhtml": text for name, text in chapters.items()},
        }
    )
