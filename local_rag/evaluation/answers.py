"""Measure answers: ask every question and count right, wrong and refused answers.

An answer is right if it contains one string of each group in `must_include` as separate words. If a question has only a
reference `answer`, an answer is right if enough content words of one occur in the other and every number also occurs in
the reference or the question. This measure is rough, but good enough to compare two runs.
"""

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median
from typing import Any

from local_rag.evaluation.dataset import Dataset, Question
from local_rag.evaluation.metrics import by_question, paired_test
from local_rag.index.keyword_index import keyword_tokens
from local_rag.library import Library
from local_rag.records import Answer, Progress, Turn

_THOUSANDS = re.compile(r"(?<=\d)[,\u00a0\u202f ](?=\d{3}\b)")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_CITATIONS = re.compile(r"\s*\[[\d, ]+\]")
_ENOUGH = 0.5  # the share of content words of one answer that the other must contain


def measure_answers(
    dataset: Dataset, questions: Sequence[Question], library: Library, progress: Callable[[Progress], None]
) -> list[dict[str, Any]]:
    """Ask each question that is marked answerable or unanswerable, and return one row per question."""
    asked = [one for one in questions if one.answerability in {"answerable", "unanswerable"}]
    document_of = {chunk: document.id for document in dataset.documents for chunk in document.chunks}
    rows = []
    for number, question in enumerate(asked):
        progress(Progress("answer", number, len(asked)))
        started = time.perf_counter()
        answer = library.ask(question.text, earlier=[Turn(one) for one in question.earlier], counted=False)
        seconds = time.perf_counter() - started
        golden = {document_of[chunk] for chunk in question.chunks} | golden_documents(question)
        rows.append(judge(question, golden, answer, seconds))
    progress(Progress("answer", len(asked), len(asked)))
    return rows


def judge(question: Question, golden: Collection[str], answer: Answer, seconds: float) -> dict[str, Any]:
    """Compare an answer with the reference of its question and with the golden documents."""
    read = {passage.path for passage in answer.read}
    cited = {citation.passage.path for citation in answer.citations}
    return {
        "question": question.text,
        "answerable": question.answerability == "answerable",
        "answered": answer.answered,
        "right": answer.answered and question.answerability == "answerable" and is_right(question, answer.text),
        "cited_right": any(_same(path, name) for path in cited for name in golden),
        "golden_documents": len(golden),
        "read_documents": sum(any(_same(path, name) for path in read) for name in golden),
        "flagged": answer.answered and not all(one.supported for one in answer.support),
        "log_odds": answer.log_odds,
        "seconds": seconds,
        "answer": answer.text,
    }


def golden_documents(question: Question) -> set[str]:
    """Return the documents of a question's golden documents, spans and lines."""
    return {*question.documents, *(one.document for one in question.spans), *(one.path for one in question.lines)}


def _same(path: str, name: str) -> bool:
    return path == name or path.endswith(f"/{name}")


def is_right(question: Question, text: str) -> bool:
    """Return whether an answer is right; word endings and thousands separators do not matter."""
    normalized = _normalized(text)
    if question.must_include:
        return says_all(text, question.must_include)
    reference = _normalized(question.answer)
    theirs, ours, asked = (set(keyword_tokens(part)) for part in (reference, normalized, question.text))
    ours, theirs = ours - asked or ours, theirs - asked or theirs
    numbers = [set(_NUMBER.findall(part)) for part in (normalized, reference, _normalized(question.text))]
    if not ours or not theirs or numbers[0] - numbers[1] - numbers[2]:
        return False
    shared = len(ours & theirs)
    return max(shared / len(ours), shared / len(theirs)) >= _ENOUGH


def says_all(text: str, groups: Sequence[Sequence[str]]) -> bool:
    """Return whether a text contains one string of each group."""
    normalized = _normalized(text)
    return all(any(_says(normalized, _normalized(one)) for one in group) for group in groups)


def _normalized(text: str) -> str:
    return _THOUSANDS.sub("", _CITATIONS.sub("", text)).lower()


def _says(text: str, wanted: str) -> bool:
    return re.search(rf"(?<!\w)(?<!\d[.,]){re.escape(wanted)}(?![.,]?\d)", text) is not None


def summarize_answers(rows: Sequence[Mapping[str, Any]], questions: int) -> dict[str, Any]:
    """Count the kinds of answers; of all `questions`, those neither answerable nor unanswerable were not asked."""
    answerable = [row for row in rows if row["answerable"]]
    unanswerable = [row for row in rows if not row["answerable"]]
    right = [row for row in answerable if row["right"]]
    several = [row for row in answerable if row["golden_documents"] > 1]
    return {
        "answerable": len(answerable),
        "right": len(right),
        "wrong": sum(row["answered"] and not row["right"] for row in answerable),
        "refused_answerable": sum(not row["answered"] for row in answerable),
        "unanswerable": len(unanswerable),
        "refused": sum(not row["answered"] for row in unanswerable),
        "other": questions - len(rows),
        "cited_right": sum(row["cited_right"] for row in answerable),
        "flagged": sum(row["flagged"] for row in rows),
        "flagged_right": sum(row["flagged"] for row in right),
        "of_several_documents": len(several),
        "all_documents_read": sum(row["read_documents"] == row["golden_documents"] for row in several),
        "median_seconds": median(row["seconds"] for row in rows) if rows else 0.0,
    }


def compare_answers(rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Compare how many questions two runs got right: answered correctly, or refused if that is correct."""
    theirs = by_question(others)
    both = [(row, theirs[name]) for name, row in by_question(rows).items() if name in theirs]
    values = [[float(_is_good(row)) for row in side] for side in zip(*both, strict=True)] or [[], []]
    return {
        "questions": len(both),
        "this": sum(values[0]),
        "other": sum(values[1]),
        "p": paired_test(*values) if both else 1.0,
    }


def _is_good(row: Mapping[str, Any]) -> bool:
    return bool(row["right"] if row["answerable"] else not row["answered"])
