"""`search` and `ask` on the command line use a running server of the same library, with the same results."""

import json
import re
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from local_rag.serialization import from_plain
from local_rag.serving.socket_client import ask_server, connect, socket_path
from tests.conftest import Run
from tests.support.served import QUESTION, command_line_server, index, parts

SAID = "Answered by the running server"


def timeless(output: str) -> str:
    """Leave out how long an answer took."""
    return re.sub(r'"seconds": [\d.]+', "", output)


def test_the_server_gives_the_same_results(folder: Path, runtime: Path, run: Run) -> None:
    made_of = parts()
    commands = [
        ["search", "boat", "--library", str(folder), "--json"],
        ["search", "parental leave", "--library", str(folder), "--top", "2", "--no-rerank"],
        ["ask", QUESTION, "--library", str(folder), "--json"],
        ["ask", QUESTION, "--library", str(folder), "--show-passages"],
        ["ask", QUESTION, "--library", str(folder), "--passages", "1"],
        ["search", "  ", "--library", str(folder)],
    ]
    alone = [run(*command, parts=made_of) for command in commands]
    with command_line_server(folder, made_of):
        served = [run(*command) for command in commands]  # the fakes of `run` could not answer
        told = run("search", "boat", "--library", str(folder), "--explain")
        verbose = run("ask", QUESTION, "--library", str(folder), "--verbose")
    assert [(one.exit_code, timeless(one.stdout)) for one in alone] == [
        (one.exit_code, timeless(one.stdout)) for one in served
    ]
    assert [one.stderr for one in alone] == [one.stderr for one in served]
    assert SAID in told.stderr
    assert f"{SAID} of this library. The answer was given before." in verbose.stderr
    assert SAID not in run("search", "boat", "--library", str(folder), "--explain", parts=made_of).stderr


def test_find_works_beside_a_server(folder: Path, runtime: Path, run: Run) -> None:
    asked = ["find", "How many documents mention parents?", "--library", str(folder), "--json"]
    alone = run(*asked)
    with command_line_server(folder):
        beside = run(*asked)
    assert json.loads(alone.stdout)["count"] == 2
    assert (beside.exit_code, beside.stdout, beside.stderr) == (0, alone.stdout, alone.stderr)


def test_flags_and_variables_of_its_own_are_answered_by_the_command(
    folder: Path, runtime: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with command_line_server(folder):
        assert SAID in run("search", "boat", "--library", str(folder), "--explain").stderr
        assert SAID not in run("search", "boat", "--library", str(folder), "--explain", "--profile", "tiny").stderr
        monkeypatch.setenv("LOCAL_RAG_RRF_K", "20")
        assert SAID not in run("search", "boat", "--library", str(folder), "--explain").stderr


def test_another_library_is_not_answered(folder: Path, documents: Path, runtime: Path, run: Run) -> None:
    index(documents, documents.parent / "other")
    with command_line_server(folder):
        assert connect((documents.parent / "other").resolve()) is None
        assert SAID not in run("search", "boat", "--library", str(documents.parent / "other"), "--explain").stderr


def test_the_socket_is_the_owners_alone_and_goes_with_the_server(folder: Path, runtime: Path) -> None:
    path = socket_path(folder.resolve())
    with command_line_server(folder):
        assert path.stat().st_mode & 0o077 == 0
        assert path.parent.stat().st_mode & 0o077 == 0
        assert path.is_relative_to(runtime)
    assert not path.exists()


def test_a_folder_that_others_may_enter_is_not_used(folder: Path, runtime: Path) -> None:
    (runtime / "local-rag").mkdir(mode=0o777)
    (runtime / "local-rag").chmod(0o777)
    with command_line_server(folder):
        assert not socket_path(folder.resolve()).exists()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(socket_path(folder.resolve())))
    listener.listen()
    assert connect(folder.resolve()) is None, "whoever listens there may be another user"
    listener.close()


def test_what_a_killed_server_leaves_is_replaced(folder: Path, runtime: Path, run: Run) -> None:
    path = socket_path(folder.resolve())
    path.parent.mkdir(mode=0o700)
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(path))
    left.close()
    assert run("search", "boat", "--library", str(folder)).exit_code == 0
    with command_line_server(folder):
        assert SAID in run("search", "boat", "--library", str(folder), "--explain").stderr


def test_a_server_that_goes_away_is_an_error_in_a_sentence(folder: Path, runtime: Path) -> None:
    path = socket_path(folder.resolve())
    path.parent.mkdir(mode=0o700)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    command = [sys.executable, "-P", "-c", "from local_rag.cli.main import main; main()", "search", "boat"]
    asking = subprocess.Popen(
        [*command, "--library", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with listener.accept()[0] as connection:
        connection.recv(65536)
        connection.sendall(b'{"event": "queue", "value": 0}\n')
    printed, complained = asking.communicate(timeout=60)
    listener.close()
    assert (asking.returncode, printed) == (1, "")
    assert "run the command again" in complained
    assert "Traceback" not in complained


def test_a_server_that_says_nothing_is_none(folder: Path, runtime: Path) -> None:
    path = socket_path(folder.resolve())
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        request = {"do": "search", "question": "boat"}
        assert ask_server(folder, {}, request, first_seconds=0.2) is None, "it hangs"
        listener.accept()[0].close()

        def end() -> None:
            listener.accept()[0].close()

        ending = threading.Thread(target=end)
        ending.start()
        assert ask_server(folder, {}, request) is None, "it ended while it was being asked"
        ending.join()


def test_nonsense_on_the_socket_harms_nobody(folder: Path, runtime: Path, run: Run) -> None:
    with command_line_server(folder):
        for line in (b"\n", b"{}\n", b"[]\n", b"\xff\n", b'{"environment": 1}\n', b"x" * 100_000 + b"\n", b""):
            connection = connect(folder.resolve())
            assert connection is not None
            with connection:
                connection.sendall(line)
                connection.shutdown(socket.SHUT_WR)
                assert connection.recv(100) in (b"", b'{"event": "other", "value": null}\n')
        assert SAID in run("search", "boat", "--library", str(folder), "--explain").stderr


def test_a_search_through_the_server_imports_nothing_heavy(folder: Path, runtime: Path) -> None:
    code = (
        "import sys; from local_rag.cli.main import main\n"
        f"sys.argv = ['local-rag', 'search', 'boat', '--library', {str(folder)!r}, '--json']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print({'torch', 'numpy', 'faiss', 'pydantic', 'rich', 'starlette', 'sqlite3'} & set(sys.modules), "
        "file=sys.stderr)"
    )
    with command_line_server(folder):
        done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["passages"]
    assert done.stderr.strip() == "set()"


def test_the_server_says_what_was_searched_instead_of_a_mistyped_word(folder: Path) -> None:
    with command_line_server(folder):
        served = ask_server(folder, {}, {"do": "search", "question": "the baot", "top": 1, "every": False})
    assert served is not None
    assert served["found"]["question"] == "the boat"
    assert served["found"]["corrections"] == [{"typed": "baot", "searched": "boat"}]


def test_records_come_back_as_they_were() -> None:
    assert from_plain(tuple[int, ...], [1, 2]) == (1, 2)
    assert from_plain(int | None, None) is None
