"""scripts/benchmarks/find.py and versions.py: what they plant is found, with fakes for the models."""

from pathlib import Path

from local_rag.library import Library
from scripts.benchmarks.find import (
    CORPUS,
    LOOK_ALIKES,
    SUBJECTS,
    corpus_documents,
    fact_questions,
    look_alike_documents,
    measure_words,
    write_documents,
)
from scripts.benchmarks.versions import families_of, write_pairs
from tests.fakes import EMBEDS_QUICKLY


def test_every_planted_count_is_right(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    planted, of_subject = write_documents(folder, 80)
    assert set(of_subject) == set(SUBJECTS)
    assert all(one.documents for one in planted)
    with Library(tmp_path / "library", profile="tiny", context="headings", parts=EMBEDS_QUICKLY) as library:
        library.index([folder])
        measured = measure_words(library, planted)
    # The trained reader of questions takes one wording of ten for another; what is read rightly is counted rightly.
    assert measured["questions"] == 18
    assert measured["right"] >= 16


def test_the_labels_name_documents_of_the_corpus(tmp_path: Path) -> None:
    for name, write, subjects in (("read", corpus_documents, CORPUS), ("alike", look_alike_documents, LOOK_ALIKES)):
        folder = tmp_path / name
        folder.mkdir()
        of_subject = write(Path("corpus"), folder)
        assert list(of_subject) == list(subjects)
        assert all(of_subject.values())
        assert set().union(*of_subject.values()) <= {path.name for path in folder.rglob("*.*")}


def test_all_planted_pairs_of_versions_are_found_and_no_look_alike_is_one(tmp_path: Path) -> None:
    folder = (tmp_path / "rules").resolve()
    folder.mkdir()
    pairs = write_pairs(folder)
    assert len(pairs) == 40
    with Library(tmp_path / "library", profile="tiny", context="headings", parts=EMBEDS_QUICKLY) as library:
        library.index([folder])
        found = families_of(library, folder)
    assert sorted(found) == sorted(pair["paths"] for pair in pairs)


def test_questions_of_public_sets_are_read_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "nq").mkdir()
    (tmp_path / "nq" / "questions.jsonl").write_text('{"question": "who sang it"}\n')
    assert list(fact_questions(tmp_path)) == [("nq", "who sang it")]
