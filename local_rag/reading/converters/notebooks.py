"""Convert Jupyter notebooks."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Converted, notes_of
from local_rag.reading.converters.html_pages import parse_html, remove_invisible, to_markdown
from local_rag.reading.decode import clean, decode
from local_rag.reading.markdown import blank_tags, mark_struck

_MARKDOWN, _HTML = ("text/markdown", "markdown"), ("text/html", "html")
_PLAIN = ("text/plain", "text", "text/latex", "latex", "application/json")


def convert_notebook(data: bytes) -> Converted:
    """Convert a notebook: text, code, and outputs that are text."""
    notebook = json.loads(decode(data))
    if not isinstance(notebook, dict):
        raise ReadError("not a notebook")
    metadata = _mapping(notebook.get("metadata"))
    kernel, info = _mapping(metadata.get("kernelspec")), _mapping(metadata.get("language_info"))
    language = _text(kernel.get("language")) or _text(info.get("name"))
    blocks, left_out = list[str](), Counter[str]()
    for cell in _cells(notebook):
        source = _text(cell.get("source", cell.get("input"))).strip("\n")
        if cell.get("cell_type") == "code":
            blocks.append(_fenced(source, _text(cell.get("language")) or language))
            blocks += [_output(_mapping(output), left_out) for output in _list(cell.get("outputs"))]
        elif cell.get("cell_type") == "heading":  # of format 3
            blocks.append(f"{'#' * int(cell.get('level', 1))} {source}")
        else:
            blocks.append(mark_struck(blank_tags(source)))
        left_out["attached image*"] += len(_mapping(cell.get("attachments")))
    text = clean("\n\n".join(filter(str.strip, blocks)))
    return Converted(_text(metadata.get("title")) or None, text, "markdown", notes=notes_of(left_out))


def _cells(notebook: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the cells; before format 4 they were in worksheets."""
    for sheet in (notebook, *map(_mapping, _list(notebook.get("worksheets")))):
        yield from map(_mapping, _list(sheet.get("cells")))


def _output(output: Mapping[str, Any], left_out: Counter[str]) -> str:
    """Return an output as text, the richest form of it; count it in `left_out` if it is an image or the like."""
    if output.get("output_type") in {"error", "pyerr"}:
        return _fenced(f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}")
    data = _mapping(output.get("data")) or output
    if text := _first(data, _MARKDOWN):
        return text
    if markup := _first(data, _HTML):
        page = parse_html(markup)
        remove_invisible(page)
        if text := to_markdown(page.body or page):
            return text
    written = _first(data, _PLAIN).replace("\r\n", "\n").strip("\n")
    plain = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in written.split("\n"))  # as a terminal shows it
    is_image = any(name.startswith("image/") or name in {"png", "jpeg", "svg"} for name in data)
    if is_image or not plain:
        left_out["image* or program* in outputs"] += bool(data)
        return "" if plain.startswith("<") else _fenced(plain)  # what Python calls an image
    return _fenced(plain)


def _first(data: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := _text(data.get(name))).strip()), "")


def _fenced(text: str, language: str = "") -> str:
    """Return code in a fence that no line of it closes."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{'-'.join(language.split())}\n{text}\n{fence}" if text.strip() else ""


def _text(value: object) -> str:
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return value if isinstance(value, str) else ""


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
