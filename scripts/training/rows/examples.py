"""Make the examples of the planner: the tokens of a question with each view, and the programs that give its answer."""

import json
import pickle
import random
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tokenizers import Tokenizer

from local_rag.errors import LocalRagError
from local_rag.reading.read import parse
from local_rag.reading.relations import relations_of
from local_rag.store.database import Store
from local_rag.store.relation_rows import put_relations
from local_rag.tables.encoding import Encoded, encode
from local_rag.tables.mentions import mentions
from local_rag.tables.program import Program
from local_rag.tables.relation_set import RelationSet, relation_set
from local_rag.tables.views import View, are_versions, joins, unions, view_of
from scripts.training.rows.search import Rows, programs

TOKENIZER = Path(__file__).resolve().parents[3] / "models" / "minilm-l6-reader" / "tokenizer.json"


@dataclass(frozen=True, slots=True)
class Example:
    """A question with a view: its tokens, the column and kind of each mention, and its programs if the view fits."""

    question: str
    encoded: Encoded
    of_mentions: tuple[tuple[int, str], ...]
    kinds: tuple[str, ...]
    programs: tuple[Program, ...]
    source: str


@contextmanager
def opened(*paths: Path, text: bytes | None = None) -> Iterator[RelationSet]:
    """Open the relations of one file, or of several together."""
    documents = [parse(path, path.read_bytes() if text is None else text) for path in paths]
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder), create=True)
        for document in documents:
            sha256 = document.path.name
            key = store.put_document(document, (), size=0, modified_ns=0, sha256=sha256, split_key="")
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


def views_of(held: RelationSet) -> list[View]:
    """Return all views of a file."""
    single = [view_of(one) for one in held.named]
    found = list(single)
    for view in unions(held.named):
        if not any(are_versions(one, other, held) for one, other in pairwise(view.relations)):
            found.append(view)
    return [*found, *joins(single, held)]


def examples_of(
    question: str,
    gold: list[str],
    held: RelationSet,
    tokenizer: Tokenizer,
    source: str,
    *,
    kind: str = "",
    answerable: bool = True,
) -> Iterator[Example]:
    """Yield the question with each view; views of which no program gives the answer are none that fit."""
    views = views_of(held)
    single = [one for one in views if one.kind == "one"]
    # Of a workbook with a sheet for each month, two sheets are enough beside all of them together.
    spared = set(single[2:]) if len(single) > 3 else set()
    for view in views:
        if view in spared:
            continue
        mentioned = mentions(question, view, held)
        encoded = encode(tokenizer, question, view, mentioned, held)
        if encoded is None:
            continue
        rows = held.known.setdefault(("rows", id(view.relations), view.kind), None) or Rows(view, held)
        held.known[("rows", id(view.relations), view.kind)] = rows
        found = programs(rows, mentioned, gold, kind) if answerable and gold else []
        yield Example(
            question,
            encoded,
            tuple((one.column, one.kind) for one in mentioned),
            tuple(one.kind for one in view.columns),
            tuple(found),
            source,
        )


def of_sheets(folder: Path, tokenizer: Tokenizer) -> Iterator[tuple[dict, list[Example]]]:
    """Yield each question of a set of sheets with its examples, and some with the tables of another file."""
    by = defaultdict(list)
    for line in (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        by[one["file"]].append(one)
    draw = random.Random(5)
    for file, some in by.items():
        if not (folder / "files" / file).exists():
            continue
        with opened(folder / "files" / file) as held:
            for one in some:
                gold, kind, answerable = list(map(str, one["answer"] or [])), one.get("kind", ""), one["answerable"]
                made = examples_of(
                    one["question"], gold, held, tokenizer, folder.name, kind=kind, answerable=answerable
                )
                yield one, list(made)
            others = [one for name, rest in by.items() if name != file for one in rest if one["answerable"]]
            for one in draw.sample(others, min(len(others), len(some) // 2)):
                other = one | {"answerable": False, "elsewhere": True}
                yield other, list(examples_of(one["question"], [], held, tokenizer, folder.name, answerable=False))


def _plain(text: str) -> str:
    return text.replace("\\n", " ").replace("\\p", "|").replace("\\\\", "\\")


def of_wikitables(
    folder: Path, split: str, tokenizer: Tokenizer, most: int, first: int = 0, seed: int = 3
) -> Iterator[tuple[dict, list[Example]]]:
    """Yield questions of WikiTableQuestions, and some with another table."""
    lines = [line.split("\t") for line in (folder / f"{split}.tsv").read_text().splitlines()[1:]]
    draw = random.Random(seed)
    draw.shuffle(lines)
    by = defaultdict(list)
    for _, question, table, answer in lines[first:most]:
        by[table].append(
            {
                "file": table,
                "question": _plain(question),
                "answerable": True,
                "answer": list(map(_plain, answer.split("|"))),
            }
        )
    every = [one for some in by.values() for one in some]
    for table, some in by.items():
        path = folder / table
        try:
            with opened(path, text=path.read_text().replace('\\"', '""').encode()) as held:
                if not held.named or held.named[0].stored.rows > 400:
                    continue
                for one in some:
                    yield one, list(examples_of(one["question"], one["answer"], held, tokenizer, "wtq"))
                if draw.random() < 0.5:
                    one = draw.choice(every)
                    yield (
                        one | {"answerable": False, "elsewhere": True},
                        list(examples_of(one["question"], [], held, tokenizer, "wtq", answerable=False)),
                    )
        except (LocalRagError, ValueError, OSError) as error:  # one of two thousand tables
            print(table, repr(error)[:200], flush=True)


def main() -> None:
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    made, missed, started, total = [], [], time.time(), 0
    wiki = len(sys.argv) > 3
    for one, some in (
        of_wikitables(folder, sys.argv[3], tokenizer, int(sys.argv[4]), int(sys.argv[5]) if len(sys.argv) > 5 else 0)
        if wiki
        else of_sheets(folder, tokenizer)
    ):
        made.append((one, some))
        if one["answerable"]:
            total += 1
            if not any(example.programs for example in some):
                missed.append(one)
            if wiki and total % 200 == 0:
                print(total, len(missed), f"{time.time() - started:.0f} s", flush=True)
                out.write_bytes(pickle.dumps(made))
    out.write_bytes(pickle.dumps(made))
    print(len(made), "answerable", total, "missed", len(missed), f"{time.time() - started:.0f} s")
    for one in missed[:60]:
        print("  ", one["file"], "|", one["question"], "|", one["answer"][:4], "|", one.get("sql_hint"))


if __name__ == "__main__":
    main()
