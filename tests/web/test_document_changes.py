"""Orders for the documents of a library: each person stops only what this person has ordered, and no erasure at all."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local_rag.web.changes.change_process import Turns
from local_rag.web.changes.document_changes import DocumentChanges
from tests.support.served import wait_until

# Waits until a file is there, then fails for the order that the file names, or says that it is done.
PROCESS = """
import json, pathlib, sys, time
order = json.loads(sys.stdin.readline())
folder = pathlib.Path(order["library"])
(folder / "begun").open("a").write(f"{order['do']} ")
while not (folder / "go").exists():
    time.sleep(0.01)
fails = order["do"] == (folder / "go").read_text()
print(json.dumps({"event": "failed", "message": "locked"} if fails else {"event": "done"}), flush=True)
"""


@pytest.fixture
def changes(tmp_path: Path) -> Iterator[DocumentChanges]:
    changes = DocumentChanges(tmp_path, [sys.executable, "-c", PROCESS])
    yield changes
    changes.close()


def begun(folder: Path) -> list[str]:
    return (folder / "begun").read_text().split() if (folder / "begun").exists() else []


def test_only_own_orders_are_stopped_and_no_erasure(changes: DocumentChanges, tmp_path: Path) -> None:
    changes.submit("index", person="owner")
    wait_until(lambda: begun(tmp_path) == ["index"])
    changes.submit("index", ["/uploads"], person="editor")
    changes.submit("erase", person="owner")
    assert changes.view("editor", whole=False).waiting == 1, "who sees a part is told of own orders alone"
    changes.stop("editor")
    assert changes.view("owner").running
    assert not changes.view("editor", whole=False).running
    changes.stop("owner")
    wait_until(lambda: begun(tmp_path) == ["index", "erase"])
    changes.stop("owner")
    (tmp_path / "go").touch()
    wait_until(lambda: not changes.view("owner").running)
    assert changes.view("owner").message == "Erased."


def test_an_erasure_that_fails_is_told_until_it_is_done(changes: DocumentChanges, tmp_path: Path) -> None:
    (tmp_path / "go").write_text("erase")
    changes.submit("erase")
    wait_until(lambda: "tried again: locked" in changes.view().message)
    changes.submit("index")
    wait_until(lambda: begun(tmp_path) == ["erase", "index"] and not changes.view().running)
    assert "tried again: locked" in changes.view().message, "what comes after does not hide it"
    (tmp_path / "go").write_text("")
    changes.submit("erase")
    wait_until(lambda: changes.view().message == "Erased.")


def test_what_was_to_be_erased_when_the_server_ended_is_taken_up(tmp_path: Path) -> None:
    (tmp_path / "go").touch()
    for later, wanted in ((False, []), (True, ["erase"])):
        changes = DocumentChanges(tmp_path, [sys.executable, "-c", PROCESS], lambda later=later: later)  # type: ignore[misc]
        changes.start()
        wait_until(lambda wanted=wanted: begun(tmp_path) == wanted)  # type: ignore[misc]
        changes.close()


# Says how many sentences are written, and writes down what it is told meanwhile.
WRITES = """
import json, pathlib, sys
order = json.loads(sys.stdin.readline())
folder = pathlib.Path(order["library"])
(folder / "begun").open("a").write(f"{order['do']} ")
print(json.dumps({"event": "progress", "stage": "contextualize", "done": 2, "total": 9}), flush=True)
for line in sys.stdin if order["do"] == "contexts" else ():
    (folder / "told").open("a").write(line)
print(json.dumps({"event": "done"}), flush=True)
"""


def test_sentences_are_written_while_nobody_asks_and_wait_for_a_question(tmp_path: Path) -> None:
    changes = DocumentChanges(tmp_path, [sys.executable, "-c", WRITES], unwritten=lambda: 7, quiet_seconds=0.2)
    changes.give_way(True)
    changes.start()
    assert begun(tmp_path) == []
    changes.give_way(False)
    wait_until(lambda: changes.view().total == 9)
    assert (changes.view().what, changes.view().stage) == ("contexts", "Writing contexts")
    changes.give_way(True)
    changes.give_way(False)
    wait_until(lambda: (tmp_path / "told").exists() and (tmp_path / "told").read_text() == "wait\ngo on\n")
    changes.submit("index")
    wait_until(lambda: begun(tmp_path)[:3] == ["contexts", "index", "contexts"])
    changes.close()


def test_nothing_is_begun_if_every_sentence_is_written(tmp_path: Path) -> None:
    asked = list[bool]()

    def unwritten() -> int:
        asked.append(True)
        return 0

    changes = DocumentChanges(tmp_path, [sys.executable, "-c", WRITES], unwritten=unwritten, quiet_seconds=0.01)
    changes.start()
    wait_until(lambda: len(asked) == 1)
    changes.close()
    assert begun(tmp_path) == []


def test_a_process_that_waits_ends_when_its_server_has_gone() -> None:
    reading, writing = os.pipe()
    with os.fdopen(reading) as lines:
        turns = Turns(lines)
        assert not turns.stop()
        os.write(writing, b"wait\n")
        os.close(writing)
        wait_until(turns.stop)
