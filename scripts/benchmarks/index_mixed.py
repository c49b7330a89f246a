"""Measure how long `index` takes for 200 files of mixed formats, by turns with an earlier version.

    python -m scripts.benchmarks index_mixed --against CHECKOUT [--files 200] [--rounds 3] [--json FILE]

The files are made of the text of `corpus/`, in formats that every version reads. Each run begins with an empty library.
`ratio` is this version's median divided by the earlier one's. The earlier checkout needs its own `.venv` where it
requires other packages. Run it on an idle machine.
"""

import argparse
import io
import itertools
import json
import statistics
import tempfile
from collections.abc import Callable, Sequence
from email.message import EmailMessage
from html import escape
from pathlib import Path
from typing import Any

from scripts.benchmarks.ask import ROOT, Program

_PARAGRAPHS = 12  # of a file


def _docx(paragraphs: Sequence[str]) -> bytes:
    import docx

    document = docx.Document()
    for paragraph in paragraphs:
        document.add_paragraph(paragraph)
    return _saved(document)


def _pptx(paragraphs: Sequence[str]) -> bytes:
    from pptx import Presentation

    presentation = Presentation()
    for paragraph in paragraphs:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = paragraph[:40], paragraph
    return _saved(presentation)


def _xlsx(paragraphs: Sequence[str]) -> bytes:
    import openpyxl  # type: ignore[import-untyped]

    workbook = openpyxl.Workbook()
    workbook.active.append(["Number", "Words", "Text"])
    for number, paragraph in enumerate(paragraphs):
        workbook.active.append([number, len(paragraph.split()), paragraph])
    return _saved(workbook)


def _saved(document: Any) -> bytes:
    written = io.BytesIO()
    document.save(written)
    return written.getvalue()


def _pdf(paragraphs: Sequence[str]) -> bytes:
    from fpdf import FPDF

    pdf = FPDF()
    pdf.add_page()
    pdf.set_font("helvetica", size=11)
    pdf.multi_cell(0, 6, "\n\n".join(paragraphs).encode("latin-1", "replace").decode("latin-1"))
    return bytes(pdf.output())


def _eml(paragraphs: Sequence[str]) -> bytes:
    message = EmailMessage()
    message["Subject"], message["From"] = paragraphs[0][:60].replace("\n", " "), "ada@example.org"
    message.set_content("\n\n".join(paragraphs))
    return message.as_bytes()


def _html(paragraphs: Sequence[str]) -> bytes:
    return "".join(f"<p>{escape(paragraph)}</p>" for paragraph in paragraphs).encode()


def _csv(paragraphs: Sequence[str]) -> bytes:
    rows = [f'{number},"{text.replace(chr(34), chr(39))}"' for number, text in enumerate(paragraphs)]
    return "\n".join(["Number,Text", *rows]).encode()


def _code(paragraphs: Sequence[str]) -> bytes:
    functions = (f"function part{n}() {{\n  return {json.dumps(text)};\n}}" for n, text in enumerate(paragraphs))
    return "\n\n".join(functions).encode()


def _text(paragraphs: Sequence[str]) -> bytes:
    return "\n\n".join(paragraphs).encode()


FORMATS: dict[str, Callable[[Sequence[str]], bytes]] = {
    "md": _text,
    "txt": _text,
    "html": _html,
    "pdf": _pdf,
    "docx": _docx,
    "pptx": _pptx,
    "xlsx": _xlsx,
    "csv": _csv,
    "eml": _eml,
    "js": _code,
}


def write_files(folder: Path, count: int) -> None:
    """Write files of each format in turn, with different paragraphs of the corpus as far as it goes."""
    texts = (path.read_text(encoding="utf-8") for path in sorted((ROOT / "corpus").rglob("*.md")))
    paragraphs = itertools.cycle([one for text in texts for one in text.split("\n\n") if len(one.split()) > 5])  # noqa: PLR2004
    for number, (suffix, make) in zip(range(count), itertools.cycle(FORMATS.items()), strict=False):
        (folder / f"file-{number}.{suffix}").write_bytes(make(list(itertools.islice(paragraphs, _PARAGRAPHS))))


def main() -> None:
    """Index with both versions by turns and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, required=True, help="a checkout of an earlier version")
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="write the seconds as JSON")
    arguments = parser.parse_args()
    seconds: dict[str, list[float]] = {"this": [], "earlier": []}
    with tempfile.TemporaryDirectory() as place:
        documents = Path(place) / "documents"
        documents.mkdir()
        write_files(documents, arguments.files)
        for number in range(arguments.rounds):
            for name, checkout in (("this", ROOT), ("earlier", arguments.against.resolve())):
                program = Program(checkout, Path(place) / f"{name}-{number}")
                run = program.run("index", str(documents), "--context", "headings")
                seconds[name].append(round(run["seconds"], 2))
                print(f"{name}: {run['seconds']:.1f} s, {run['cpu_seconds']:.1f} s of processor time", flush=True)
    ratio = statistics.median(seconds["this"]) / statistics.median(seconds["earlier"])
    print(f"ratio {ratio:.2f}")
    if arguments.json:
        figures = {"files": arguments.files, "seconds": seconds, "ratio": round(ratio, 3)}
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
