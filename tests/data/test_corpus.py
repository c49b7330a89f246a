"""The demo corpus and its labelled questions agree with each other."""

import json
import runpy
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pypdfium2
from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "corpus"
DOCUMENTS = sorted(path for path in CORPUS.rglob("*") if path.suffix in {".md", ".html", ".pdf"})
QUESTIONS: list[dict[str, Any]] = [
    json.loads(line) for line in (CORPUS / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
ANSWERABLE = [question for question in QUESTIONS if question["document"] is not None]
UNANSWERABLE = [question for question in QUESTIONS if question["document"] is None]


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
    return " ".join(text.split())


def test_documents_of_each_kind() -> None:
    kinds = Counter(path.suffix for path in DOCUMENTS)
    assert kinds == {".md": 16, ".html": 3, ".pdf": 1}


def test_nothing_else_would_be_indexed() -> None:
    others = {path.name for path in CORPUS.rglob("*") if path.is_file()} - {path.name for path in DOCUMENTS}
    assert others == {"questions.jsonl"}


def test_counts_and_ids() -> None:
    assert len(ANSWERABLE) >= 60
    assert len(UNANSWERABLE) == 15
    assert len({question["id"] for question in QUESTIONS}) == len(QUESTIONS)
    assert len({question["question"] for question in QUESTIONS}) == len(QUESTIONS)


def test_every_document_is_asked_about() -> None:
    assert {CORPUS / question["document"] for question in ANSWERABLE} == set(DOCUMENTS)


def test_each_passage_is_in_its_document_alone() -> None:
    wrong = {}
    for question in ANSWERABLE:
        passage = " ".join(question["passage"].split())
        holders = [path.relative_to(CORPUS).as_posix() for path in DOCUMENTS if passage in text_of(path)]
        if not passage or holders != [question["document"]]:
            wrong[question["id"]] = holders
    assert wrong == {}


def test_required_words_are_in_the_passage() -> None:
    wrong = [
        question["id"]
        for question in ANSWERABLE
        if not question["answer"]
        or not 1 <= len(question["must_include"]) <= 3
        or not all(words.lower() in question["passage"].lower() for words in question["must_include"])
    ]
    assert wrong == []


def test_unanswerable_questions_have_no_answer() -> None:
    wrong = [
        question["id"]
        for question in UNANSWERABLE
        if not question["question"]
        or (question["passage"], question["answer"], question["must_include"]) != (None, None, [])
    ]
    assert wrong == []


def test_committed_pdf_is_what_the_script_makes() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "make_corpus_pdf.py"))
    assert script["handbook_bytes"]() == (CORPUS / "manuals" / "lamp-changer-lc-12.pdf").read_bytes()
