"""Turn three public evaluation sets into datasets for `local-rag eval`.

    python -m scripts.benchmarks prepare_eval SOURCE_FOLDER OUTPUT_FOLDER

SOURCE_FOLDER has these folders, each as its authors publish it, or is one of them:
  codebases/            codebase_chunks.json and evaluation_set.jsonl of Anthropic's cookbook
  scifact/              corpus.jsonl, queries.jsonl and qrels/test.tsv of BEIR's SciFact
  chunking-evaluation/  questions_df.csv and the Markdown files of Chroma's chunking evaluation
docs/results.md says where to download them.

A question of chunking-evaluation with one short excerpt, in which one or two numbers or names are new, gets them as
`must_include`: a right answer says them.
"""

import argparse
import csv
import json
import re
from pathlib import Path
from typing import Any

from local_rag.errors import DatasetError
from local_rag.evaluation.dataset import load_dataset, write_dataset
from local_rag.text.facts import Source, find_facts, normalize

_SHORT = 40  # words of an excerpt whose numbers or names are what a question asks for
_MOST_WANTED = 2
_NOT_WANTED = re.compile(r"1|2019s|201[cd]\w*")  # a 1 may count anything; the others are broken quotation marks
_JOINTS = (" ", ". ", ", ", "-", " de ")  # between the parts of a name

Records = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def read_codebases(folder: Path) -> Records:
    """Keep the ready-made chunks, which the questions name as golden."""
    documents = []
    for source in json.loads(_read(folder / "codebase_chunks.json")):
        chunks = [
            {"id": f"{source['original_uuid']}#{chunk['original_index']}", "text": chunk["content"]}
            for chunk in source["chunks"]
        ]
        # The names of the files are not published, so there is no title.
        documents.append(
            {
                "id": source["original_uuid"],
                "title": "",
                "kind": "code",
                "text": source["content"],
                "chunks": chunks,
            }
        )
    questions = [
        {"question": source["query"], "golden": [f"{uuid}#{index}" for uuid, index in source["golden_chunk_uuids"]]}
        for source in _read_lines(folder / "evaluation_set.jsonl")
    ]
    return documents, questions


def read_scifact(folder: Path) -> Records:
    """Keep all abstracts and the 300 test claims, with the golden documents of the judgements."""
    documents = [
        {"id": source["_id"], "title": source["title"], "text": source["text"]}
        for source in _read_lines(folder / "corpus.jsonl")
    ]
    texts = {source["_id"]: source["text"] for source in _read_lines(folder / "queries.jsonl")}
    golden: dict[str, list[str]] = {}
    for row in csv.DictReader(_read(folder / "qrels" / "test.tsv").splitlines(), delimiter="\t"):
        if int(row["score"]) > 0:
            golden.setdefault(row["query-id"], []).append(row["corpus-id"])
    return documents, [{"question": texts[query], "golden": ids} for query, ids in golden.items()]


def read_chunking_evaluation(folder: Path) -> Records:
    """Keep whole documents and the spans that answer each question, and derive what a right answer must include."""
    documents = [
        {"id": path.stem, "title": path.stem.replace("_", " ").capitalize(), "kind": "text", "text": _read(path)}
        for path in sorted([*folder.glob("*.md"), *folder.glob("corpora/*.md")])
        if path.name not in {"README.md", "NOTE.md"}
    ]
    questions = []
    with (folder / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            references = json.loads(row["references"])
            golden = [
                {"document": row["corpus_id"], "start": reference["start_index"], "end": reference["end_index"]}
                for reference in references
            ]
            question: dict[str, Any] = {"question": row["question"], "golden": golden}
            excerpt = " ".join(references[0]["content"].split()) if len(references) == 1 else ""
            if wanted := wanted_of(row["question"], excerpt):
                question |= {"must_include": wanted, "answer": excerpt}
            questions.append(question)
    return documents, questions


def wanted_of(question: str, excerpt: str) -> list[str]:
    """Return the numbers, or else the names, that a short excerpt adds to a question; none if there are too many."""
    if len(excerpt.split()) > _SHORT:
        return []
    text, asked = normalize(excerpt), Source(question)
    new = [fact for fact in find_facts(text) if not fact.occurs_in(asked) and not _NOT_WANTED.fullmatch(fact.text)]
    # A number at the end of brackets is a year or a number of a reference.
    numbers = [
        fact.text
        for fact in new
        if re.search(r"\d", fact.text) and not re.search(rf"\((?:[^()]*\s)?{re.escape(fact.text)}\)", text)
    ]
    spans = list[tuple[int, int]]()
    for fact in new:
        start, end = fact.start, fact.start + len(fact.text)
        if not re.search(r"\d", fact.text):
            joined = spans and text[spans[-1][1] : start] in _JOINTS
            spans.append((spans.pop()[0] if joined else start, end))
    # The first word may only begin the sentence.
    wanted = list(dict.fromkeys(numbers or [text[start:end] for start, end in spans if start]))
    return wanted if len(wanted) <= _MOST_WANTED else []


READERS = {
    "codebases": ("codebase_chunks.json", read_codebases),
    "scifact": ("corpus.jsonl", read_scifact),
    "chunking-evaluation": ("questions_df.csv", read_chunking_evaluation),
}


def _read(path: Path) -> str:
    """Read text without changing its newlines, because offsets depend on them."""
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def _read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in _read(path).split("\n") if line.strip()]


def main() -> None:
    """Prepare every set in the source folder, and check that it can be loaded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("output", type=Path)
    arguments = parser.parse_args()
    found = 0
    for name, (marker, read) in READERS.items():
        folder = next((path for path in (arguments.source / name, arguments.source) if (path / marker).exists()), None)
        if folder is None:
            continue
        found += 1
        try:
            write_dataset(arguments.output / name, *read(folder))
            dataset = load_dataset(arguments.output / name)
        except (OSError, KeyError, ValueError, DatasetError) as error:
            parser.exit(1, f"{folder} is not {name} as published ({error}); fetch it again.\n")
        print(f"{arguments.output / name}: {len(dataset.documents)} documents, {len(dataset.questions)} questions")
    if not found:
        parser.exit(1, f"{arguments.source} contains none of {', '.join(READERS)}; see --help.\n")
