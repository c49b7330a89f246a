"""What a person sees on a terminal, which results and the bar of the progress share."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from local_rag.library import Library
from tests.fakes import QUICK

ROOT = Path(__file__).parents[2]
COMMAND = "from local_rag.cli.main import main; from tests.fakes import QUICK; main(QUICK)"
QUESTION = "How many documents mention the ferry?"


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "documents"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.md").write_text(f"# Page {name}\n\nThe ferry leaves from pier {name}.\n")
    with Library(tmp_path / "library", parts=QUICK) as made:
        made.index([folder])
    return tmp_path / "library"


def test_ctrl_c_while_the_command_is_imported_ends_it_in_one_word() -> None:
    pressed = (
        "import sys\n"
        "class Pressed:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'click': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "from local_rag.cli.start import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", pressed], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "Stopped.\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no file that is always full")
def test_results_that_cannot_be_written_are_one_sentence(library: Path) -> None:
    command = [sys.executable, "-c", COMMAND, "ask", QUESTION, "--library", str(library)]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, cwd=ROOT)
    assert done.returncode == 1
    assert done.stderr == "Error: The results cannot be written, because the disk is full.\n"


def test_chat_ends_at_once_without_an_input(library: Path) -> None:
    command = ["sh", "-c", '"$@" <&-', "sh", sys.executable, "-c", COMMAND, "chat", "--library", str(library)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def on_terminal(*arguments: str | Path, stdout: int | None = None) -> list[str]:
    """Run a command on a terminal; return the lines that are left there at the end."""
    main, other = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *map(str, arguments)],
        stdin=other,
        stdout=other if stdout is None else stdout,
        stderr=other,
        cwd=ROOT,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(other)
    written = b""
    while True:
        try:
            written += os.read(main, 65536)
        except OSError:  # the end, on Linux
            break
        if not written:
            break
    os.close(main)
    assert process.wait() == 0, written
    return [line.rpartition("\x1b[2K")[2] for line in written.decode().replace("\r\n", "\n").split("\n")]


def test_an_answer_by_code_stays_on_the_terminal(library: Path) -> None:
    left = on_terminal("ask", QUESTION, "--library", library)
    assert [line for line in left if line.startswith("2 documents")]
    assert [line for line in left if "pier two" in line]
    assert [line.strip() for line in left if "[1]" in line]


def test_answers_to_many_questions_stay_whole_on_the_terminal(library: Path, tmp_path: Path) -> None:
    (tmp_path / "questions.txt").write_text(f"{QUESTION}\nHow many documents mention the pier?\n")
    left = on_terminal("ask", "--questions", tmp_path / "questions.txt", "--library", library)
    assert [line.partition(",")[0] for line in left if line.startswith("How many")] == [
        QUESTION,
        "How many documents mention the pier?",
    ]


def test_results_in_a_file_are_not_lost_to_the_terminal(library: Path, tmp_path: Path) -> None:
    with (tmp_path / "answer.txt").open("wb") as file:
        on_terminal("ask", QUESTION, "--library", library, stdout=file.fileno())
    assert (tmp_path / "answer.txt").read_text().startswith("2 documents")
