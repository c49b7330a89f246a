"""Questions that count or list are answered by code over all documents."""

import csv
import json
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from local_rag.answer_records import Found
from local_rag.asking import AskOptions, Filters
from local_rag.document_records import Document
from local_rag.library import Library, Parts
from local_rag.models.registry import resolve
from local_rag.progress_records import Progress
from local_rag.retrieval.find_question import FindQuestion, Phrase
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY, FakeEmbedder, ReadsHere
from tests.support.indexed import index_texts

TEXTS = {
    "incidents/a.md": "# Incident report A\n\nThe crane stopped.\nTwo cranes and a Crane stood still.\n",
    "incidents/b.md": "# Incident report B\n\nThe lamp broke. Nobody saw the cranial nerve.\n",
    "incidents/c.md": "# Incident report C\n\nA CRANE fell.\n",
    "policies/travel.md": "# Travel policy\n\nThe safety\nofficer signs. See the safety officers' list.\n",
    "policies/crane.md": "# Lifting policy\n\nNobody stands below a crane. Safety first. Officer on duty.\n",
    "notes/letter.txt": "Dear all,\nthe deadline is 4 May 2025.\nAnother deadline is 5 May.\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run) -> Path:
    monkeypatch.chdir(tmp_path)
    index_texts(tmp_path, TEXTS, run)
    return tmp_path


def find(run: Run, *arguments: str) -> dict[str, object]:
    result = run("find", *arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_documents_with_a_word_are_counted_with_their_best_lines(folder: Path, run: Run) -> None:
    assert find(run, "crane", "--count", "--sort", "incident reports") == {
        "kind": "count",
        "rule": 'contain the word "crane" or inflected forms of it, of 3 named "incident reports"',
        "count": 2,
        "documents": [
            {
                "path": "documents/incidents/a.md",
                "line": 4,
                "text": "Two cranes and a Crane stood still.",
                "occurrences": 3,
            },
            {"path": "documents/incidents/c.md", "line": 3, "text": "A CRANE fell.", "occurrences": 1},
        ],
        "complete": True,
    }


def test_a_phrase_counts_across_lines(folder: Path, run: Run) -> None:
    found = find(run, "safety officer", "--sort", "policies")
    assert found["kind"] == "documents"
    assert found["count"] == 1
    assert found["documents"] == [
        {"path": "documents/policies/travel.md", "line": 3, "text": "The safety", "occurrences": 2}
    ]


def test_quoted_words_count_as_written(folder: Path, run: Run) -> None:
    assert find(run, '"cranes"', "--count")["count"] == 1
    assert find(run, "cranes", "--count")["count"] == 3


def test_every_place_is_listed_with_its_line(folder: Path, run: Run) -> None:
    with Library(folder / ".local-rag", parts=EMBEDS_QUICKLY) as library:
        places = FindQuestion("list", "words", "deadline", (Phrase("deadline"),), by_document=False)
        found = library.find("List every deadline", exact=places)
    assert (found.kind, found.count, found.by_document) == ("list", 2, False)
    assert [(one.passage.line, one.occurrences) for one in found.places] == [(2, 1), (3, 1)]


def test_places_are_counted(folder: Path, run: Run) -> None:
    assert find(run, "How often is the crane mentioned?")["count"] == 5
    assert find(run, "How often is the crane mentioned in the incident reports?")["count"] == 4


def test_documents_without_a_word_are_found_too(folder: Path, run: Run) -> None:
    found = find(run, "crane", "--not", "--sort", "incident reports")
    assert [one["path"] for one in found["documents"]] == ["documents/incidents/b.md"]  # type: ignore[attr-defined]


def test_what_is_struck_out_does_not_count_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    index_texts(tmp_path, {"a.md": "~~Dogs are allowed.~~ Cats and ~~dogs~~ are.\n", "b.md": "A dog ~~barks~~.\n"}, run)
    told = "Not counted: 2 struck-out occurrences in 1 document."
    with Library(tmp_path / ".local-rag", parts=EMBEDS_QUICKLY) as library:
        asked = FindQuestion("count", "words", "dog", (Phrase("dog"),))
        with_dogs = library.find("dog", exact=asked)
        without = library.find("dog", exact=replace(asked, negated=True))
    assert ([Path(one.passage.path).name for one in with_dogs.places], with_dogs.notes) == (["b.md"], (told,))
    assert with_dogs.complete
    assert ([Path(one.passage.path).name for one in without.places], without.notes) == (["a.md"], (told,))


def test_several_words_must_all_occur_or_any(folder: Path, run: Run) -> None:
    assert find(run, "lamps and nerves", "--count")["count"] == 1
    assert find(run, "lamps or cranes", "--count")["count"] == 4


def test_only_documents_that_pass_the_filters_count(folder: Path, run: Run) -> None:
    assert find(run, "How many documents mention the crane?", "--in", "policies/**")["count"] == 1
    assert find(run, "How many documents mention the deadline?", "--type", "md")["count"] == 0


def test_of_a_sort_that_no_document_is_named_by_all_are_examined(folder: Path, run: Run) -> None:
    found = find(run, "How many contracts mention the crane?")
    assert found["count"] == 3
    assert found["rule"].endswith('no document is named "contracts", so all 6 were examined')  # type: ignore[attr-defined]


def test_the_result_is_written_as_a_table_in_which_nothing_is_a_formula(folder: Path, run: Run) -> None:
    (folder / "documents" / "sum.txt").write_text("=SUM(A1) is a formula of the crane\n")
    assert run("index").exit_code == 0
    result = run("find", "Which documents mention the crane?", "--csv", "found.csv")
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader((folder / "found.csv").read_text(encoding="utf-8").splitlines()))
    assert [row["path"] for row in rows] == [
        "documents/incidents/a.md", "documents/incidents/c.md", "documents/policies/crane.md", "documents/sum.txt",
    ]  # fmt: skip
    assert rows[-1]["text"].startswith("'=SUM")
    assert "4 documents that contain" in result.stdout
    again = run("find", "crane", "--csv", "found.csv")
    assert again.exit_code == 1
    assert "found.csv already exists" in again.stderr


def test_ask_answers_with_the_number_and_cites_each_document(folder: Path) -> None:
    with Library(folder / ".local-rag", parts=EMBEDS_QUICKLY) as library:
        answer = library.ask("How many incident reports mention the crane?")
    assert answer.answered
    assert answer.text.startswith('2 documents that contain the word "crane"')
    assert [Path(one.passage.path).name for one in answer.citations] == ["a.md", "c.md"]
    assert answer.tokens == 0
    assert answer.found is not None
    assert answer.found.count == 2


def test_ask_respects_the_filters(folder: Path) -> None:
    options = AskOptions(filters=Filters(within=("policies/**",)))
    with Library(folder / ".local-rag", parts=EMBEDS_QUICKLY) as library:
        answer = library.ask("How many documents mention the crane?", options)
    assert answer.found is not None
    assert answer.found.count == 1


def test_documents_that_wait_for_the_index_make_the_result_incomplete(folder: Path, run: Run) -> None:
    with Library(folder / ".local-rag", parts=EMBEDS_QUICKLY) as library:
        with library.upkeep.writing() as (store, _indexer):
            document = store.documents()[0]
            row = next(iter(store.chunks(document.id)))
            new = Document(folder / "documents" / "new.md", "New", "The crane.", "text")
            store.put_document(new, [row.chunk], size=1, modified_ns=1, sha256="x", split_key="k")
        found = library.find("How many documents mention the crane?")
    assert found.count == 3
    assert not found.complete
    assert "not indexed yet" in found.notes[0]


class LiftingEmbedder(FakeEmbedder):
    """Tell only texts about cranes from all others."""

    def embed_query(self, text: str) -> np.ndarray:
        vector = np.zeros(64, dtype=np.float32)
        vector[0 if "crane" in text.lower() or text == "lifting" else 1] = 1
        return vector


@pytest.fixture
def lifting(folder: Path) -> Library:
    library = Library(folder / "lifting", profile="tiny", context="headings", parts=LIFTING)
    library.index(["documents"])
    return library


LIFTING = Parts(load_embedder=LiftingEmbedder, make_workers=ReadsHere)


def test_every_passage_is_compared_with_a_subject(lifting: Library) -> None:
    steps = list[Progress]()
    with lifting as library:
        found = library.find("Which documents are about lifting?", progress=steps.append)
    assert found.rule.startswith('are about "lifting"')
    assert {Path(place.passage.path).name for place in found.places} == {"a.md", "c.md", "crane.md"}
    assert {place.passage.line for place in found.places} == {3}
    assert found.complete
    assert steps[0].done == 0
    assert steps[-1].done == steps[-1].total > 0


class GradingEmbedder(FakeEmbedder):
    """Say how close a text is to everything by the number that it contains."""

    def embed_query(self, text: str) -> np.ndarray:
        found = re.search(r"closeness 0?(\d\d)", text)
        near = int(found[1]) / 100 if found else float(text == "lifting")
        vector = np.zeros(64, dtype=np.float32)
        vector[:2] = near, np.sqrt(1 - near * near)
        return vector


def test_passages_much_farther_than_the_best_do_not_count(tmp_path: Path) -> None:
    for name, near in (("best", 99), ("near", 70), ("far", 45)):
        (tmp_path / "graded").mkdir(exist_ok=True)
        (tmp_path / "graded" / f"{name}.txt").write_text(f"It has closeness {near}")
    parts = Parts(load_embedder=GradingEmbedder, make_workers=ReadsHere)
    with Library(tmp_path / "library", profile="tiny", context="headings", parts=parts) as library:
        library.index([tmp_path / "graded"])
        found = library.find("Which documents are about lifting?")
        assert [Path(place.passage.path).stem for place in found.places] == ["best", "near"]
        (tmp_path / "graded" / "best.txt").unlink()
        (tmp_path / "graded" / "near.txt").unlink()
        library.index([tmp_path / "graded"])
        found = library.find("Which documents are about lifting?")
    assert [Path(place.passage.path).stem for place in found.places] == ["far"], "which is the best now"


def test_a_stopped_search_gives_what_was_found_until_then(lifting: Library) -> None:
    with lifting as library:
        found = library.find("Which documents are about lifting?", stop=lambda: True)
    assert (found.count, found.complete) == (0, False)
    assert "only the 0 nearest were read" in found.notes[0]


def test_of_many_passages_the_nearest_are_read_and_that_is_said(lifting: Library) -> None:
    with lifting as library:
        found = library.find("How many documents are about lifting?", most=2)
    assert found.count == 2
    assert not found.complete
    assert "only the 2 nearest were read" in found.notes[0]


def test_ask_answers_what_documents_are_about_without_a_language_model(lifting: Library) -> None:
    with lifting as library:
        answer = library.ask("How many documents are about lifting?")
    assert answer.text.startswith('3 documents that are about "lifting"')


def test_with_another_embedder_words_are_looked_for_and_that_is_said(folder: Path) -> None:
    with Library(folder / ".local-rag", embed_model=str(folder / "own-model"), parts=EMBEDS_QUICKLY) as library:
        _copy_embedder(folder / "own-model")
        found = library.find("Which documents are about cranes?")
    assert found.rule.startswith('contain the word "cranes"')
    assert found.count == 3
    assert "not measured" in found.notes[-1]


def _copy_embedder(folder: Path) -> None:
    """Give a model of the registry a path of its own, so that nothing measured is known of it."""
    shutil.copytree(resolve("all-minilm-l6-v2", "embed").path, folder)


def test_a_question_for_one_fact_is_asked_for_its_meaning_by_find(lifting: Library) -> None:
    with lifting as library:
        found: Found = library.find("Who stands below the crane?")
    assert (found.kind, found.count) == ("documents", 3)


@pytest.mark.parametrize(
    ("question", "paths", "rule"),
    [
        (
            "How many incident reports are there?",
            ["incidents/a.md", "incidents/b.md", "incidents/c.md"],
            'have "incident reports" in the name of their folder or file, their title or tags',
        ),
    ],
)
def test_documents_are_listed_by_their_folders_and_names(
    folder: Path, run: Run, question: str, paths: list[str], rule: str
) -> None:
    found = find(run, question)
    documents = found["documents"]
    assert isinstance(documents, list)
    assert [one["path"].removeprefix("documents/") for one in documents] == paths
    assert rule in str(found["rule"])
    assert found["complete"] is True


def test_an_operator_that_does_not_exist_is_said(folder: Path, run: Run) -> None:
    result = run("find", "crane -lamp")
    assert "3 documents that contain" in result.stdout
    assert result.stderr.startswith("There is no operator as in `-lamp`: ")


def test_no_match_of_a_folder_says_which_there_are(folder: Path, run: Run) -> None:
    result = run("find", "crane", "--in", "nowhere")
    assert result.stderr == (
        "No document lies in nowhere; the folders are: documents/incidents, documents/policies, documents/notes.\n"
    )
    assert find(run, "crane", "--in", "documents/incidents/a.md:4")["count"] == 1


def test_a_device_or_a_pipe_is_never_replaced_by_a_table(folder: Path, run: Run) -> None:
    os.mkfifo("table.csv")
    result = run("find", "crane", "--csv", "table.csv")
    assert result.exit_code == 1
    assert "(it is no regular file); name another file." in result.output
    assert Path("table.csv").is_fifo()


OTHER_SCRIPTS = {
    "ru.txt": "Капитан проверил насосы и канаты на складе.\n",
    "ja.txt": "地図はQGISを使って作成した。注文番号12345の品は倉庫にある。猫が寝ている。\n",
    "tr.txt": "İstanbul ofisi açıldı.\n",  # noqa: RUF001
    "marks.txt": "Die Müll\u00adabfuhr\u00adtermine, the pass\u200bword rule, part KQ\u20117731.\nResult: failed.\n",
    "long.txt": "東" * 3000 + "倉庫" + "京" * 3000,
}


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("насосы", "ru.txt"),
        ('"насосы"', "ru.txt"),
        ("QGIS", "ja.txt"),
        ("12345", "ja.txt"),
        ("猫", "ja.txt"),
        ("倉庫", "ja.txt long.txt"),
        ("istanbul", "tr.txt"),
        ("Müllabfuhrtermine", "marks.txt"),
        ("password", "marks.txt"),
        ("KQ-7731", "marks.txt"),
        ('"Result: failed"', "marks.txt"),
    ],
)
def test_a_word_that_stands_in_a_text_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run, question: str, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    index_texts(tmp_path, OTHER_SCRIPTS, run)
    documents = find(run, question)["documents"]
    assert isinstance(documents, list)
    assert {Path(one["path"]).name for one in documents} == set(name.split())


def test_find_says_that_the_index_is_damaged_instead_of_counting_too_little(folder: Path, run: Run) -> None:
    words = next(path for path in folder.rglob("words.npy") if "segments" in path.parts)
    data = bytearray(words.read_bytes())
    for broken in (range(len(data) // 2, len(data)), range(60)):
        changed = bytearray(data)
        for place in broken:
            changed[place] ^= 0x20
        words.write_bytes(changed)
        result = run("find", "How many documents mention the crane?")
        assert result.exit_code == 1
        assert "The index is damaged" in result.output
