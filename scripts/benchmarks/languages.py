"""Measure how close passages are to questions in other languages, and to questions about nothing in the documents.

    LOCAL_RAG_CONTEXT_MINUTES=0 local-rag index corpus --profile starter-multilingual --library L
    python -m scripts.benchmarks languages --library L --json docs/measurements/languages.json

For each language: for how many of the questions of `corpus/languages` a source shares a word with the question
(`close_words`), the cosine of the best passage, and how many reach the threshold of the embedder (`close_meaning`). The
same for questions about what is not in the documents (`off_topic`).
"""

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from local_rag import Library
from local_rag.answering.attribution import Attributor
from local_rag.answering.selection import select_sources
from local_rag.models.choice import find

FOLDER = Path(__file__).parents[2] / "corpus" / "languages"


def measure(library: Library, questions: Sequence[str], close_from: float) -> dict[str, Any]:
    """Return the figures of some questions."""
    cosines, shared = list[float](), 0
    for question in questions:
        found = library.search(question)
        sources = select_sources(question, [found], count_tokens=lambda text: len(text) // 4, reader=None)
        shared += Attributor(question, sources).is_close
        cosines.append(max(hit.score for one in found for hit in one.hits if hit.list_name == "dense"))
    return {
        "questions": len(questions),
        "close_words": shared,
        "close_meaning": sum(cosine >= close_from for cosine in cosines),
        "cosine_least": round(min(cosines), 3),
        "cosine_median": round(statistics.median(cosines), 3),
        "cosine_most": round(max(cosines), 3),
    }


def main() -> None:
    """Measure, print and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    asked: dict[str, dict[str, list[str]]] = defaultdict(lambda: {"answerable": [], "off_topic": []})
    for name, kind in (("questions", "answerable"), ("off-topic", "off_topic")):
        for line in (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            asked[row["language"]][kind].append(row["question"])
    with Library(arguments.library) as library:
        close_from = find(library.settings, "embed").close_from or 1.0
        report: dict[str, Any] = {"close_from": close_from}
        for language, kinds in asked.items():
            report[language] = {kind: measure(library, questions, close_from) for kind, questions in kinds.items()}
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
