"""Draw a page of a PDF as an image with a passage marked, in another process, because a PDF may be malicious.

`python -m local_rag.reading.page_image` reads one line of JSON and writes a PNG or exits with the reason for failure.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from local_rag.errors import ReadError
from local_rag.reading.isolate import bare_environment, confine
from local_rag.reading.read import read_bytes

MAX_SECONDS = 20
MAX_MEMORY = 2 * 1024**3
_MAX_PIXELS = 4_000_000
_SCALE = 2.0
_MIN_PHRASE, _MAX_PHRASES, _MAX_RECTANGLES = 12, 200, 1000  # characters; phrases to search for; rectangles to draw
_ROW = re.compile(r"^\|.*$", re.MULTILINE)
_YELLOW = (255, 221, 87)


def draw_page(path: Path, page: int, passage: str = "") -> bytes:
    """Return a page, counted from 1, as a PNG with the lines of a passage marked; raise ReadError if that fails.

    It may use `MAX_SECONDS` of CPU time and `MAX_MEMORY` bytes.
    """
    command = [sys.executable, "-P", "-m", "local_rag.reading.page_image"]
    request = json.dumps({"path": os.fspath(path), "page": page, "passage": passage[:20_000]})
    try:
        done = subprocess.run(
            command,
            input=request.encode(),
            capture_output=True,
            check=False,
            timeout=3 * MAX_SECONDS,
            env=bare_environment(),
        )
    except subprocess.TimeoutExpired:
        raise ReadError(f"takes longer than {MAX_SECONDS} seconds to draw") from None
    if done.returncode or not done.stdout.startswith(b"\x89PNG"):
        reason = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise ReadError(reason[0] if done.returncode == 1 and reason else "crashes the reader")
    return done.stdout


def _draw(path: Path, number: int, passage: str) -> bytes:
    import io

    import pypdfium2
    from PIL import Image, ImageChops, ImageDraw

    try:
        pdf = pypdfium2.PdfDocument(read_bytes(path))
    except pypdfium2.PdfiumError:
        raise ReadError("damaged or encrypted PDF") from None
    if not 1 <= number <= len(pdf):
        raise ReadError(f"has no page {number}")
    page = pdf[number - 1]
    width, height = page.get_size()
    scale = min(_SCALE, (_MAX_PIXELS / max(1.0, width * height)) ** 0.5)
    image = page.render(scale=scale).to_pil().convert("RGB")
    marks = Image.new("RGB", image.size, "white")
    pen = ImageDraw.Draw(marks)
    for left, bottom, right, top in _rectangles(page.get_textpage(), passage):
        box = (left * scale - 2, image.height - top * scale - 2, right * scale + 2, image.height - bottom * scale + 2)
        if box[0] < box[2] and box[1] < box[3]:
            pen.rectangle(box, fill=_YELLOW)
    data = io.BytesIO()
    ImageChops.multiply(image, marks).save(data, "PNG")
    return data.getvalue()


def _rectangles(textpage: Any, passage: str) -> list[tuple[float, float, float, float]]:
    """Return the rectangles of a passage's sentences and lines on a page: left, bottom, right, top in points."""
    found: list[tuple[float, float, float, float]] = []
    # The cells of a row stand beside each other on the page, without the bars of Markdown.
    plain = _ROW.sub(lambda row: row[0].replace("|", " "), passage)
    phrases = [" ".join(phrase.split()) for phrase in re.split(r"\n|(?<=[.!?:;])\s", plain)]
    for phrase in [phrase for phrase in phrases if len(phrase) >= _MIN_PHRASE][:_MAX_PHRASES]:
        match = textpage.search(phrase).get_next()
        if match is not None and len(found) < _MAX_RECTANGLES:
            found += [textpage.get_rect(one) for one in range(textpage.count_rects(*match))]
    return found[:_MAX_RECTANGLES]


def _main() -> None:
    confine(MAX_SECONDS, MAX_MEMORY)
    request = json.loads(sys.stdin.buffer.read())
    image, output = b"", os.dup(1)
    os.dup2(2, 1)  # keep output of parsers out of the image
    try:
        image = _draw(Path(request["path"]), int(request["page"]), str(request["passage"]))
    except ReadError as error:
        sys.exit(str(error))
    except MemoryError:
        sys.exit("takes too much memory to draw")
    except Exception as error:  # noqa: BLE001  parsers raise anything
        sys.exit(f"cannot be drawn ({type(error).__name__})")
    with os.fdopen(output, "wb") as file:
        file.write(image)


if __name__ == "__main__":
    _main()
