"""Convert a canvas of Obsidian: the texts of its cards from top to bottom, the files that it shows, and its links."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Converted
from local_rag.reading.decode import decode


def convert_canvas(data: bytes) -> Converted:
    """Convert a canvas."""
    try:
        canvas = json.loads(decode(data))
    except ValueError as error:
        raise ReadError("damaged canvas") from error
    parts = canvas if isinstance(canvas, dict) else {}
    nodes = [one for one in parts.get("nodes") or () if isinstance(one, dict)]
    texts = [text for node in sorted(nodes, key=_place) if (text := _said(node).strip())]
    edges = (one for one in parts.get("edges") or () if isinstance(one, dict))
    return Converted(None, "\n\n".join([*texts, *_labels(edges)]), "markdown")


def _place(node: Mapping[str, Any]) -> tuple[float, float]:
    y, x = (node.get(name) for name in ("y", "x"))
    return (y if isinstance(y, int | float) else 0, x if isinstance(x, int | float) else 0)


def _said(node: Mapping[str, Any]) -> str:
    """Return the text of a card, the label of a group, or what a card shows."""
    return next((value for name in ("text", "label", "file", "url") if isinstance(value := node.get(name), str)), "")


def _labels(edges: Iterator[Mapping[str, Any]]) -> Iterator[str]:
    return (label for edge in edges if isinstance(label := edge.get("label"), str) and label.strip())
