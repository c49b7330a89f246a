"""Write small PDF files from raw objects: text at places, fields, remarks, attached files, an unknown font."""

from collections.abc import Sequence

_FONTS = (
    "<< /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> "
    "/F2 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold >> "
    "/F3 << /Type /Font /Subtype /Type0 /BaseFont /Unknown /Encoding /Identity-H /DescendantFonts [ << /Type /Font "
    "/Subtype /CIDFontType2 /BaseFont /Unknown /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) "
    "/Supplement 0 >> /FontDescriptor << /Type /FontDescriptor /FontName /Unknown /Flags 4 /FontBBox [0 0 1000 1000] "
    "/ItalicAngle 0 /Ascent 900 /Descent -200 /CapHeight 700 /StemV 80 >> /DW 600 >> ] >> >>"
)


def at(left: float, bottom: float, text: str, size: float = 11, font: str = "F1") -> str:
    """Return the operators that draw a text; in the font F3 it is drawn by numbers of glyphs."""
    string = f"<{text.encode('utf-16-be').hex()}>" if font == "F3" else f"({text})"
    return f"BT /{font} {size} Tf {left} {bottom} Td {string} Tj ET\n"


def field(name: str, left: float, bottom: float, more: str, width: float = 200) -> str:
    """Return a field of a form."""
    place = f"[{left} {bottom} {left + width} {bottom + 16}]"
    return f"<< /Type /Annot /Subtype /Widget /F 4 /T ({name}) /Rect {place} {more} >>"


def remark(kind: str, left: float, bottom: float, text: str) -> str:
    """Return an annotation."""
    place = f"[{left} {bottom} {left + 100} {bottom + 20}]"
    return f"<< /Type /Annot /Subtype /{kind} /F 4 /Rect {place} /Contents ({text}) /DA (/F1 11 Tf) >>"


def pdf_file(
    pages: Sequence[str], *, fields: Sequence[str] = (), remarks: Sequence[str] = (), attached: Sequence[str] = ()
) -> bytes:
    """Return a file with these pages; fields and remarks are on the first, attached files are texts."""
    objects: dict[int, str] = {}

    def add(text: str) -> int:
        objects[len(objects) + 3] = text
        return len(objects) + 2

    marks = [add(one) for one in (*fields, *remarks)]
    numbers = []
    for number, content in enumerate(pages):
        stream = add(f"<< /Length {len(content)} >>\nstream\n{content}\nendstream")
        annotations = f"/Annots [{' '.join(f'{one} 0 R' for one in marks)}]" if marks and not number else ""
        numbers.append(
            add(
                f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {stream} 0 R {annotations} "
                f"/Resources << /Font {_FONTS} >> >>"
            )
        )
    form = f"/AcroForm << /Fields [{' '.join(f'{one} 0 R' for one in marks[: len(fields)])}] >>" if fields else ""
    files = ""
    for text in attached:
        data = add(f"<< /Type /EmbeddedFile /Length {len(text)} >>\nstream\n{text}\nendstream")
        file = add(f"<< /Type /Filespec /F (survey.txt) /UF (survey.txt) /EF << /F {data} 0 R >> >>")
        files += f"(survey.txt) {file} 0 R "
    names = f"/Names << /EmbeddedFiles << /Names [{files}] >> >>" if files else ""
    objects[1] = f"<< /Type /Catalog /Pages 2 0 R {form} {names} >>"
    objects[2] = f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(f'{one} 0 R' for one in numbers)}] >>"
    written, places = b"%PDF-1.7\n", {}
    for number in sorted(objects):
        places[number] = len(written)
        written += f"{number} 0 obj\n{objects[number]}\nendobj\n".encode("latin-1")
    table = "".join(f"{places[number]:010} 00000 n \n" for number in sorted(objects))
    end = (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\n"
    )
    return written + f"{end}startxref\n{len(written)}\n%%EOF\n".encode()
