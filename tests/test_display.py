import csv
import io
import json
import random
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from local_rag.answer_records import Answer, Citation, Quote, Shown
from local_rag.display import (
    answer_as_dict,
    csv_cell,
    csv_text,
    describe_contexts,
    display_path,
    duration,
    one_line,
    passage_as_lines,
    printable,
    printable_json,
)
from local_rag.document_records import Skipped
from local_rag.passage_records import Hit, Passage
from local_rag.progress_records import Progress


@pytest.mark.parametrize(
    ("hostile", "safe"),
    [
        ("\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m"),
        ("\x1b]0;title\x07", "\ufffd]0;title\ufffd"),
        ("over\rwritten", "over\ufffdwritten"),
        ("back\x08\x7f", "back\ufffd\ufffd"),
        ("\x9b31m one-byte CSI", "\ufffd31m one-byte CSI"),
        ("invoice\u202efdp.exe", "invoice\ufffdfdp.exe"),
        ("bad\udcffname", "bad\ufffdname"),
        ("\u200e\u200f\u202a\u2066\u2069", "\ufffd" * 5),
    ],
)
def test_controls_are_replaced(hostile: str, safe: str) -> None:
    assert printable(hostile) == safe


def test_ordinary_text_is_unchanged() -> None:
    text = "Line one\n\tLine two: naïve café, שלום, 日本語, 👩‍👩‍👧, non\u00a0breaking, zero\u200bwidth"
    assert printable(text) == text


def test_exactly_the_named_characters_are_replaced() -> None:
    replaced = {point for point in range(0x3000) if printable(chr(point)) == "\ufffd"}
    controls = {*range(0x20), *range(0x7F, 0xA0)} - {0x09, 0x0A}
    assert replaced == controls | {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}


def test_a_name_stays_on_its_line() -> None:
    assert one_line("a\nb\tc\u2028d\u2029e\x1bf") == "a b c d e\ufffdf"


def test_json_escapes_controls_and_loses_nothing() -> None:
    value = {"text": "\x9b31m \u202e bad\udcff \x7f é\n", "list": [1, None]}
    written = printable_json(value)
    assert json.loads(written) == value
    assert printable(written) == written
    assert "é" in written
    assert json.loads(printable_json(value, indent=1)) == value


PASSAGE = Passage(
    chunk_id=7,
    path=str(Path.cwd() / "documents/boat.md"),
    title="Boat\x1b",
    text="It leaves\n\nat seven. " + "word " * 99,
    terms="Boats, 2024",
    sentence="This chunk tells\na time.",
    headings=("Boat", "Times"),
    page=None,
    line=3,
    end_line=5,
    score=0.5,
    hits=(Hit("dense", 2, 0.123456), Hit("fused", 1, 0.5)),
)


def test_json_takes_records_and_paths() -> None:
    value = {
        "progress": Progress("embed", 1, 2),
        "skipped": [Skipped(Path("/a/b"), "empty")],
        "map": MappingProxyType({"a": 1}),
    }
    read = json.loads(printable_json(value))
    assert read["progress"] == {"stage": "embed", "done": 1, "total": 2, "detail": ""}
    assert (read["skipped"][0]["path"], read["skipped"][0]["reason"], read["map"]) == ("/a/b", "empty", {"a": 1})


def test_an_answer_for_json_names_its_citations_and_how_each_passage_was_found() -> None:
    answer = Answer(
        "When?",
        "At seven. [2]",
        "answered",
        (Citation(2, PASSAGE),),
        quotes=(Quote("It leaves\n\nat seven.", 2, 0, 20),),
        shown=(Shown(2, "Boat > Times\nIt leaves at seven."),),
        passages=(PASSAGE, PASSAGE),
        probability=0.75,
        log_odds=1.5,
    )
    read = json.loads(printable_json(answer_as_dict(answer)))
    assert (read["answer"], read["outcome"], read["answered"], read["probability"], read["log_odds"]) == (
        answer.text,
        "answered",
        True,
        0.75,
        1.5,
    )
    assert read["quotes"] == [{"text": "It leaves\n\nat seven.", "citation": 2}]
    assert read["shown"] == [{"citation": 2, "text": "Boat > Times\nIt leaves at seven."}]
    (citation,) = read["citations"]
    assert {**read["passages"][1], "number": 2} == citation
    assert citation["location"] == "documents/boat.md:3"
    said = {name: citation[name] for name in ("context", "context_by", "terms")}
    assert said == {"context": PASSAGE.sentence, "context_by": "model", "terms": "Boats, 2024"}
    assert citation["ranks"] == {"dense": {"rank": 2, "score": 0.123456}, "fused": {"rank": 1, "score": 0.5}}


