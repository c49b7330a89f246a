"""Write small Word documents from raw XML, with styles and numbering of their own."""

from collections.abc import Mapping

from tests.support.office_files import archive

_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
_NAMESPACES = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    f'xmlns:r="{_OFFICE}/relationships" xmlns:m="{_OFFICE}/math" xmlns:v="urn:schemas-microsoft-com:vml" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape"'
)
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"


def run(text: str, properties: str = "") -> str:
    """Return a run of characters."""
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(inner: str, properties: str = "") -> str:
    """Return a paragraph of runs, or of plain text."""
    return f"<w:p><w:pPr>{properties}</w:pPr>{inner if inner.startswith('<') else run(inner)}</w:p>"


def item(text: str, number: int, level: int = 0) -> str:
    """Return a paragraph of a list."""
    place = f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'
    return paragraph(text, place)


def level(number: int, text: str, numeral: str = "decimal", more: str = "") -> str:
    """Return a level of a list's definition."""
    return (
        f'<w:lvl w:ilvl="{number}"><w:start w:val="1"/><w:numFmt w:val="{numeral}"/><w:lvlText w:val="{text}"/>{more}'
        "</w:lvl>"
    )


def lists(*definitions: str, more: str = "") -> str:
    """Return numbering: the lists 1, 2, ... with these levels, and further elements."""
    abstracts = "".join(
        f'<w:abstractNum w:abstractNumId="{at}">{levels}</w:abstractNum>' for at, levels in enumerate(definitions, 1)
    )
    numbers = "".join(
        f'<w:num w:numId="{at}"><w:abstractNumId w:val="{at}"/></w:num>' for at in range(1, len(definitions) + 1)
    )
    return abstracts + numbers + more


def sign(kind: str) -> str:
    """Return the sign of the only note of a kind: footnote, endnote or comment."""
    return f'<w:r><w:{kind}Reference w:id="5"/></w:r>'


def word_file(
    body: str,
    *,
    styles: str = "",
    numbering: str = "",
    main: str = "word/document.xml",
    kind: str = f"{_WORD}.document.main+xml",
    chunks: Mapping[str, str] | None = None,
    notes: Mapping[str, str] | None = None,
) -> bytes:
    """Return a document; `chunks` are files of other formats by name, with the ids c0, c1, ...

    `notes` are the paragraphs of notes by their kind: footnote, endnote or comment. Each is the only one of its kind.
    """
    parts = {"styles": f"<w:styles {_NAMESPACES}>{styles}</w:styles>"}
    if numbering:
        parts["numbering"] = f"<w:numbering {_NAMESPACES}>{numbering}</w:numbering>"
    for of, inner in (notes or {}).items():
        parts[f"{of}s"] = f'<w:{of}s {_NAMESPACES}><w:{of} w:id="5" w:initials="AL">{inner}</w:{of}></w:{of}s>'
    folder, _, name = main.rpartition("/")
    related = [
        f'<Relationship Id="{part}" Type="{_OFFICE}/relationships/{part}" Target="{part}.xml"/>' for part in parts
    ]
    related += [
        f'<Relationship Id="c{at}" Type="{_OFFICE}/relationships/aFChunk" Target="{file}"/>'
        for at, file in enumerate(chunks or {})
    ]
    overrides = "".join(
        f'<Override PartName="/{folder}/{part}.xml" ContentType="{_WORD}.{part}+xml"/>' for part in parts
    )
    return archive(
        {
            "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
            'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/{main}" ContentType="{kind}"/>{overrides}</Types>',
            "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="d" '
            f'Type="{_OFFICE}/relationships/officeDocument" Target="{main}"/></Relationships>',
            f"{folder}/_rels/{name}.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{"".join(related)}'
            "</Relationships>",
            main: f"<w:document {_NAMESPACES}><w:body>{body}</w:body></w:document>",
            **{f"{folder}/{part}.xml": text for part, text in parts.items()},
            **{f"{folder}/{file}": text for file, text in (chunks or {}).items()},
        }
    )
