"""Measure `extract` on documents whose values are known: generated ones, or real ones whose values were read by hand.

    python -m scripts.benchmarks extract LIBRARY COLUMNS VALUES [--documents 20] [--columns 10] [--profile light]

VALUES is a JSON file as `extract_documents` writes it: for each path its value in each column, null if the document
does not state it, or the two values where it contradicts itself. It prints each wrong cell, then what was right of
the filled cells, what was left empty of the missing ones, which quotations lack their value, and questions a minute.
"""

import argparse
import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

from local_rag import Library
from local_rag.extraction.cells import Cell
from local_rag.extraction.columns import Column
from local_rag.extraction.values import TYPED, denies, find_phrase, find_values
from local_rag.serving.extracted_files import cell_as_dict
from local_rag.serving.table_files import read_columns
from local_rag.text.words import fold


def is_right(column: Column, cell: Cell, known: Any) -> bool:
    """Return whether a filled cell has a known value, or one of two that contradict each other."""
    both = known if isinstance(known, list) and column.type != "list" else [known]
    return any(_same(column, cell, one) for one in both)


def _same(column: Column, cell: Cell, known: Any) -> bool:
    if column.type == "list":
        return isinstance(cell.value, tuple) and {fold(one) for one in cell.value} == {fold(one) for one in known}
    if column.type in TYPED:
        kind = column.type
        wanted = {reading for one in find_values(kind, str(known)) for reading in one.readings}
        return any(one.readings & wanted for one in find_values(kind, cell.text))
    return fold(" ".join(cell.text.split())).strip(" .") == fold(" ".join(str(known).split())).strip(" .")


def quotes_value(column: Column, cell: Cell) -> bool:
    """Return whether the quotation of a filled cell contains its value."""
    if column.type in TYPED:
        both = [find_values(column.type, cell.quotation, decimal_comma=comma) for comma in (False, True)]
        said = {reading for found in both for one in found for reading in one.readings}
        return cell.value is None or any(one.readings & said for one in find_values(column.type, cell.text))
    if column.type == "list" and isinstance(cell.value, tuple):
        return all(find_phrase(cell.quotation, one) for one in cell.value)
    if column.type == "yes/no":
        return bool(cell.quotation) and (cell.value is not False or denies(cell.quotation) or cell.state == "unsure")
    return bool(cell.value is None or find_phrase(cell.quotation, cell.text) or cell.state == "unsure")


def main() -> None:
    """Run the script."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", type=Path)
    parser.add_argument("columns", type=Path)
    parser.add_argument("values", type=Path)
    parser.add_argument("--documents", type=int, default=0, help="how many documents, by path; 0: all")
    parser.add_argument("--first", type=int, default=0, help="the number of the first document")
    parser.add_argument("--only", type=int, default=0, help="how many columns; 0: all")
    parser.add_argument("--profile", default="starter")
    parser.add_argument("--cells", type=Path, help="write each cell as a line of JSON")
    given = parser.parse_args()
    columns = read_columns(given.columns)[: given.only or None]
    values = json.loads(given.values.read_text())
    # The generated values are those of two kinds of documents, in folders that are named like their columns.
    of_kind = {path: one for path, one in values.items() if path.split("/")[0] == given.columns.stem} or values

    def known(path: str) -> dict[str, Any]:
        found: dict[str, Any] = of_kind.get("/".join(Path(path).parts[-2:])) or of_kind.get(Path(path).name) or {}
        return found

    with Library(given.library, profile=given.profile) as library:
        library.retrieval.load()
        library.answering.load()
        started, counts = time.monotonic(), Counter[str]()
        paths = [one.path for one in library.documents.listed() if known(one.path)]
        paths = paths[given.first :][: given.documents or None]
        table = library.extract(columns, filters={"within": paths})
        seconds = time.monotonic() - started
    lines = list[str]()
    for row in table.rows:
        for column, cell in zip(columns, row.cells, strict=True):
            assert cell is not None
            value = known(row.path).get(column.name)
            is_twofold = isinstance(value, list) and column.type != "list"
            kind = "missing" if value is None else "contradicted" if is_twofold else "there"
            right = value is not None and cell.is_filled and is_right(column, cell, value)
            outcome = "right" if right else "wrong" if cell.is_filled else "empty"
            counts[f"{kind}, {cell.state}, {outcome}"] += 1
            counts["without its value in the quotation"] += cell.is_filled and not quotes_value(column, cell)
            place = {"path": Path(row.path).name, "column": column.name, "kind": kind, "outcome": outcome}
            said = {"known": value, **cell_as_dict(cell)}
            lines.append(json.dumps(place | said, ensure_ascii=False))
            if (kind == "missing") == cell.is_filled or outcome == "wrong" or (is_twofold and cell.state == "stated"):
                print(lines[-1])
    if given.cells:
        given.cells.write_text("\n".join(lines) + "\n")
    for name, count in sorted(counts.items()):
        print(f"{count:5} {name}")
    for state in ("stated", "unsure"):
        right_of, wrong_of = (
            sum(count for name, count in counts.items() if name.endswith(f", {state}, {outcome}"))
            for outcome in ("right", "wrong")
        )
        filled = right_of + wrong_of
        print(f"{state}: {right_of} of {filled} right ({right_of / max(1, filled):.1%})")
    missing = sum(count for name, count in counts.items() if name.startswith("missing"))
    empty = counts["missing, not stated, empty"]
    print(f"missing: {empty} of {missing} not stated ({empty / max(1, missing):.1%})")
    if table.asked:
        print(f"{table.asked} questions in {seconds:.0f} s: {60 * table.asked / seconds:.0f} a minute")


if __name__ == "__main__":
    main()