def test_a_passage_for_people_is_a_line_each_for_place_headings_beginning_and_reasons() -> None:
    place, headings, beginning, *rest = passage_as_lines(PASSAGE)
    assert (place, headings, rest) == ("documents/boat.md:3", "Boat\ufffd > Boat > Times", [])
    assert beginning.startswith("It leaves at seven. word")
    assert beginning.endswith("word ...")
    assert len(beginning) <= 325
    assert passage_as_lines(PASSAGE, explain=True)[3:] == (
        "dense #2 (0.1235), fused #1 (0.5)",
        "what distinguishes the document: Boats, 2024",
        "context by the model: This chunk tells a time.",
    )


@pytest.mark.parametrize("sentence", ["The fridge stands in room 7.", "Twice. " * 60, "冷蔵庫" * 9])
@pytest.mark.parametrize("before", ["First of all. ", "word " * 100, "漢" * 900])
@pytest.mark.parametrize("after", ["", " word" * 100])
def test_the_sentence_that_fits_best_is_shown_wherever_it_is(before: str, sentence: str, after: str) -> None:
    text = f"Boats: {before}\n\n{sentence}{after} End."
    start = text.index(sentence)
    shown = passage_as_lines(replace(PASSAGE, text=text, best=(start, start + len(sentence.rstrip()))))[2]
    assert sentence.strip()[:200] in shown
    assert len(shown) <= 330
    assert shown.startswith("Boats" if "Boats" in shown else "... ")
    assert shown.endswith("End." if "End" in shown else " ...")


def test_code_says_the_context_if_no_model_wrote_one() -> None:
    by_code, without = replace(PASSAGE, sentence=""), replace(PASSAGE, sentence="", terms="")
    assert (by_code.context, by_code.context_by) == ("Boats, 2024", "terms")
    assert (without.context, without.context_by) == ("", None)


def test_paths_below_the_working_directory_are_shortened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert display_path(tmp_path / "a" / "b.md") == "a/b.md"
    assert display_path(f"{tmp_path}/a.pdf page 3") == "a.pdf page 3"
    assert display_path(f"{tmp_path}-other/a.md") == f"{tmp_path}-other/a.md"


def test_only_the_kinds_of_contexts_that_there_are_are_counted() -> None:
    assert describe_contexts({"dropped": 2, "by_model": 5, "by_terms": 0}) == [
        "5 sentences by the model",
        "2 sentences dropped",
    ]
    assert describe_contexts({"by_model": 1, "dropped": 1}) == ["1 sentence by the model", "1 sentence dropped"]


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.2, "1 second"), (1, "1 second"), (40, "40 seconds"), (110, "2 minutes")]
)
def test_a_duration_is_told_in_words(seconds: float, said: str) -> None:
    assert duration(seconds) == f"about {said}"


def test_no_cell_is_a_formula_whatever_separates_cells() -> None:
    """Texts of signs at random; cells are read with each separator, and the text comes back from its own cell."""
    chance, signs = random.Random(1), [*"=+-@;,|\t\n\r\"' a1", "\uff1d", "\uff0b", "x;=1", "\n-"]
    for _ in range(3000):
        text = "".join(chance.choices(signs, k=chance.randint(1, 9)))
        assert csv_text(csv_cell(text)) == text
        table = io.StringIO(newline="")
        csv.writer(table).writerow(["a", csv_cell(text), csv_cell(text)])
        for separator in ",;\t|":
            for row in csv.reader(io.StringIO(table.getvalue(), newline=""), delimiter=separator):
                assert not [cell for cell in row if cell.strip(" \r\n")[:1] in tuple("=+-@\uff1d\uff0b")], (text, row)
