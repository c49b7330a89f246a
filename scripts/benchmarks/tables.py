"""Measure how often the rows of long tables are found: with the header repeated in each chunk, and without.

    python -m scripts.benchmarks tables [--profile starter] [--no-rerank] [--output FILE]

The same sixty stations stand in five long tables of one handbook, so only the names of the columns tell which of a
station's rows a question is about. Half of the questions are for choosing, the other half for reporting.
"""

import argparse
import json
import random
import tempfile
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from local_rag import Library
from local_rag.document_records import Skipped
from local_rag.indexing.workers import LocalWorkers
from local_rag.library import Parts
from local_rag.reading.isolate import ReadFile
from local_rag.reading.split import Splitting

TOP = 5
FIRST = ["Al", "Bren", "Cor", "Dal", "Ern", "Fal", "Gar", "Hol", "Is", "Jor"]
LAST = ["by", "dal", "fjord", "holm", "nes", "vik"]
STATIONS = [first + last for first in FIRST for last in LAST]
TABLES = {
    "Annex A": ("Adult fare", "Child fare", "Bicycle supplement"),
    "Annex B": ("First departure", "Last departure", "Ticket office closes"),
    "Annex C": ("Permanent staff", "Seasonal helpers", "Apprentices"),
    "Annex D": ("Fire extinguishers", "Life jackets", "First-aid boxes"),
    "Annex E": ("Parking spaces", "Charging points", "Toilets"),
}
# Each with its table and the station whose row answers it; those at even places are for choosing.
QUESTIONS = (
    ("How much does an adult pay from Alvik?", "Annex A", "Alvik"),
    ("What is the fare for a child from Brenholm?", "Annex A", "Brenholm"),
    ("What does it cost to take a bicycle along from Corfjord?", "Annex A", "Corfjord"),
    ("Adult fare at Dalnes", "Annex A", "Dalnes"),
    ("What do children pay at Ernby?", "Annex A", "Ernby"),
    ("How high is the bicycle supplement in Falvik?", "Annex A", "Falvik"),
    ("What is the price of an adult ticket in Garholm?", "Annex A", "Garholm"),
    ("Is there a supplement for bicycles at Jordal, and how much?", "Annex A", "Jordal"),
    ("When is the first departure from Aldal?", "Annex B", "Aldal"),
    ("At what time does the last departure leave Brenvik?", "Annex B", "Brenvik"),
    ("When does the ticket office in Corholm close?", "Annex B", "Corholm"),
    ("First departure of the day at Dalby", "Annex B", "Dalby"),
    ("How late is the last departure at Ernfjord?", "Annex B", "Ernfjord"),
    ("Until when can I go to the ticket office at Falnes?", "Annex B", "Falnes"),
    ("What is the earliest departure from Isholm?", "Annex B", "Isholm"),
    ("When does the last ferry depart from Holdal?", "Annex B", "Holdal"),
    ("How many permanent staff work at Alholm?", "Annex C", "Alholm"),
    ("How many seasonal helpers does Brennes have?", "Annex C", "Brennes"),
    ("How many apprentices are there in Corby?", "Annex C", "Corby"),
    ("Permanent staff in Dalfjord", "Annex C", "Dalfjord"),
    ("How many helpers for the season are employed at Ernvik?", "Annex C", "Ernvik"),
    ("Number of apprentices at Faldal", "Annex C", "Faldal"),
    ("What is the permanent staff of Garnes?", "Annex C", "Garnes"),
    ("How many seasonal helpers are at Isby?", "Annex C", "Isby"),
    ("How many fire extinguishers hang in Alfjord?", "Annex D", "Alfjord"),
    ("How many life jackets are kept at Brenby?", "Annex D", "Brenby"),
    ("How many first-aid boxes does Corvik have?", "Annex D", "Corvik"),
    ("Fire extinguishers at Dalholm", "Annex D", "Dalholm"),
    ("Number of life jackets at Ernnes", "Annex D", "Ernnes"),
    ("Are there first-aid boxes in Falfjord, and how many?", "Annex D", "Falfjord"),
    ("How many extinguishers against fire are in Holby?", "Annex D", "Holby"),
    ("How many life jackets must Jorvik hold?", "Annex D", "Jorvik"),
    ("How many parking spaces does Alnes have?", "Annex E", "Alnes"),
    ("How many charging points for cars are in Brendal?", "Annex E", "Brendal"),
    ("How many toilets are there at Cornes?", "Annex E", "Cornes"),
    ("Parking spaces in Dalvik", "Annex E", "Dalvik"),
    ("Where I charge my car at Ernholm: how many charging points?", "Annex E", "Ernholm"),
    ("Number of toilets at Falby", "Annex E", "Falby"),
    ("How many cars can park at Garfjord, how many parking spaces?", "Annex E", "Garfjord"),
    ("How many charging points are installed at Holnes?", "Annex E", "Holnes"),
)


