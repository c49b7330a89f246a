"""The evaluation questions recorded in a library: a dataset of `local-rag eval`, one question a line."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

from local_rag.errors import LibraryError
from local_rag.files import write_whole
from local_rag.records import Passage

QUESTIONS_FILE = Path("questions") / "questions.jsonl"
_LINES = re.compile(r":\d+(?:-\d+)?\Z")  # what a golden entry adds to a path


def add_question(folder: Path, question: str, passage: Passage) -> None:
    """Add a question and the place that answers it: the lines of the passage, or its document if it has none."""
    golden = passage.path
    if passage.kind == "chunk" and passage.line is not None:
        golden += f":{passage.line}-{passage.end_line or passage.line}"
    record = {"question": question, "golden": [golden], "sha256": [passage.sha256]}
    path = folder / QUESTIONS_FILE
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, json.dumps(record, ensure_ascii=False).encode() + b"\n")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise LibraryError(f"{path} cannot be written ({error.strerror}); make the library writable.") from None


def questioned_documents(folder: Path) -> list[tuple[str, str]]:
    """Return SHA-256 (empty if unknown) and path of each document that a recorded question names."""
    return [document for line in _lines(folder) for document in _documents(line)]


def forget_questions(folder: Path, is_gone: Callable[[str, str], bool]) -> None:
    """Delete the recorded questions that name a document that is gone; every other line stays as it is."""
    lines = _lines(folder)
    kept = [line for line in lines if not any(is_gone(*document) for document in _documents(line))]
    if kept != lines:
        write_whole(folder / QUESTIONS_FILE, "\n".join(kept), durable=True)


def _lines(folder: Path) -> list[str]:
    path = folder / QUESTIONS_FILE
    try:
        # Not splitlines(): JSON may contain U+2028.
        return path.read_text(encoding="utf-8").split("\n") if path.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        raise LibraryError(f"{path} cannot be read ({error}); correct it or delete it.") from None


def _documents(line: str) -> list[tuple[str, str]]:
    """Return SHA-256 and path of each document that a line names, none if it is no question."""
    try:
        record = json.loads(line)
        golden = [_LINES.sub("", one) for one in record["golden"]]
        hashes = list(record.get("sha256", ()))
    except (ValueError, KeyError, TypeError, AttributeError):
        return []
    return list(zip(hashes if len(hashes) == len(golden) else [""] * len(golden), golden, strict=True))
