"""A contract and its next version, as documents."""

from pathlib import Path

from local_rag.digests.statements import DocumentText, text_of_file
from local_rag.reading.read import as_document

OLD = """# Service agreement

Between Lamp Works Ltd and Harbour Lights Inc.

## 1. Term

The agreement begins on 1 March 2024. The notice period is three months. Either party may terminate it in writing.

## 2. Fees

The monthly fee is EUR 4,500. Invoices are paid within 30 days.

| Item | Price |
| --- | --- |
| Lamp | 12.50 EUR |
| Bulb | 3 EUR |

## 3. Contact

Anna Berg is the contact of the supplier. Complaints are answered within two days. She reports to the board.

## 4. Liability

The supplier is liable for damage. Liability is limited to EUR 100,000 per year. This does not apply to intent.
"""
_REPLACED = {
    "three months": "six months",
    "4,500": "4,900",
    "Anna Berg": "Jonas Vik",
    " She reports to the board.": "",
    "1 March 2024": "1 April 2024",
    "| 3 EUR": "| 4 EUR",
    "may terminate": "shall terminate",
}


def newer(text: str = OLD) -> str:
    """Return the next version: values changed, a sentence removed, the last section moved up."""
    for before, after in _REPLACED.items():
        text = text.replace(before, after)
    start, fees, last = text.index("## 1."), text.index("## 2."), text.index("## 4.")
    moved = text[last:].replace("## 4.", "## 2.")
    rest = text[fees:last].replace("## 3.", "## 4.").replace("## 2.", "## 3.")
    return f"{text[:start]}{text[start:fees]}{moved}\n{rest}"


def document(text: str, name: str = "agreement.md") -> DocumentText:
    return text_of_file(as_document(Path(name), text))
