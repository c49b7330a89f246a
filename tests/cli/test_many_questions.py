"""`ask --questions`: every question of a file is answered once, whatever ends a run, and no other file is touched."""

import csv
import io
import json
import re
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import openpyxl  # type: ignore[import-untyped]
import pytest

from local_rag.answer_records import Answer
from local_rag.errors import QuestionError
from local_rag.library import Parts
from local_rag.serving.answer_files import COLUMNS, answers_in_form, csv_line
from local_rag.serving.table_files import read_questions
from tests.conftest import Run
from tests.fakes import EMBEDS_QUICKLY, FakeGenerator, generating

BOAT, ZEBRAS, LEAVE = "When does the boat leave?", "Do zebras sleep?", "How long is parental leave in Ireland?"
Rows = list[dict[str, str]]


def replies(reply: Callable[[str], str] = lambda _prompt: "At seven.") -> tuple[Parts, FakeGenerator]:
    """Return fakes that reply by the prompt, and hold every answer about a boat for right."""
    generator = FakeGenerator(reply, lambda prompt: re.search("Question: .* boat", prompt) is not None)
    return replace(EMBEDS_QUICKLY, open_engine=generating(generator)), generator


def write_questions(path: Path, questions: list[str]) -> Path:
    rows: list[list[object]] = [
        ["number", "Question"],
        *([number, question] for number, question in enumerate(questions)),
    ]
    if path.suffix == ".xlsx":
        workbook = openpyxl.Workbook()
        for row in [["Tender 17"], *rows]:
            workbook.active.append(row)
        workbook.save(path)
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter=";").writerows(rows)
    elif path.suffix == ".jsonl":
        first, *others = questions
        path.write_text("\n".join(map(json.dumps, [first, *({"id": 7, "Question": one} for one in others)])))
    else:
        path.write_text("\n\n".join(questions) + "\n")
    return path


def read_answers(path: Path) -> Rows:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    names, *rows = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.mark.parametrize("asked", ["questions.csv", "questions.xlsx", "questions.jsonl", "questions.txt", "questions"])
def test_questions_are_read_in_every_form(asked: str, tmp_path: Path) -> None:
    path = write_questions(tmp_path / asked, [BOAT, "Was, \u00fcberhaupt; ist das?", BOAT, ZEBRAS])
    assert read_questions(path) == [BOAT, "Was, \u00fcberhaupt; ist das?", ZEBRAS]


def test_a_single_column_needs_no_name(tmp_path: Path) -> None:
    path = tmp_path / "questions.csv"
    path.write_text('"When, if\nat all?"\nWho?\n')
    assert read_questions(path) == ["When, if at all?", "Who?"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.txt", b"\n \n", "no questions"),
        ("a.csv", b"name;age\nAda;36\n", "named `question`"),
        ("a.jsonl", b'"When?"\n{"query": "Who?"}\n', "line 2"),
        ("a.jsonl", b"[" * 100_000, "line 1 is no JSON"),
        ("a.xlsx", b"PK no sheet", "no XLSX file"),
        ("a.txt", b"\x00\x01\x02\x03" * 40, "binary"),
        ("a.txt", b"why " * 1100, "characters"),
        ("missing.txt", None, "cannot be read"),
    ],
)
def test_a_file_without_questions_is_refused_in_one_sentence(
    name: str, content: bytes | None, reason: str, tmp_path: Path, run: Run
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(QuestionError, match=reason):
        read_questions(path)
    result = run("ask", "--questions", str(path), "--output", str(tmp_path / "answers.csv"))
    assert result.exit_code == 1
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "answers.csv").exists()


