"""The questions recorded in a library, one a line: a dataset of `local-rag eval`, and those whose answer was wrong.

A question of the second kind names no golden passage. It waits until somebody chooses the right one.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

from local_rag.errors import LibraryError
from local_rag.files import write_whole

QUESTIONS_FILE = Path("questions") / "questions.jsonl"
WRONG_FILE = Path("questions") / "answered-wrong.jsonl"
_LOCK_FILE = Path("questions") / ".lock"
_LINES = re.compile(r":\d+(?:-\d+)?\Z")  # what a golden entry adds to a path


def add_question(folder: Path, question: str, place: str, sha256: str, *, marked: bool = False) -> None:
    """Add a question and the place that answers it, as `path:12-15`; if it was `marked`, it goes with its mark."""
    golden = {"question": question, "golden": [place], "sha256": [sha256], **({"marked": True} if marked else {})}
    with _only_writer(folder):
        _forget(folder, lambda one: one == question)
        _append(folder / QUESTIONS_FILE, golden)
        _keep_lines(folder, WRONG_FILE, lambda line: _question(line) != question)


def add_wrong_answer(folder: Path, question: str, place: str = "", sha256: str = "", *, marked: bool = False) -> None:
    """Add a question that was answered wrongly, with the place on which the answer stood, if there was one."""
    wrong = {"wrong": [place], "sha256": [sha256]} if place else {"wrong": []}
    with _only_writer(folder):
        _forget(folder, lambda one: one == question)
        if question not in wrong_answers(folder):
            _append(folder / WRONG_FILE, {"question": question, **wrong, **({"marked": True} if marked else {})})


def forget_marked(folder: Path, is_meant: Callable[[str], bool]) -> None:
    """Delete what marks have made of the questions that are meant; lines that no mark has made stay."""
    if any((folder / name).exists() for name in (QUESTIONS_FILE, WRONG_FILE)):
        with _only_writer(folder):
            _forget(folder, is_meant)


def _forget(folder: Path, is_meant: Callable[[str], bool]) -> None:
    for name in (QUESTIONS_FILE, WRONG_FILE):
        _keep_lines(folder, name, lambda line: _record(line).get("marked") is not True or not is_meant(_question(line)))


def wrong_answers(folder: Path) -> list[str]:
    """Return the questions that were answered wrongly and have no right passage yet."""
    return [question for line in _lines(folder, WRONG_FILE) if (question := _question(line))]


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    """Let nobody else write questions meanwhile, in this process or in another."""
    path = folder / _LOCK_FILE
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        lock = FileLock(path, mode=0o600)
        lock.acquire()
    except OSError as error:
        raise _unwritable(path.parent, error) from None
    try:
        yield
    finally:
        lock.release()


def _unwritable(path: Path, error: OSError) -> LibraryError:
    return LibraryError(f"{path} cannot be written ({error.strerror}); make the library writable.")


def _append(path: Path, record: Mapping[str, object]) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, json.dumps(record, ensure_ascii=False).encode() + b"\n")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unwritable(path, error) from None


def questioned_documents(folder: Path) -> list[tuple[str, str]]:
    """Return SHA-256 (empty if unknown) and path of each document that a recorded question names."""
    lines = (line for name in (QUESTIONS_FILE, WRONG_FILE) for line in _lines(folder, name))
    return [document for line in lines for document in _documents(line)]


def forget_questions(folder: Path, is_gone: Callable[[str, str], bool]) -> None:
    """Delete the recorded questions that name a document that is gone; every other line stays as it is."""
    if not any((folder / name).exists() for name in (QUESTIONS_FILE, WRONG_FILE)):
        return
    with _only_writer(folder):
        for name in (QUESTIONS_FILE, WRONG_FILE):
            _keep_lines(folder, name, lambda line: not any(is_gone(*document) for document in _documents(line)))


def _keep_lines(folder: Path, name: Path, wanted: Callable[[str], bool]) -> None:
    lines = _lines(folder, name)
    kept = [line for line in lines if wanted(line)]
    if kept != lines:
        write_whole(folder / name, "\n".join(kept), durable=True)


def _lines(folder: Path, name: Path) -> list[str]:
    path = folder / name
    try:
        # Not splitlines(): JSON may contain U+2028.
        return path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        raise LibraryError(f"{path} cannot be read ({error}); correct it or delete it.") from None


def _documents(line: str) -> list[tuple[str, str]]:
    """Return SHA-256 and path of each document that a line names, none if it is no question."""
    record = _record(line)
    try:
        golden = [_LINES.sub("", one) for one in record["golden" if "golden" in record else "wrong"]]
        hashes = list(record.get("sha256", ()))
    except (KeyError, TypeError):
        return []
    return list(zip(hashes if len(hashes) == len(golden) else [""] * len(golden), golden, strict=True))


def _question(line: str) -> str:
    """Return the question of a line, empty if it is none."""
    return str(_record(line).get("question", ""))


def _record(line: str) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}
