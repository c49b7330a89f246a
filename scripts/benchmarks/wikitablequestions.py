"""Answer WikiTableQuestions by code: how many questions are answered, and how many rightly.

    python -m scripts.benchmarks wikitablequestions FOLDER [--split pristine-unseen-tables] [--questions 0] [--failures]
        [--json FILE]

FOLDER holds the published set: `pristine-unseen-tables.tsv`, `training.tsv` and `csv/`.
"""

import argparse
import json
import random
import re
import tempfile
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from local_rag.answer_records import TableAnswer
from local_rag.reading.read import parse
from local_rag.reading.relations import relations_of
from local_rag.store.database import Store
from local_rag.store.relation_rows import put_relations
from local_rag.tables.answer import answer_from_rows
from local_rag.tables.relation_set import RelationSet, relation_set
from local_rag.text.cell_values import read_date

_NUMBER = re.compile(r"[^\d-]*(-?[\d,]*\d(?:\.\d+)?)\s*[a-z%]*")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of the set, with its table and the values of its answer."""

    key: str
    question: str
    table: str
    answer: tuple[str, ...]


def load(folder: Path, split: str) -> list[Asked]:
    """Read a part of the set."""
    lines = (folder / f"{split}.tsv").read_text(encoding="utf-8").splitlines()[1:]
    fields = [line.split("\t") for line in lines]
    return [Asked(one[0], _plain(one[1]), one[2], tuple(map(_plain, one[3].split("|")))) for one in fields]


def _plain(text: str) -> str:
    return text.replace("\\n", " ").replace("\\p", "|").replace("\\\\", "\\")


@contextmanager
def open_table(path: Path) -> Iterator[RelationSet]:
    """Open the relations of one table; its file escapes quotation marks with backslashes."""
    document = parse(path, path.read_text(encoding="utf-8").replace('\\"', '""').encode())
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), create=True)
        key = store.put_document(document, (), size=0, modified_ns=0, sha256=path.name, split_key="")
        put_relations(store, [(key, relations_of(document))])

        @contextmanager
        def open_store() -> Iterator[Store]:
            yield store

        held = relation_set(store, None, open_store)
        try:
            yield held
        finally:
            held.close()
            store.close()


def values_of(table: TableAnswer) -> list[str]:
    """Return what an answer says."""
    return [str(table.value)] if table.value is not None else [one.label for one in table.values]


def is_right(answer: Sequence[str], table: TableAnswer) -> bool:
    """Return whether an answer is the known one: as a text, a number or a date."""
    one_group = len(table.values) == 1 and table.value is not None
    return _are_same(values_of(table), answer) or (one_group and _are_same([str(table.values[0].value)], answer))


def _are_same(found: Sequence[str], answer: Sequence[str]) -> bool:
    left = list(answer)
    for one in found:
        same = next((other for other in left if _is_same(one, other)), None)
        if same is None:
            return False
        left.remove(same)
    return not left


def _is_same(one: str, other: str) -> bool:
    if _bare(one) == _bare(other) or (read_date(other) is not None and one == read_date(other)):
        return True
    first, second = _number(one), _number(other)
    return first is not None and second is not None and abs(abs(first) - abs(second)) < 1e-6  # noqa: PLR2004


def _bare(text: str) -> str:
    plain = "".join(one for one in unicodedata.normalize("NFKD", text) if unicodedata.category(one) != "Mn")
    plain = re.sub("[\u2010-\u2015\u2212]", "-", plain).strip().lower().strip('"')
    plain = re.sub(r"\s*\([^)]*\)$|\s*\[[^\]]*\]", "", re.sub("[\u2018\u2019]", "'", plain))
    return " ".join(plain.split()).strip(" .")


def _number(text: str) -> float | None:
    match = _NUMBER.fullmatch(text.strip().lower())
    return float(match[1].replace(",", "")) if match else None


def main() -> None:
    """Ask all questions, and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--split", default="pristine-unseen-tables")
    parser.add_argument("--questions", type=int, default=0, help="how many, drawn at random; 0: all")
    parser.add_argument("--failures", action="store_true", help="show each answer that is wrong")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    every = load(options.folder, options.split)
    chosen = random.Random(3).sample(every, options.questions) if options.questions else every  # noqa: S311
    by_table = defaultdict[str, list[Asked]](list)
    for asked in chosen:
        by_table[asked.table].append(asked)
    counts, seconds = Counter[str](), list[float]()
    for table, some in by_table.items():
        with open_table(options.folder / table) as held:
            for asked in some:
                started = time.perf_counter()
                found = answer_from_rows(asked.question, held)
                seconds.append(time.perf_counter() - started)
                outcome = (
                    "not answered" if found is None else "right" if is_right(asked.answer, found.table) else "wrong"
                )
                counts[outcome] += 1
                if options.failures and found and outcome == "wrong":
                    print(f"{asked.key} {asked.question}\n{'':8}wanted {asked.answer}")
                    print(f"{'':8}got {values_of(found.table)[:4]}, {found.table.said:.160}")
    report = {**_shares(counts), "seconds, median": round(median(seconds), 4)}
    print(json.dumps(report, indent=1))
    if options.json:
        options.json.write_text(json.dumps(report), encoding="utf-8")


def _shares(counts: Counter[str]) -> dict[str, Any]:
    answered, total = counts["right"] + counts["wrong"], sum(counts.values())
    return {
        "questions": total,
        "answered": f"{answered / max(1, total):.1%}",
        "right of answered": f"{counts['right'] / max(1, answered):.1%}",
        **counts,
    }


if __name__ == "__main__":
    main()
