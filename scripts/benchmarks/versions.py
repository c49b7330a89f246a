"""Plant 40 pairs of versions among look-alikes, and count which are found, and which families are false.

    python -m scripts.benchmarks versions [--false-in FOLDER ...] [--ask 20] [--json FILE]

Each pair differs in its name by a year, a version number or a word such as "final", or only in its folder, and in one
value and a few sentences. For each pair there is also a look-alike: nearly the same text about another place, which is
no version. For each pair `search` looks for the value: the newest version should come first. In each FOLDER all
families are listed: a person says which are false. With --ask, a model is asked for the value of that many pairs; an
answer is right if it names both values, newest first.
"""

import argparse
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from local_rag import Library

PLACES = ["Oslo", "Bergen", "Tromso", "Molde", "Bodo", "Skien", "Hamar", "Alta", "Narvik", "Halden"]
SUBJECTS = ["Pump", "Crane", "Boat", "Canteen"]
VALUES = ["pressure of the main line", "load of the small hook", "number of seats", "price of a warm meal"]
UNITS = ["bar", "kilos", "people", "kroner"]
NAMES = [
    ("{name}-{old}.md", "{name}-{new}.md"),
    ("{name}_v1.md", "{name}_v2.md"),
    ("{name}-draft.md", "{name}-final.md"),
    ("{old}/{name}.md", "{new}/{name}.md"),
    ("archive/{name}.md", "{name}.md"),
]
TEXT = """# {subject} rules for {place}

{dated}These rules hold for everybody who works with the {thing} in {place}. They are kept in the office and read to
each new colleague on the first day.

## Use

Ask the station lead before you begin. The {value} is {amount} {unit} and is checked every morning. {more}

## Care

Clean the {thing} after use and write the hour into the book. {last} Report damage at once, and do not use the {thing}
until somebody has looked at it.
"""
MORE = [
    "Write the reading on the board.",
    "Two people are always present.",
    "Gloves are worn by both of them.",
    "Nobody smokes within ten metres.",
    "A second reading is taken at noon.",
]


def write_pairs(folder: Path, seed: int = 11) -> list[dict[str, Any]]:
    """Write 40 pairs; return for each its paths, the newest first, a question and both values."""
    chance, pairs = random.Random(seed), list[dict[str, Any]]()  # noqa: S311
    for number in range(len(SUBJECTS) * len(PLACES)):
        subject, place = SUBJECTS[number % len(SUBJECTS)], PLACES[number // len(SUBJECTS)]
        value, unit = VALUES[number % len(SUBJECTS)], UNITS[number % len(SUBJECTS)]
        old_year = chance.randrange(2015, 2020)
        new_year = old_year + chance.randrange(1, 5)
        amounts = chance.sample(range(20, 900), 2)
        name = f"{subject}-rules-{place}".lower()
        older, newer = (one.format(name=name, old=old_year, new=new_year) for one in NAMES[number % len(NAMES)])
        dated = number % 2 == 0  # half of them say from when they are in force
        for path, year, amount in ((older, old_year, amounts[0]), (newer, new_year, amounts[1])):
            more, last = chance.sample(MORE, 2)
            text = TEXT.format(
                subject=subject, place=place, thing=subject.lower(), value=value, amount=amount, unit=unit,
                more=more, last=last, dated=f"In force from 1 March {year}. " if dated else "",
            )  # fmt: skip
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
        pairs.append(
            {
                "paths": [newer, older],
                "question": f"What is the {value} in {place}?",
                "values": [f"{amounts[1]} {unit}", f"{amounts[0]} {unit}"],
            }
        )
    return pairs


def families_of(library: Library, folder: Path) -> list[list[str]]:
    """Return the families of a library as paths below a folder, newest first."""
    return [[str(Path(one.path).relative_to(folder)) for one in family] for family in library.documents.families()]


def main() -> None:
    """Write the pairs, index them, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--false-in", type=Path, action="append", default=[], help="a folder to list families of")
    parser.add_argument("--ask", type=int, default=0, help="how many questions the model is asked")
    parser.add_argument("--json", type=Path, help="where to write the report")
    arguments = parser.parse_args()
    report: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = (Path(temporary) / "rules").resolve()
        folder.mkdir()
        pairs = write_pairs(folder)
        with Library(Path(temporary) / "library", context="headings", context_minutes=0.0) as library:
            library.index([folder])
            found = families_of(library, folder)
            wanted = [set(pair["paths"]) for pair in pairs]
            report["pairs"] = len(pairs)
            report["found"] = sum(set(family) in wanted for family in found)
            report["false"] = sum(set(family) not in wanted for family in found)
            report["newest_first"] = sum(pair["paths"] in found for pair in pairs)
            found_first = [library.search(pair["question"], top=1)[0].path for pair in pairs]
            report["searched_newest_first"] = sum(
                path == str(folder / pair["paths"][0]) for path, pair in zip(found_first, pairs, strict=True)
            )
            named = 0
            for pair in pairs[: arguments.ask]:
                text = library.ask(pair["question"]).text
                places = [text.find(value) for value in pair["values"]]
                named += 0 <= places[0] < places[1]
            if arguments.ask:
                report["asked"], report["both_named_newest_first"] = arguments.ask, named
        for number, other in enumerate(arguments.false_in):
            with Library(Path(temporary) / f"other-{number}", context="headings", context_minutes=0.0) as library:
                library.index([other])
                report.setdefault("families", {})[other.name] = families_of(library, other.resolve())
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