class WithoutHeaders(LocalWorkers):
    """Workers whose chunks do not repeat the header of their table."""

    def read(self, paths: Iterable[Path], splitting: Splitting) -> Generator[tuple[Path, ReadFile | Skipped]]:
        """Read files as ever, and take the repeated headers away."""
        for path, result in super().read(paths, splitting):
            if isinstance(result, ReadFile):
                chunks = tuple(replace(chunk, table_header="") for chunk in result.chunks)
                result = replace(result, chunks=chunks)  # noqa: PLW2901
            yield path, result


def handbook(seed: int = 1) -> str:
    """Write the handbook: five tables with a row for each station, in an order of their own."""
    numbers = random.Random(seed)  # noqa: S311
    parts = ["# Handbook of the stations"]
    for annex, columns in TABLES.items():
        stations = numbers.sample(STATIONS, len(STATIONS))
        minutes = ":{}" if annex == "Annex B" else ""
        rows = [
            _row(station, [f"{numbers.randint(6, 22)}{minutes}".format(numbers.randint(10, 59)) for _ in columns])
            for station in stations
        ]
        parts += [f"## {annex}", "\n".join([_row("Station", columns), "|---|---|---|---|", *rows])]
    return "\n\n".join(parts)


def _row(station: str, cells: Sequence[str]) -> str:
    return f"| {station} | {' | '.join(cells)} |"


def found_at(library: Library, annex: str, station: str, question: str, *, rerank: bool) -> int:
    """Return the rank of the passage with the station's row of a table; 0 if it is not among the first."""
    passages = library.search(question, top=TOP, rerank=rerank)
    for rank, passage in enumerate(passages, start=1):
        if passage.kind == "chunk" and passage.headings[-1:] == (annex,) and f"| {station} |" in passage.text:
            return rank
    return 0


def measure(profile: str, *, rerank: bool) -> dict[str, dict[str, float]]:
    """Return, with the headers and without, the share of questions whose row is among the first passages."""
    figures = {}
    for name, parts in {"repeated": Parts(), "not repeated": Parts(make_workers=WithoutHeaders)}.items():
        with tempfile.TemporaryDirectory() as folder:
            documents = Path(folder) / "documents"
            documents.mkdir()
            (documents / "handbook.md").write_text(handbook(), encoding="utf-8")
            with Library(Path(folder) / "library", parts=parts, profile=profile, context="headings") as library:
                library.index([documents])
                ranks = [found_at(library, annex, where, asked, rerank=rerank) for asked, annex, where in QUESTIONS]
        figures[name] = {
            half: sum(map(bool, ranks[start::2])) / len(ranks[start::2])
            for start, half in enumerate(("choosing", "reporting"))
        }
    return figures


def main() -> None:
    """Measure and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", default="starter")
    parser.add_argument("--no-rerank", action="store_true")
    parser.add_argument("--output", type=Path, help="write the shares as JSON")
    arguments = parser.parse_args()
    figures = measure(arguments.profile, rerank=not arguments.no_rerank)
    for name, halves in figures.items():
        print(f"header {name}: " + ", ".join(f"{half} {share:.0%}" for half, share in halves.items()))
    if arguments.output:
        said = {"profile": arguments.profile, "rerank": not arguments.no_rerank, "top": TOP, "shares": figures}
        arguments.output.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
