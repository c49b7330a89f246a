"""Open a Word document, whatever its parts are called, and pack again what Mammoth reads of it."""

import io
import re
import zipfile
from typing import Any

from local_rag.reading.converters.converted import parse_xml, related_parts

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
