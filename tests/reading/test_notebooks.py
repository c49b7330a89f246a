"""Notebooks: code in its language, and output that is text."""

import json
from pathlib import Path
from typing import Any

from local_rag.document_records import Document
from local_rag.reading.read import parse


def notebook(*cells: dict[str, Any], language: str = "python", **more: Any) -> Document:
    content = {"cells": cells, "metadata": {"kernelspec": {"language": language}}, "nbformat": 4, **more}
    return parse(Path("a.ipynb"), json.dumps(content).encode())


def code(*outputs: dict[str, Any]) -> dict[str, Any]:
    return {"cell_type": "code", "source": ["x = 1\n", "print(x)"], "outputs": list(outputs)}


def test_code_is_in_its_language_and_its_text_output_is_kept() -> None:
    table = "<table><tr><th>City</th></tr><tr><td>Oslo</td></tr></table>"
    read = notebook(
        {"cell_type": "markdown", "source": "# Tides\n\nWhy."},
        code(
            {"output_type": "stream", "text": ["RESULT ", "42\n"]},
            {"output_type": "execute_result", "data": {"text/plain": ["  City\n0 Oslo"], "text/html": [table]}},
            {"output_type": "error", "ename": "ValueError", "evalue": "too deep", "traceback": ["\x1b[31m"]},
        ),
        language="julia",
    )
    assert "```julia\nx = 1\nprint(x)\n```" in read.text
    assert "RESULT 42" in read.text
    assert "| Oslo |" in read.text
    assert "0 Oslo" not in read.text
    assert "ValueError: too deep" in read.text
    assert read.notes == ()


def test_images_are_noted() -> None:
    image = {"output_type": "display_data", "data": {"image/png": "AAAA", "text/plain": ["<Figure size 6x4>"]}}
    read = notebook(code(image, image), {"cell_type": "markdown", "source": "see", "attachments": {"a.png": {}}})
    assert "Figure" not in read.text
    assert "AAAA" not in read.text
    assert read.notes == ("2 images or programs in outputs are left out", "1 attached image is left out")


def test_older_notebooks_have_worksheets() -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": "Depths"},
        {"cell_type": "code", "language": "ruby", "input": ["x=1"], "outputs": [{"output_type": "pyout", "text": "7"}]},
    ]
    content = {"nbformat": 3, "metadata": {}, "worksheets": [{"cells": cells}]}
    read = parse(Path("a.ipynb"), json.dumps(content).encode())
    assert read.text == "## Depths\n\n```ruby\nx=1\n```\n\n```\n7\n```"


def test_a_fence_within_code_does_not_end_it() -> None:
    read = notebook({"cell_type": "code", "source": "print('''\n```\n# no heading\n```\n''')", "outputs": []})
    assert read.headings == ()
