"""The demo corpus and its labelled questions agree with each other."""

import json
import runpy
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pypdfium2
from bs4 import BeautifulSoup

from local_rag.evaluation.answer_figures import is_right, says_all
from local_rag.evaluation.dataset import Question, load_dataset

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "corpus"
# Without libraries, such as `local-rag eval corpus/look-alikes` leaves in the checkout.
FILES = sorted(path for path in CORPUS.rglob("*") if path.is_file() and ".local-rag" not in path.parts)
DOCUMENTS = [path for path in FILES if path.suffix in {".md", ".html", ".pdf"}]
WHOLE = CORPUS / "whole-documents"


def says(text: str, must_include: list[str | list[str]]) -> bool:
    return says_all(text, [[one] if isinstance(one, str) else one for one in must_include])


def read_questions(folder: Path) -> list[dict[str, Any]]:
    """Read the questions of a dataset, each with the paths and the lines, if any, of what answers it."""
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions: list[dict[str, Any]] = [json.loads(line) for line in lines]
    for question in questions:
        parts = [golden.partition(":") for golden in question["golden"]]
        question["paths"] = [(folder / path).resolve() for path, _, _ in parts]
        question["lines"] = [[int(number) for number in span.split("-") if number] for _, _, span in parts]
        passages = question.get("passage", [])
        question["passages"] = [passages] if isinstance(passages, str) else passages
    return questions


QUESTIONS = read_questions(CORPUS)
WHOLE_DOCUMENTS = read_questions(WHOLE)
EVERY = QUESTIONS + WHOLE_DOCUMENTS
ANSWERABLE = [question for question in QUESTIONS if question["answerability"] == "answerable"]
UNANSWERABLE = [question for question in QUESTIONS if question["answerability"] == "unanswerable"]


def one_line(text: str) -> str:
    """Return a text with single spaces."""
    return " ".join(text.split())


@cache
def text_of(path: Path) -> str:
    """Read a document's text with single spaces, by other means than the program's own reader."""
    if path.suffix == ".md":
        text = path.read_text(encoding="utf-8")
    elif path.suffix == ".html":
        main = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser").main
        assert main is not None, path
        text = main.get_text()
    else:
        with pypdfium2.PdfDocument(path) as pdf:
            text = "\n".join(page.get_textpage().get_text_range() for page in pdf)
    return one_line(text)


def stands_in(passage: str, path: Path, first: int, last: int) -> bool:
    """Say whether a passage stands in these lines of a file, of which the first is 1."""
    return one_line(passage) in one_line("\n".join(path.read_text(encoding="utf-8").split("\n")[first - 1 : last]))


def test_documents_of_each_kind() -> None:
    kinds = Counter(path.suffix for path in DOCUMENTS)
    assert kinds == {".md": 16, ".html": 3, ".pdf": 1}


def test_nothing_else_would_be_indexed() -> None:
    others = {path.name for path in FILES} - {path.name for path in DOCUMENTS}
    # The look-alike set is for measuring: files of JSON lines are no documents.
    assert others == {"questions.jsonl", "documents.jsonl", "facts.jsonl", "off-topic.jsonl"}


def test_counts_and_ids() -> None:
    kinds = Counter(question["kind"] for question in EVERY)
    assert kinds == {"fact": 88, "two-documents": 25, "how-to": 20, "unanswerable": 45, "whole-document": 20}
    assert len({question["id"] for question in EVERY}) == len(EVERY)
    assert len({question["question"].lower() for question in EVERY}) == len(EVERY)


def test_each_kind_is_split_about_half_and_half() -> None:
    for kind in {question["kind"] for question in EVERY}:
        parts = [Question(question["question"]).part for question in EVERY if question["kind"] == kind]
        assert 0.45 <= parts.count("choose") / len(parts) <= 0.55, kind


def test_every_document_is_asked_about() -> None:
    for questions in (ANSWERABLE, WHOLE_DOCUMENTS):
        assert {path for question in questions for path in question["paths"]} == set(DOCUMENTS)


def test_kinds_tell_how_many_documents_answer() -> None:
    for question in EVERY:
        documents = {"unanswerable": 0, "two-documents": 2}.get(question["kind"], 1)
        assert len(set(question["paths"])) == documents, question["id"]


def test_each_passage_is_in_its_document_alone() -> None:
    wrong = {}
    for question in ANSWERABLE:
        for path, passage in zip(question["paths"], question["passages"], strict=True):
            holders = [document for document in DOCUMENTS if one_line(passage) in text_of(document)]
            if not passage or holders != [path]:
                wrong[question["id"]] = holders
    assert wrong == {}


def test_golden_lines_hold_the_passage_and_no_line_beside() -> None:
    for question in ANSWERABLE:
        for path, lines, passage in zip(question["paths"], question["lines"], question["passages"], strict=True):
            assert bool(lines) == (path.suffix == ".md"), question["id"]
            if lines:
                first, last = lines[0], lines[-1]
                held = [
                    stands_in(passage, path, *some) for some in ((first, last), (first + 1, last), (first, last - 1))
                ]
                assert held == [True, False, False], question["id"]


def test_required_words_are_in_what_answers() -> None:
    for question in ANSWERABLE:
        assert 1 <= len(question["must_include"]) <= 4, question["id"]
        texts = question["passages"] + [text_of(path) for path in question["paths"] if question["kind"] != "fact"]
        assert says(" ".join(texts), question["must_include"]), question["id"]
    for question in WHOLE_DOCUMENTS:
        assert says(text_of(question["paths"][0]), question.get("must_include", [])), question["id"]


def test_the_answer_given_is_right_and_the_question_repeated_is_not() -> None:
    for question in ANSWERABLE + [question for question in WHOLE_DOCUMENTS if "must_include" in question]:
        assert says(question["answer"], question["must_include"]), question["id"]
        assert not says(question["question"], question["must_include"]), question["id"]


def test_the_answer_given_is_judged_right_with_all_its_conditions() -> None:
    for question in [*load_dataset(CORPUS).questions, *load_dataset(WHOLE).questions]:
        assert not question.must_include or is_right(question, question.answer), question.text


def test_unanswerable_questions_have_no_answer() -> None:
    for question in UNANSWERABLE:
        assert question["kind"] == "unanswerable"
        assert question["golden"] == []
        assert not {"passage", "answer", "must_include"} & set(question), question["id"]


def test_committed_pdf_is_what_the_script_makes() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "corpus" / "make_pdf.py"))
    assert script["handbook_bytes"]() == (CORPUS / "manuals" / "lamp-changer-lc-12.pdf").read_bytes()
