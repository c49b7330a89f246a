"""Parse the XML inside of documents without entities, files and addresses from outside."""

from typing import Any


def parse_xml(data: bytes) -> Any:
    """Parse XML and return its root; raise an exception of lxml for damaged XML."""
    from lxml import etree

    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True)
    return etree.fromstring(data, parser)


def text_of(element: Any) -> str:
    """Return all text within an element on one line."""
    return " ".join("".join(element.itertext()).split())
