"""Read the cards of an address book (.vcf): who, where, and how to reach them."""

import re
from collections.abc import Iterator, Sequence

from local_rag.reading.converters.content_lines import ContentLine, content_lines, unescaped
from local_rag.reading.converters.converted import Converted, Sections
from local_rag.reading.decode import decode_with_notes

_LABELS = {
    "NICKNAME": "Nickname", "ORG": "Organisation", "TITLE": "Title", "ROLE": "Role", "TEL": "Phone", "EMAIL": "Email",
    "ADR": "Address", "BDAY": "Birthday", "ANNIVERSARY": "Anniversary", "URL": "Web", "IMPP": "Chat",
    "CATEGORIES": "Categories", "RELATED": "Related", "NOTE": "Note",
}  # fmt: skip
_KINDS = {
    "work": "work", "home": "home", "cell": "mobile", "mobile": "mobile", "fax": "fax", "pager": "pager",
    "main": "main", "text": "text",
}  # fmt: skip
_PART = re.compile(r"(?<!\\);")
_DAY = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)")


def convert_contacts(data: bytes) -> Converted:
    """Convert an address book: each card is a section below its name; a file without cards is text."""
    text, notes = decode_with_notes(data)
    sections, names = Sections(), list[str]()
    for lines in _cards(text):
        name = _name(lines)
        names.append(name)
        # The card names itself once more, as a line of it may be quoted without its heading.
        sections.add_named(name, "\n".join([f"Contact: {name}", *_written(lines)]))
    if not names:
        return Converted(None, text, "text", notes=notes)
    return sections.converted(names[0] if len(names) == 1 else None, notes=notes)


def _cards(text: str) -> Iterator[list[ContentLine]]:
    card: list[ContentLine] | None = None
    for line in content_lines(text):
        match line[0], line[2].strip().upper():
            case "BEGIN", "VCARD":
                card = []
            case "END", "VCARD":
                if card:
                    yield card
                card = None
            case _ if card is not None:
                card.append(line)
    if card:
        yield card


def _name(lines: Sequence[ContentLine]) -> str:
    """Return the name of a card as it is shown, or made of its parts, or that of its organisation."""
    said = {name: value for name, _, value in reversed(lines)}
    family, given, *_ = [*_parts(said.get("N", "")), "", ""]
    names = said.get("FN", ""), f"{given} {family}", said.get("ORG", ""), said.get("EMAIL", ""), said.get("TEL", "")
    return next(filter(None, (" ".join(unescaped(name).replace(";", ", ").split()) for name in names)), "Contact")


def _written(lines: Sequence[ContentLine]) -> Iterator[str]:
    for name, parameters, value in lines:
        if name in _LABELS and (said := _value(name, value)):
            types = (one.strip().lower() for one in parameters.get("TYPE", "").split(","))
            kinds = ", ".join(dict.fromkeys(_KINDS[one] for one in types if one in _KINDS))
            yield f"{_LABELS[name]}{f' ({kinds})' if kinds else ''}: {said}"


def _value(name: str, value: str) -> str:
    if name in {"ORG", "ADR"}:
        return ", ".join(filter(None, _parts(value)))
    if name in {"BDAY", "ANNIVERSARY"} and (day := _DAY.match(value.strip())):
        return "-".join(day.groups())
    return re.sub(r"(?i)^(?:tel|mailto):", "", unescaped(value).strip())


def _parts(value: str) -> list[str]:
    return [" ".join(unescaped(part).split()) for part in _PART.split(value)]
