"""Answer questions about the generated sheets of an office by code, and count right, wrong and refused answers.

    python -m scripts.benchmarks sheets [--seed 7] [--failures] [--held-out] [--folder FOLDER] [--json FILE]

No model takes part. With --failures, each question of the wordings that are not held out is shown that was not answered
rightly, with the class of its failure; with --held-out, those of the others too.
"""

import argparse
import json
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from local_rag.answer_records import TableAnswer
from local_rag.reading.read import read
from local_rag.reading.relations import relations_of
from local_rag.store.database import Store
from local_rag.store.relation_rows import put_relations
from local_rag.tables.answer import FromRows, answer_from_rows
from local_rag.tables.relation_set import RelationSet, relation_set
from scripts.benchmarks._office_sheets import Asked, Office, questions


def open_tables(folder: Path, library: Path) -> RelationSet:
    """Return the tables of all files in a folder, stored in a library without an index."""
    store = Store(library, create=True)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            document = read(path)
            key = store.put_document(document, (), size=0, modified_ns=0, sha256=str(path), split_key="")
            put_relations(store, [(key, relations_of(document))])

    @contextmanager
    def open_store() -> Any:
        yield store

    return relation_set(store, None, open_store)


def is_right(wanted: Any, table: TableAnswer) -> bool:
    """Return whether an answer has the value that is known to be right."""
    values = {one.label: one.value for one in table.values}
    if isinstance(wanted, tuple):  # the value of a row, however the row is called
        return any(_same(wanted[1], value) for value in (table.value, *values.values()))
    if isinstance(wanted, dict):
        return values.keys() == wanted.keys() and all(_same(wanted[name], values[name]) for name in wanted)
    if isinstance(wanted, list):
        found = [*values] or [str(table.value)]
        return sorted(found) == sorted(wanted)
    if isinstance(wanted, str):
        return str(table.value) == wanted
    return _same(wanted, table.value)


def _same(wanted: Any, value: Any) -> bool:
    return isinstance(value, int | float) and abs(abs(value) - abs(wanted)) <= max(0.006, 1e-6 * abs(wanted))


def outcome_of(asked: Asked, found: FromRows | None) -> str:
    """Return `right`, `wrong` or `passages` for an answer; an unanswerable question is left to passages rightly."""
    if found is None:
        return "passages"
    return "right" if asked.answer is not None and is_right(asked.answer, found.table) else "wrong"


def main() -> None:
    """Generate the sheets, ask, and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder, office = options.folder or Path(temporary) / "office", Office(options.seed)
        office.write(folder)
        library = Path(temporary) / "library"
        library.mkdir()
        tables, results, seconds = open_tables(folder, library), list[tuple[Asked, str]](), list[float]()
        for asked in questions(office):
            started = time.perf_counter()
            found = answer_from_rows(asked.question, tables)
            seconds.append(time.perf_counter() - started)
            results.append((asked, outcome := outcome_of(asked, found)))
            fine = outcome == "right" or (asked.answer is None and outcome != "wrong")
            if options.failures and not fine and (options.held_out or not asked.held_out):
                said = (found.table.said, found.table.value) if found else None
                print(
                    f"{outcome:9}{asked.kind:12}{asked.question}\n{'':9}wanted {asked.answer!r:.80}, got {said!s:.200}"
                )
    report = {
        "all": _report(results),
        "seconds": round(sum(seconds) / len(seconds), 4),
        "slowest": round(max(seconds), 3),
    }
    for name, held_out in (("wordings looked at", False), ("wordings held out", True)):
        report[name] = _report([one for one in results if one[0].held_out == held_out])
    print(json.dumps(report, indent=1))
    if options.json:
        options.json.write_text(json.dumps(report), encoding="utf-8")


def _report(results: list[tuple[Asked, str]]) -> dict[str, Any]:
    known = Counter(outcome for asked, outcome in results if asked.answer is not None)
    unknown = Counter(outcome for asked, outcome in results if asked.answer is None)
    answered = known["right"] + known["wrong"]
    return {
        "questions": sum(known.values()),
        "answered": f"{100 * answered / max(1, sum(known.values())):.1f} %",
        "right of answered": f"{100 * known['right'] / max(1, answered):.1f} %",
        **known,
        "unanswerable": dict(unknown),
        "not right, by kind": dict(
            Counter(asked.kind for asked, outcome in results if asked.answer is not None and outcome != "right")
        ),
    }