def test_cells_far_to_the_right_take_no_memory(tmp_path: Path) -> None:
    path = write_questions(tmp_path / "wide.xlsx", [BOAT])
    with zipfile.ZipFile(path) as archive:
        parts = {one: archive.read(one) for one in archive.namelist()}
    row = b'<row><c r="XFD1" t="inlineStr"><is><t>why</t></is></c></row>'  # 16,383 empty cells before it
    parts["xl/worksheets/sheet1.xml"] = (
        b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        + row * 1000
        + b"</sheetData></worksheet>"
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    with pytest.raises(QuestionError, match="no questions"):
        read_questions(path)


@pytest.mark.parametrize(
    "arguments",
    [
        ["ask"],
        ["ask", BOAT, "--questions", "questions.txt"],
        ["ask", BOAT, "--output", "answers.csv"],
        ["ask", "--questions", "questions.txt", "--show-passages"],
    ],
)
def test_wrong_usage(arguments: list[str], run: Run) -> None:
    assert run(*arguments).exit_code == 2


@pytest.mark.parametrize("written", ["answers.csv", "answers.xlsx", "answers.jsonl"])
def test_all_questions_are_answered(written: str, indexed: Path, run: Run) -> None:
    questions = write_questions(Path("questions.csv"), [BOAT, LEAVE, ZEBRAS])
    result = run("ask", "--questions", str(questions), "--output", written, parts=replies()[0])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"3 questions: 1 answered, 1 quoted, 1 refused. The answers are in {written}.\n"
    assert "Answering: 0 of 3" in result.stderr
    answered, quoted, refused = read_answers(Path(written))
    assert tuple(answered) == COLUMNS
    assert [row["outcome"] for row in (answered, quoted, refused)] == ["answered", "quoted", "refused"]
    assert (answered["question"], answered["answer"]) == (BOAT, "At seven. [1]")
    assert "The boat leaves the harbour at seven." in str(answered["quotes"])
    assert "documents/boat.txt:1" in str(answered["sources"])
    assert not answered["probability"], "the fake has no calibration"
    assert float(answered["seconds"]) >= 0
    assert not refused["quotes"]
    assert not refused["sources"]
    assert not answered["remarks"]


def test_answers_are_printed_without_an_output(indexed: Path, run: Run) -> None:
    questions = write_questions(Path("questions.txt"), [BOAT, ZEBRAS])
    result = run("ask", "--questions", str(questions), parts=replies()[0])
    rows = list(csv.DictReader(result.stdout.splitlines(keepends=True)))
    assert [row["outcome"] for row in rows] == ["answered", "refused"]
    lines = run("ask", "--questions", str(questions), "--json", parts=replies()[0]).stdout.splitlines()
    assert [tuple(json.loads(line)) for line in lines] == [COLUMNS] * 2


def test_json_reports_the_counts(indexed: Path, run: Run) -> None:
    questions = write_questions(Path("questions.txt"), [BOAT, ZEBRAS])
    result = run("ask", "--questions", str(questions), "--output", "a.jsonl", "--json", parts=replies()[0])
    counts = {"questions": 2, "answered": 1, "quoted": 0, "refused": 1, "output": "a.jsonl"}
    assert json.loads(result.stdout) == counts


@pytest.mark.parametrize("written", ["answers.csv", "answers.xlsx", "answers.jsonl"])
def test_ctrl_c_keeps_what_is_done_and_the_next_run_goes_on(written: str, indexed: Path, run: Run) -> None:
    questions = write_questions(Path("questions.txt"), [BOAT, LEAVE, ZEBRAS])

    def interrupted(prompt: str) -> str:
        if "zebras" in prompt:
            raise KeyboardInterrupt
        return "At seven."

    stopped = run("ask", "--questions", str(questions), "--output", written, parts=replies(interrupted)[0])
    assert stopped.exit_code == 130
    assert f"2 of 3 questions are answered in {written}; run the command again to go on." in stopped.stderr
    before = read_answers(Path(written))
    assert [row["question"] for row in before] == [BOAT, LEAVE]
    parts, generator = replies()
    again = run("ask", "--questions", str(questions), "--output", written, parts=parts)
    assert again.stdout.startswith("3 questions: 1 answered, 1 quoted, 1 refused.")
    assert not any(BOAT in prompt or LEAVE in prompt for prompt in generator.prompts), "asked again"
    assert "2 of 3 questions are answered already." in again.stderr
    after = read_answers(Path(written))
    assert after[:2] == before
    assert after[2]["question"] == ZEBRAS
    content = Path(written).read_bytes()
    last = run("ask", "--questions", str(questions), "--output", written, parts=parts)
    assert last.stderr == "3 of 3 questions are answered already.\n"
    assert Path(written).read_bytes() == content, "nothing was left to answer"


def test_an_edited_file_of_answers_keeps_what_the_user_wrote(indexed: Path, run: Run) -> None:
    first, second = write_questions(Path("1.txt"), [BOAT]), write_questions(Path("2.txt"), [ZEBRAS, BOAT])
    run("ask", "--questions", str(first), "--output", "answers.csv", parts=replies()[0])
    edited = Path("answers.csv").read_text().replace("At seven.", "At seven sharp.").rstrip("\n")
    Path("answers.csv").write_text(edited)
    run("ask", "--questions", str(second), "--output", "answers.csv", parts=replies()[0])
    assert Path("answers.csv").read_text().startswith(f"{edited}\n{ZEBRAS},refused,")


@pytest.mark.parametrize("written", ["answers.csv", "answers.xlsx", "answers.jsonl"])
def test_warnings_are_a_column(written: str, indexed: Path, run: Run) -> None:
    questions = write_questions(Path("questions.txt"), [BOAT])
    parts = replies(lambda _prompt: "The boat leaves at seven with 99 people.")[0]
    run("ask", "--questions", str(questions), "--output", written, "--anyway", parts=parts)
    assert "Not in what it cites: 99, in" in str(read_answers(Path(written))[0]["remarks"])


@pytest.mark.parametrize("own", [(), ("checked by",)])
@pytest.mark.parametrize("written", ["answers.csv", "answers.xlsx"])
def test_a_file_goes_on_before_columns_of_the_users_own(
    written: str, own: tuple[str, ...], indexed: Path, run: Run
) -> None:
    rows = [[*COLUMNS, *own], [ZEBRAS, "refused", "No.", "", "", "0.1", "2.5", ""]]
    if written.endswith(".csv"):
        Path(written).write_text("".join(map(csv_line, rows)))
    else:
        workbook = openpyxl.Workbook()
        for row in rows:
            workbook.active.append(row)
        workbook.save(written)
    before = read_answers(Path(written))
    parts = replies(lambda _prompt: "The boat leaves at seven with 99 people.")[0]
    questions = write_questions(Path("questions.txt"), [ZEBRAS, BOAT])
    ran = run("ask", "--questions", str(questions), "--output", written, "--anyway", parts=parts)
    assert ran.exit_code == 0, ran.output
    kept, added = read_answers(Path(written))
    assert [kept] == before
    assert (added["question"], added["outcome"]) == (BOAT, "answered")
    assert not any(added.get(column) for column in own)


def test_probability_and_seconds_are_numbers_of_a_sheet() -> None:
    answer = Answer(BOAT, "At seven. [1]", "answered", probability=0.684, seconds=1.25)
    sheet = openpyxl.load_workbook(io.BytesIO(answers_in_form(".xlsx", [answer]))).active
    cells = {sheet.cell(1, column).value: sheet.cell(2, column) for column in range(1, len(COLUMNS) + 1)}
    assert [(cells[name].data_type, cells[name].value) for name in ("probability", "seconds")] == [
        ("n", 0.684),
        ("n", 1.25),
    ]


def test_answers_saved_again_with_a_byte_order_mark_are_continued(indexed: Path, run: Run) -> None:
    questions, answers = write_questions(Path("1.txt"), [BOAT]), Path("answers.jsonl")
    run("ask", "--questions", str(questions), "--output", str(answers), parts=replies()[0])
    answers.write_bytes(b"\xef\xbb\xbf" + answers.read_bytes())
    again = run("ask", "--questions", str(questions), "--output", str(answers), parts=replies()[0])
    assert again.stderr == "1 of 1 questions are answered already.\n"


def test_a_question_whose_outcome_was_cleared_is_asked_again(indexed: Path, run: Run) -> None:
    questions = write_questions(Path("1.txt"), [BOAT])
    run("ask", "--questions", str(questions), "--output", "answers.csv", parts=replies()[0])
    cleared = f"{Path('answers.csv').read_text().splitlines()[0]}\n{BOAT},,,,,,,\n"
    Path("answers.csv").write_text(cleared)
    run("ask", "--questions", str(questions), "--output", "answers.csv", parts=replies()[0])
    assert Path("answers.csv").read_text().startswith(f"{cleared}{BOAT},answered,")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("answers.csv", b"name,age\nAda,36\n"),
        ("answers.csv", b"question\nWhen?\n"),
        ("answers.csv", b"\xff\xfe\x00binary"),
        ("answers.jsonl", b'{"question": "When?", "outcome": "answered"}\n'),
        ("answers.jsonl", b"my notes\n"),
        ("answers.xlsx", b"no sheet"),
        ("answers.txt", b"my notes"),
        ("answers", None),
    ],
)
def test_a_foreign_file_is_never_written(name: str, content: bytes | None, indexed: Path, run: Run) -> None:
    questions, output = write_questions(Path("questions.txt"), [BOAT]), Path(name)
    if content is not None:
        output.write_bytes(content)
    result = run("ask", "--questions", str(questions), "--output", name, parts=replies()[0])
    assert result.exit_code == 1
    assert len(result.stderr.strip().splitlines()) == 1
    assert (output.read_bytes() if output.exists() else None) == content


