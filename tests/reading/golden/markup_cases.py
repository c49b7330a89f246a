"""Texts with headings of several markups, where a line that looks like one is none, and code."""

import json

from tests.reading.golden.case import Case

FACT, MORE, LAST = "The tide rises twice a day.", "Boats wait outside.", "The harbour master decides."


def text(*lines: str) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def notebook(*cells: dict[str, object]) -> bytes:
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


RISES = {FACT: "Tides", MORE: "Depths", LAST: "Depths"}
CASES = [
    Case(
        "underlined.rst",
        lambda: text(
            "=====",
            "Tides",
            "=====",
            "",
            FACT,
            "",
            "Depths",
            "------",
            "",
            MORE,
            "",
            "::",
            "",
            "   No heading",
            "   ----------",
            "",
            LAST,
        ),
        RISES,
    ),
    Case(
        "rules.rst",
        lambda: text(
            "Tides", "#####", FACT, "", "----------", "", "Depths", "~~~~~~", MORE, "", "== ===", "a  b", "== ===", LAST
        ),
        RISES,
    ),
    Case(
        "listing.adoc",
        lambda: text("= Tides", "", FACT, "", "== Depths ==", "", MORE, "", "----", "== No heading", "----", "", LAST),
        RISES,
    ),
    Case(
        "article.tex",
        lambda: text(
            r"\documentclass{article}",
            r"\begin{document}",
            r"\section[T]{Tides}",
            FACT,
            r"\subsection*{\emph{Depths}}",
            MORE,
            r"% \section{No heading}",
            LAST,
        ),
        RISES,
    ),
    Case("outline.org", lambda: text("* Tides", FACT, "** Depths", MORE, "*bold* " + LAST), RISES),
    Case(
        "setext.md",
        lambda: text(
            "---",
            "date: 2024-05-01",
            "---",
            "Tides",
            "=====",
            FACT,
            "",
            "Depths",
            "---",
            MORE,
            "",
            "```",
            "# No heading",
            "```",
            LAST,
        ),
        RISES,
    ),
    Case(
        "front-matter.markdown",
        lambda: text("---", "# no yaml: at all", "", "# Tides", FACT, "", "## Depths", "> # quoted", "", MORE, LAST),
        RISES,
    ),
    Case(
        "outputs.ipynb",
        lambda: notebook(
            {"cell_type": "markdown", "source": ["# Tides\n", FACT]},
            {
                "cell_type": "code",
                "source": "x",
                "outputs": [
                    {"output_type": "stream", "text": [MORE]},
                    {"output_type": "display_data", "data": {"image/png": "AA"}},
                ],
            },
            {"cell_type": "raw", "source": LAST},
        ),
        dict.fromkeys(RISES, "Tides"),
        noted={"an image": "1 image or program in outputs"},
    ),
    Case(
        "classes.py",
        lambda: text(
            "class Boat:",
            f'    """{FACT}"""',
            "",
            "    def wait(self):",
            f"        return '{MORE}'",
            "",
            "",
            "def decide():",
            f"    return '{LAST}'",
        ),
        {FACT: "class Boat", MORE: "def wait", LAST: "def decide"},
    ),
]
