"""Answer WikiTableQuestions by code: of the forms that can be asked here, how many are answered, and how many rightly.

    python -m scripts.benchmarks wikitablequestions FOLDER [--split pristine-unseen-tables] [--questions 0] [--failures]
        [--json FILE]

FOLDER holds the published set: `pristine-unseen-tables.tsv`, `training.tsv` and `csv/`. A form is supported if it asks
for a count, a sum, an average, a difference, the highest or lowest, or the cells of rows by their values. What goes by
the order of rows ("the next", "consecutive"), asks for a share or a median, or is no question that code can read, is
not. Each failure is classed: no reading has the right answer (operation), another column has it (column), other rows
have it (value), or nothing in the table is it (not expressible). Each question has one table, so none fails by table.
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
from typing import Any

from local_rag.reading.read import parse
from local_rag.reading.relations import relations_of
from local_rag.records import TableAnswer
from local_rag.store.database import Store
from local_rag.store.relation_rows import put_relations
from local_rag.tables.answer import answer_from_rows
from local_rag.tables.question_words import read_words
from local_rag.tables.refusals import FromRows
from local_rag.tables.relation_set import RelationSet, relation_set
from local_rag.text.cell_values import read_date

_BY_ORDER = re.compile(
    r"\b(?:next|previous(?:ly)?|consecutive\w*|in a row|directly|immediately|right (?:after|before)|followed|following"
    r"|follows|preced\w+|after the|before the|listed (?:first|last|after|before|above|below)|above|below|top of"
    r"|last (?:on|in) the|first (?:on|in) the|other than|besides)\b",
    re.IGNORECASE,
)
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


def is_supported(question: str) -> bool:
    """Return whether a question is of a form that can be asked here, whatever is in its table."""
    said = read_words(question)
    return bool(said and not said.not_said and (said.computes or said.focus) and not _BY_ORDER.search(question))


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


def class_of(asked: Asked, found: FromRows | None, held: RelationSet) -> str:
    """Return why a question was not answered rightly."""
    if found is None or found.table is None:
        if found and found.unknown:
            return "value"
        return "column" if found and "can be read in" in found.refusal else "operation"
    columns = [{_bare(str(row[at])) for row in _rows(held)} for at in range(_width(held))]
    wanted, said = {_bare(one) for one in asked.answer}, {_bare(one) for one in values_of(found.table)}
    of_wanted = [at for at, values in enumerate(columns) if wanted <= values]
    of_said = [at for at, values in enumerate(columns) if said <= values]
    counts = [len(_rows(held)), *map(len, columns)]
    if all(_number(one) is not None for one in asked.answer) and found.table.value is not None:
        number = _number(asked.answer[0])
        if number in counts or found.table.said.startswith("number of") != (not of_wanted):
            return "operation"
        sums = [sum(one for value in column if (one := _number(value)) is not None) for column in columns]
        return "column" if number in sums or (of_wanted and not set(of_wanted) & set(of_said)) else "value"
    if not of_wanted:
        return "not expressible"
    return "value" if set(of_wanted) & set(of_said) else "column"


def _rows(held: RelationSet) -> list[tuple[Any, ...]]:
    return held.query(f'SELECT * FROM "{held.named[0].table}"').rows if held.named else []  # noqa: S608


def _width(held: RelationSet) -> int:
    return len(held.named[0].columns) if held.named else 0


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
    counts, classes, seconds = defaultdict[bool, Counter[str]](Counter), defaultdict[str, Counter[str]](Counter), 0.0
    for table, some in by_table.items():
        with open_table(options.folder / table) as held:
            for asked in some:
                started = time.perf_counter()
                found = answer_from_rows(asked.question, held)
                seconds += time.perf_counter() - started
                supported, answer = is_supported(asked.question), found.table if found else None
                outcome = "not answered" if answer is None else "right" if is_right(asked.answer, answer) else "wrong"
                counts[supported][outcome] += 1
                if supported and outcome != "right":
                    classes[outcome][class_of(asked, found, held)] += 1
                if options.failures and outcome == "wrong" and answer:
                    print(
                        f"{class_of(asked, found, held):16}{asked.key} {asked.question}\n{'':16}wanted {asked.answer}"
                    )
                    print(f"{'':16}got {values_of(answer)[:4]}, {answer.said:.160}")
    report = {
        "questions": len(chosen),
        "all": _shares(counts[True] + counts[False]),
        "supported forms": _shares(counts[True]),
        "wrong, by class": dict(classes["wrong"]),
        "not answered, by class": dict(classes["not answered"]),
        "seconds a question": round(seconds / max(1, len(chosen)), 4),
    }
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
