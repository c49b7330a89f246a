"""Interrupt `local-rag index` in every way, and check that nothing finished is lost.

A `Trial` is a library that is indexed again and again by the real command line in a subprocess (`command.py`) whose
writes are counted, killed or failed by `faults.c`. What a kill has left behind is checked on a copy, so that the next
run finds it untouched.
"""

import contextlib
import itertools
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local_rag import Library
from local_rag.index.generations import Generation, Generations
from local_rag.library import Parts
from local_rag.store.schema import crc32
from local_rag.text.tokens import keyword_tokens
from tests.fakes import EMBEDS_QUICKLY

ROOT = Path(__file__).parents[3]
MOST = 1000  # numbers of documents and of their revisions
QUESTIONS = ("How long is the leave?", "When does the boat leave the harbour?", "Who feeds the goats on Sunday?")
_SETTINGS = ("--profile", "tiny", "--chunk-tokens", "48")
# Everything that may lie in a library, however it was interrupted.
_KNOWN = {"library.sqlite3", "library.sqlite3-wal", "library.sqlite3-shm", "library.sqlite3-journal"} | {
    "lock", "lock.pid", "settings.toml", "CURRENT", "generations", "segments",
}  # fmt: skip

_COLUMNS = (
    "path", "position", "sha256", "title", "split_key", "context_plan", "start", "end", "chunks.text", "headings",
    "page", "line", "end_line", "context_key", "sentence_plan", "sentence_key", "need", "vector_key", "said.text",
    "said.kind", "written.text", "written.kind", "vector",
)  # fmt: skip
_LEFTOVER = re.compile(r"\.(?:settings\.toml|CURRENT)\.\d+\.tmp")


