"""Ask every question of a labelled corpus and count right answers, right sources and refusals.

    .venv/bin/python scripts/measure/eval_answers.py corpus/questions.jsonl --library .local-rag --json answers.json

An answer is right when it holds every string that must be in it, of a list of alternatives one; a source is right when
a citation lies in the golden document, the first where an answer needs several. The log odds of each question are
written too, for choosing `answered_log_odds` in the registry.
"""

import argparse
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from local_rag import Answer, Library


def is_right(text: str, must_include: Sequence[str | Sequence[str]]) -> bool:
    """Say whether an answer holds every required string as words of its own; of a word, an ending may follow.

    Of a list of alternatives one is enough. Citations and thousands separators are left aside.
    """
    plain = _plain(re.sub(r"\s*\[[\d, ]+\]", "", text))
    wanted = [[part] if isinstance(part, str) else part for part in must_include]
    return all(
        any(re.search(rf"(?<!\w){re.escape(_plain(part))}(?!\d)", plain) for part in alternatives)
        for alternatives in wanted
    )


def _plain(text: str) -> str:
    return re.sub(r"(?<=\d)[,\u00a0 ](?=\d{3}\b)", "", text).lower()


def golden_document(question: dict[str, Any]) -> str | None:
    """Return the path of the document that answers a question, the first if several do, without its lines."""
    golden = question["golden"]
    return re.sub(r":\d+(-\d+)?$", "", golden[0]).removeprefix("../") if golden else None


def judge(question: dict[str, Any], answer: Answer, seconds: float) -> dict[str, Any]:
    """Return one row of the report."""
    golden = golden_document(question)
    return {
        "id": question["id"],
        "question": question["question"],
        "answerable": golden is not None,
        "answered": answer.answered,
        "right": golden is not None and answer.answered and is_right(answer.text, question.get("must_include", ())),
        "right_source": any(citation.passage.path.endswith(golden or "\0") for citation in answer.citations),
        "retrieved": any(passage.path.endswith(golden or "\0") for passage in answer.read),
        "answer": answer.text,
        "log_odds": answer.log_odds,
        "seconds": round(seconds, 1),
    }


def summarize(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Count what users care for."""
    answerable = [row for row in rows if row["answerable"]]
    others = [row for row in rows if not row["answerable"]]
    seconds = sorted(row["seconds"] for row in rows)
    return {
        "answerable": len(answerable),
        "right_document_retrieved": sum(row["retrieved"] for row in answerable),
        "answered": sum(row["answered"] for row in answerable),
        "right_answer": sum(row["right"] for row in answerable),
        "right_source": sum(row["right_source"] for row in answerable),
        "unanswerable": len(others),
        "refused": sum(not row["answered"] for row in others),
        "median_seconds": seconds[len(seconds) // 2] if seconds else None,
    }


def main() -> None:
    """Ask, print a line a question and the counts, and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--library", type=Path, default=Path(".local-rag"))
    parser.add_argument("--json", type=Path, help="where to write the report")
    parser.add_argument("--every", type=int, default=1, help="ask every Nth question only")
    arguments = parser.parse_args()
    rows = []
    lines = arguments.questions.read_text(encoding="utf-8").splitlines()
    with Library(arguments.library) as library:
        for line in lines[:: arguments.every]:
            question = json.loads(line)
            started = time.monotonic()
            answer = library.ask(question["question"])
            row = judge(question, answer, time.monotonic() - started)
            rows.append(row)
            verdict = "right" if row["right"] else "refused" if not row["answered"] else "WRONG"
            print(
                f"{row['id']} {verdict:8} {row['seconds']:5.1f} s  {row['question']} => {row['answer'][:120]!r}",
                flush=True,
            )
    report = {"all": summarize(rows), "questions": rows}
    print(json.dumps(report["all"]))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
