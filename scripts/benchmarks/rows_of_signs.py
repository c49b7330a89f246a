"""Measure how long `index` takes for documents of rows of signs, against plain text of the same size.

    python -m scripts.benchmarks rows_of_signs [--documents 500] [--characters 8000] [--seed 1] [--json FILE]

Rows of signs are what the text of a table in a PDF looks like, and what keeps a pattern busy that looks for numbers,
lists or sentences. Models are fakes, so the time is that of reading, splitting, checking and keywords. It is the
processor's, which other work on the machine hardly changes. `ratio` is the time for signs divided by that for text, and
`ratio_per_chunk` the same for a chunk: signs have more tokens, so the same size makes more chunks.
"""

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from local_rag.library import Library
from scripts.benchmarks.ask import ROOT
from tests.fakes import QUICK

_SIGNS = (
    *(
        "- ",
        "-",
        "1 ",
        "1,",
        "1.",
        "1-",
        "12 - ",
        "1/2 ",
        "A. ",
        "a.",
        "a-",
        "| ",
        "| - ",
        "](",
        "[",
        "[a](",
        "<a ",
        "<",
    ),
    *("(", "((1) ", "* ", "**", "_a", "`", "> ", "# ", "= ", "--- ", ". ", "... ", "? ", "[1] ", "$1 ", "%", "12 jan "),
    *(
        "2020-",
        "12:30 ",
        "and ",
        "one ",
        "twenty-",
        "5 days or ",
        "www.",
        "//",
        "e.g. ",
        "\u0301\u0323",
        "\u00bd",
        "\t",
    ),
    *(
        "\n",
        " \n",
        "-\n",
        "| |\n",
        "a\n",
        "1. a\n",
        "- a\n",
        "---\n",
        "&amp;",
        "Q: ",
        "\u2022 ",
        "\u3042",
        "\ufb01",
        "$x^2$ ",
    ),
)
_ENDINGS = (".md", ".md", ".txt", ".html", ".csv")
_SENTENCE = "The keeper of the {} notes weight, damage and number of boxes before the {} leaves for the {}."
_WORDS = ("harbour", "boat", "tide", "crew", "lantern", "rope", "anchor", "window", "ladder", "barrel", "signal")


def signs(chance: random.Random, characters: int) -> str:
    """Return a text of some rows of signs, each of one or of several in turns, between words and numbers."""
    rows = list[str]()
    while sum(map(len, rows)) < characters:
        pump = "".join(chance.choices(_SIGNS, k=chance.choice((1, 1, 2, 3))))
        length = chance.randrange(characters // 8, characters)
        rows.append(f"Weights: 12 {pump * (length // len(pump))}total 15 kg, as the {chance.choice(_WORDS)} says.\n\n")
    return "".join(rows)[:characters]


def prose(chance: random.Random, characters: int) -> str:
    """Return a plain text."""
    sentences = list[str]()
    while sum(map(len, sentences)) < characters:
        sentences.append(_SENTENCE.format(*chance.choices(_WORDS, k=3)) + chance.choice((" ", " ", "\n\n")))
    return "".join(sentences)[:characters]


def seconds(
    folder: Path, write: Callable[[random.Random, int], str], documents: int, characters: int, seed: int
) -> tuple[float, int]:
    """Return the processor's seconds of `index` for documents of a kind, the same for the same seed, and the chunks."""
    chance, source = random.Random(seed), folder / write.__name__  # noqa: S311  repeatable on purpose
    source.mkdir()
    for number in range(documents):
        ending = _ENDINGS[number % len(_ENDINGS)]
        (source / f"{number}{ending}").write_text(f"Document {number}\n\n{write(chance, characters)}", encoding="utf-8")
    with Library(folder / f"{write.__name__}-library", parts=QUICK, profile="tiny", context="auto") as library:
        begun = time.process_time()
        library.index([source])
        return time.process_time() - begun, library.status().chunks


def measure(documents: int, characters: int, seed: int) -> dict[str, float]:
    """Return the times for signs and for text, and their ratio."""
    with tempfile.TemporaryDirectory() as folder:
        first, then = Path(folder) / "first", Path(folder) / "then"
        first.mkdir()
        seconds(first, prose, 1, 1000, seed)  # what is loaded once
        then.mkdir()
        (of_text, text_chunks), (of_signs, sign_chunks) = (
            seconds(then, write, documents, characters, seed) for write in (prose, signs)
        )
    return {
        "documents": documents,
        "characters": characters,
        "seed": seed,
        "seconds_signs": round(of_signs, 2),
        "seconds_text": round(of_text, 2),
        "chunks_signs": sign_chunks,
        "chunks_text": text_chunks,
        "ratio": round(of_signs / of_text, 2),
        "ratio_per_chunk": round(of_signs / sign_chunks / (of_text / text_chunks), 2),
    }


def main() -> None:
    """Print the ratio, and write it if that is wanted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=500)
    parser.add_argument("--characters", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help=f"such as {ROOT / 'docs' / 'measurements' / 'rows-of-signs.json'}")
    given = parser.parse_args()
    found = measure(given.documents, given.characters, given.seed)
    print(json.dumps(found))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