def test_a_workbook_with_more_sheets_is_never_written(indexed: Path, run: Run) -> None:
    questions = write_questions(Path("questions.txt"), [BOAT])
    workbook = openpyxl.Workbook()
    workbook.active.append(COLUMNS)
    workbook.create_sheet("Prices")
    workbook.save("answers.xlsx")
    content = Path("answers.xlsx").read_bytes()
    assert run("ask", "--questions", str(questions), "--output", "answers.xlsx", parts=replies()[0]).exit_code == 1
    assert Path("answers.xlsx").read_bytes() == content


def test_a_file_that_another_program_changes_meanwhile_is_left_to_it(indexed: Path, run: Run) -> None:
    questions, output = write_questions(Path("questions.txt"), [BOAT, ZEBRAS]), Path("answers.csv")

    def editing(prompt: str) -> str:
        if "zebras" in prompt:
            output.write_text("the user's own\n")
        return "At seven."

    result = run("ask", "--questions", str(questions), "--output", str(output), parts=replies(editing)[0])
    assert result.exit_code == 1
    assert "Another program has changed answers.csv" in result.stderr
    assert output.read_text() == "the user's own\n"


def test_a_folder_that_cannot_be_written_is_reported_before_the_first_question(indexed: Path, run: Run) -> None:
    questions, (parts, generator) = write_questions(Path("questions.txt"), [BOAT]), replies()
    result = run("ask", "--questions", str(questions), "--output", "nowhere/answers.csv", parts=parts)
    assert result.exit_code == 1
    assert "nowhere/answers.csv cannot be written" in result.stderr
    assert not generator.prompts