def build_faults(folder: Path) -> Path:
    """Compile the layer that interrupts writes; raise RuntimeError with the reason where that is not possible."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if not sys.platform.startswith("linux") or compiler is None:
        raise RuntimeError("interrupting writes needs Linux and a C compiler")
    library = folder / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


def write_documents(folder: Path, count: int = 6) -> None:
    """Write documents of several sections each."""
    folder.mkdir()
    for number in range(count):
        write_document(folder / f"{number}.md", number, 0)


def write_document(path: Path, number: int, revision: int, sections: int = 5) -> None:
    """Write one document; another revision differs in one section.

    Only numbers below 1,900 differ. What sets a document apart in words and years is found once, in comparison with the
    documents that were there first, and so depends on the history of a library.
    """
    parts = ["# House rules\n"]
    for section in range(sections):
        changed = f" {revision}." if revision and section == revision % sections else ""
        parts.append(
            f"## {number}.{section}\n\nThe keeper of house {number} feeds {section + 3} goats on Sunday and rows "
            f"the boat to harbour {number + section} before noon.{changed}\n"
        )
    path.write_text("\n".join(parts))


def write_lists(folder: Path, count: int = 6) -> None:
    """Write documents with long lists: their chunks cannot stand alone, so with `auto` a model writes about them."""
    folder.mkdir()
    for number in range(count):
        items = "".join(
            f"- goat {item} of house {number} eats thistles on day {item * 7 + number}\n" for item in range(20)
        )
        (folder / f"{number}.md").write_text(f"# Goats of house {number}\n\nThey are listed by number.\n\n{items}")


@dataclass(frozen=True, slots=True)
class Run:
    """How a run of the command ended: `hit` is the call at which it was interrupted, `calls` how many there were."""

    returncode: int
    stderr: str
    hit: str
    calls: int


class Trial:
    """A library with its documents, indexed under interruptions."""

    def __init__(
        self,
        folder: Path,
        faults: Path,
        *,
        library: Path | None = None,
        real_models: bool = False,
    ) -> None:
        self.folder, self._faults, self._real = folder, faults, real_models
        folder.mkdir(parents=True, exist_ok=True)
        self.documents, self.library = folder / "documents", library or folder / "library"
        self._journal, self._log = folder / "journal", folder / "log"
        self.compared = 0

    def index(self, *arguments: str, library: Path | None = None, kill_after: float | None = None, **crash: Any) -> Run:
        """Run `local-rag index`; `at`, `action`, `only` and `sticky` say how it is interrupted."""
        library = library or self.library
        self._log.unlink(missing_ok=True)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCAL_RAG_")} | {
            "PYTHONPATH": str(ROOT),
            "LD_PRELOAD": str(self._faults),
            "CRASH_FOLDER": str(library),
            "CRASH_LOG": str(self._log),
            "CRASH_MODELS": "real" if self._real else "quick",
            # From one publish to the next no time at all, so that publishes are interrupted too.
            "LOCAL_RAG_PUBLISH_SECONDS": "600" if self._real else "0.05",
            "LOCAL_RAG_CONTEXT_MINUTES": "60",
            **{f"CRASH_{name.upper()}": str(value) for name, value in crash.items()},
        }
        if "LOCAL_RAG_MODELS" in os.environ:
            environment["LOCAL_RAG_MODELS"] = os.environ["LOCAL_RAG_MODELS"]
        if library == self.library:
            environment["CRASH_JOURNAL"] = str(self._journal)
        command = [
            sys.executable,
            "-m",
            "tests.whole.crash.command",
            "index",
            str(self.documents),
            "--library",
            str(library),
            "--contexts",
        ]
        process = subprocess.Popen(
            [*command, *_SETTINGS, *arguments],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, cwd=self.folder,
        )  # fmt: skip
        if kill_after is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(kill_after)
            process.kill()
        _, errors = process.communicate(timeout=600)
        hit, calls = "", 0
        for line in self._log.read_text().splitlines() if self._log.exists() else ():
            operation, path, number = line.split("\t")
            calls = max(calls, int(number))
            hit = hit if operation == "end" else f"{operation} {_kind_of_file(Path(path), library)}"
        return Run(process.returncode, errors, hit, calls)

    def check(self) -> dict[str, int]:
        """Check on a copy that the library is whole and nothing that was stored is lost; return its counts.

        Raises AssertionError with what is wrong.
        """
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        if not self.library.exists():
            return {"contexts": 0, "vectors": 0}
        shutil.copytree(self.library, copy)
        unknown = {path.name for path in copy.iterdir() if not _LEFTOVER.fullmatch(path.name)} - _KNOWN
        assert not unknown, f"unknown files: {unknown}"
        stored: dict[str, set[str]] = {"contexts": set(), "vectors": set()}
        database = copy / "library.sqlite3"
        if database.exists() and database.stat().st_size + _size(copy / "library.sqlite3-wal"):
            with contextlib.closing(sqlite3.connect(database)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
                assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
                if connection.execute("PRAGMA user_version").fetchone()[0]:
                    for key, text, kind, checksum in connection.execute(
                        "SELECT key, text, kind, checksum FROM contexts"
                    ):
                        assert crc32(kind, text) == checksum
                        stored["contexts"].add(key)
                    for key, vector, checksum in connection.execute("SELECT key, vector, checksum FROM vectors"):
                        assert crc32(vector) == checksum
                        stored["vectors"].add(key)
        for line in self._journal.read_text().splitlines() if self._journal.exists() else ():
            table, key = line.split()
            assert key in stored[table], f"lost: {line}"
        self._check_search(copy)
        return {name: len(keys) for name, keys in stored.items()}

    def _check_search(self, copy: Path) -> None:
        """Search the copy: every passage of the live generation is there."""
        if not (copy / "CURRENT").exists():
            return
        generation = Generations(copy).live()
        assert generation is not None
        assert generation.damage() == []
        expected = min(200, generation.manifest["chunks"])  # not those that stand for whole documents
        with Library(copy, parts=Parts() if self._real else EMBEDS_QUICKLY) as library:
            for question in QUESTIONS:
                found = library.search(question, top=200)
                assert len(found) == expected, f"{len(found)} passages instead of {expected}"

    def snapshot(self, library: Path | None = None) -> dict[str, Any]:
        """Return all that a user could see of a finished library, without ids, which depend on its history."""
        library = library or self.library
        with contextlib.closing(sqlite3.connect(library / "library.sqlite3")) as connection:
            rows = connection.execute(
                f"SELECT chunks.id, {', '.join(_COLUMNS)} FROM chunks JOIN documents ON documents.id = document_id "
                "LEFT JOIN contexts AS said ON said.key = context_key "
                "LEFT JOIN contexts AS written ON written.key = sentence_key "
                "LEFT JOIN vectors ON vectors.key = vector_key WHERE live ORDER BY path, position"
            ).fetchall()
        generation = Generations(library).live()
        assert generation is not None
        assert generation.damage() == []
        assert generation.chunk_ids() == [row[0] for row in rows]
        assert isinstance(generation, Generation)
        generation.open()
        place_of = {row[0]: (row[1], row[2]) for row in rows}
        random, dimension = np.random.default_rng(0), len(rows[0][-1]) // 4 if rows else 1
        rankings = [
            [(place_of[chunk], score) for chunk, score in found]
            for question in QUESTIONS
            for found in (
                generation.keywords(keyword_tokens(question), len(rows)),
                generation.dense(random.normal(size=dimension).astype(np.float32), len(rows)),
            )
        ]
        manifest = {name: generation.manifest[name] for name in ("fingerprint", "documents", "chunks")}
        return {"rows": [row[1:] for row in rows], "rankings": rankings, "manifest": manifest}

    def compare_with_undisturbed_run(self, *arguments: str) -> int:
        """Index the same documents into a fresh library and compare; return the number of writing calls it took."""
        fresh = self.folder / "fresh"
        shutil.rmtree(fresh, ignore_errors=True)
        run = self.index(*arguments, library=fresh)
        assert run.returncode == 0, run.stderr
        expected, found = self.snapshot(fresh), self.snapshot()
        for row, other in zip(expected["rows"], found["rows"], strict=False):
            for name, value, changed in zip(_COLUMNS, row, other, strict=True):
                assert changed == value, f"{name} of {row[:2]} differs from what an undisturbed run makes"
        for name, value in expected.items():
            assert found[name] == value, f"{name} differ from what an undisturbed run makes"
        self.compared += 1
        return run.calls

    def acknowledged(self, table: str) -> int:
        """Count the different contexts or vectors that the store has said to be in."""
        return len({line for line in self._journal.read_text().splitlines() if line.startswith(f"{table} ")})

    def change_documents(self, choose: random.Random) -> None:
        """Edit, add, rename or delete a document."""
        paths = sorted(self.documents.iterdir())
        path, number = choose.choice(paths), choose.randrange(MOST)
        kind = choose.choice(("edit", "edit", "add", "rename", "delete") if len(paths) > 4 else ("edit", "add"))
        if kind == "edit":
            write_document(path, number % 7, number)
        elif kind == "add":
            write_document(self.documents / f"new-{number}.md", number, 0)
        elif kind == "rename":
            path.rename(path.with_name(f"renamed-{number}.md"))
        else:
            path.unlink()


def check_sentence(run: Run) -> None:
    """Check that a failure was told in one sentence, behind the progress."""
    lines = run.stderr.strip().splitlines()
    assert run.returncode == 1, f"exit code {run.returncode}: {run.stderr[-2000:]}"
    assert "Traceback" not in run.stderr, run.stderr[-2000:]
    assert [line for line in lines if line.startswith("Error: ")] == lines[-1:], run.stderr[-2000:]


def kill_once(trial: Trial, choose: random.Random, calls: int, seconds: float, arguments: tuple[str, ...] = ()) -> Run:
    """Kill one run of `index` at a random call, at a random rename, in the middle of a write, or at a random moment."""
    way = choose.random()
    if way < 0.15:
        return trial.index(*arguments, kill_after=choose.uniform(0.2, max(0.4, seconds)))
    if way < 0.3:
        return trial.index(*arguments, at=choose.randrange(8), action="kill", only="rename")
    action = "torn" if way < 0.5 else "kill"
    return trial.index(*arguments, at=int(calls * choose.random() ** 2), action=action)


def kill_at_every_rename(trial: Trial) -> int:
    """Kill runs before their first rename, before their second, and so on, until one ends; return how many were killed.

    What each changes is a document, so that segments come to be merged. Each kill is checked, and after each the index
    is ended and compared.
    """
    for at in itertools.count():
        write_document(sorted(trial.documents.iterdir())[at % 3], at % 3, at + 1)
        run = trial.index(at=at, action="kill", only="rename")
        trial.check()
        if not was_killed(run):
            assert run.returncode == 0, run.stderr
            return at
        assert trial.index().returncode == 0
        trial.check()
        trial.compare_with_undisturbed_run()
    raise AssertionError


def was_killed(run: Run) -> bool:
    """Say whether the run really died of the kill."""
    return run.returncode == -signal.SIGKILL


def kill_repeatedly(trial: Trial, choose: random.Random, kills: int, *, rounds_of: int = 8) -> Iterator[Run]:
    """Yield killed runs, each checked; after each few let the index end, compare it, and change the documents."""
    started = time.monotonic()
    write_documents(trial.documents)
    calls = trial.index(library=trial.folder / "fresh").calls
    seconds = time.monotonic() - started
    done = since = 0
    while done < kills:
        run = kill_once(trial, choose, calls, seconds)
        trial.check()
        if was_killed(run):
            done, since = done + 1, since + 1
            yield run
        else:
            assert run.returncode == 0, run.stderr
        if since >= rounds_of or not was_killed(run) or done == kills:
            since = 0
            if was_killed(run):
                run = trial.index()
                assert run.returncode == 0, run.stderr
                trial.check()
            trial.compare_with_undisturbed_run()
            trial.change_documents(choose)


def _kind_of_file(path: Path, library: Path) -> str:
    """Name the file of an interrupted call, without the number of its generation."""
    if not path.is_relative_to(library) or path == library:
        return "library"
    parts = [("N" + part[6:] if part[:6].isdigit() else part) for part in path.relative_to(library).parts]
    return "/".join(parts)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@dataclass(frozen=True, slots=True)
class SmallDisk:
    """A file system in memory that is soon full."""

    path: Path

    def resize(self, size: str) -> None:
        """Give it another size."""
        subprocess.run(["mount", "-o", f"remount,size={size}", self.path], check=True)


@contextlib.contextmanager
def small_disk(path: Path, size: str) -> Iterator[SmallDisk]:
    """Mount a file system of a given size; skip the test where mounting is not permitted."""
    path.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted: {done.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", path], check=True)