@pytest.mark.parametrize("written", ["answers.csv", "answers.xlsx"])
def test_no_text_becomes_a_formula(written: str, indexed: Path, run: Run) -> None:
    question = "=1+1 is what of the boat?"
    questions = write_questions(Path("questions.txt"), [question, BOAT])
    formula = '=HYPERLINK("http://evil.example") says the boat leaves the harbour at seven.'
    parts, generator = replies(lambda _prompt: formula)
    run("ask", "--questions", str(questions), "--output", written, parts=parts)
    if written.endswith(".csv"):
        cells = [cell for row in csv.reader(Path(written).read_text().splitlines(keepends=True)) for cell in row]
        assert f"'{question}" in cells
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in cells)
    asked = len(generator.prompts)
    run("ask", "--questions", str(questions), "--output", written, parts=parts)
    assert len(generator.prompts) == asked, "the marked question was found again"
    if written.endswith(".xlsx"):
        run("ask", "--questions", str(write_questions(Path("more.txt"), [ZEBRAS])), "--output", written, parts=parts)
        sheet = openpyxl.load_workbook(written).active
        assert {cell.data_type for row in sheet.iter_rows() for cell in row if isinstance(cell.value, str)} == {"s"}
        assert sheet.cell(2, 1).quotePrefix


def test_a_question_that_leaves_no_room_does_not_stop_the_others(indexed: Path, run: Run) -> None:
    questions = write_questions(Path("questions.txt"), ["boat " * 700, BOAT])
    generator = FakeGenerator(lambda _prompt: "At seven.", context_tokens=4000)
    parts = replace(EMBEDS_QUICKLY, open_engine=generating(generator))
    result = run("ask", "--questions", str(questions), "--output", "answers.jsonl", parts=parts)
    assert result.exit_code == 1
    assert "leaves no room for passages" in result.stderr
    assert [row["question"] for row in read_answers(Path("answers.jsonl"))] == [BOAT]
