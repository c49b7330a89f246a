"""Run random commands on a library and compare it with a simple model of its expected contents.

Every `local-rag` command is a process of its own. Embeddings and contexts are fakes; reading, SQLite and the indexes
are real. `Model` says which documents a user may expect in the library after `index`.
"""

import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

import click

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from local_rag import Library  # noqa: E402  found only after the line above
from local_rag.answer_records import Answer, Citation  # noqa: E402
from local_rag.asking import AskOptions, Filters  # noqa: E402
from local_rag.files import uploads_folder  # noqa: E402
from local_rag.index.generations import Generations  # noqa: E402
from local_rag.models.registry import resolve  # noqa: E402
from local_rag.store.database import Store  # noqa: E402
from local_rag.store.history import History  # noqa: E402
from local_rag.store.people_file import People, list_people  # noqa: E402
from local_rag.web.changes import additions  # noqa: E402
from tests.fakes import EMBEDS_QUICKLY  # noqa: E402

additions._FREE = 0  # the disk of the library is small

OUTPUT = ROOT / "docs" / "measurements" / "reliability-soak.json"
_UNREADABLE = "\x00\x01"
_FULL_RUN = 500
_PATIENCE = 600.0  # seconds for a watcher to index a new file, or for another process to end


class DifferenceError(Exception):
    """The library differs from the model."""


@dataclass
class Model:
    """The expected library: its roots, the removed paths and the text of each document.

    `drive` is a folder on which a disk is mounted at times; `has_drive` says that `index` has seen the disk there.
    """

    drive: Path
    roots: set[Path] = field(default_factory=set)
    excluded: set[Path] = field(default_factory=set)
    documents: dict[Path, str] = field(default_factory=dict)
    has_drive: bool = False

    def index(self, given: Iterable[Path], unlistable: Path | None = None) -> None:
        """Apply one `index` of these paths, or of all roots, while a folder cannot be listed."""
        given = set(given)
        self.roots |= given
        self.excluded -= given
        looked_at = {place for place in self._places() if not given or given & {place, *place.parents}}
        held = {self._place_of(path) for path in self.documents}
        reachable = {place for place in self._places() if place not in held or self._is_reachable(place)}
        seen = looked_at & reachable
        found = {
            path: path.read_text()
            for root in seen & self.roots
            for path in self._files(root)
            if path == root or not _is_below(path, unlistable)  # a file that was given needs no list
        }
        missing = [path for path in self.documents if path not in found]
        listed = {path for path in missing if path in self.roots or not _is_below(path, unlistable)}
        gone = {path for path in listed if self._place_of(path) in seen}
        replaceable = gone | {path for path in missing if self._place_of(path) not in reachable}
        for path, text in found.items():
            if path not in self.documents and _UNREADABLE not in text:
                same = next((one for one in replaceable if self.documents.get(one) == text), None)
                if same is not None:
                    del self.documents[same]
        for path in gone:
            self.documents.pop(path, None)
        self.documents |= {path: text for path, text in found.items() if _UNREADABLE not in text}
        if any(_is_below(self.drive, root) for root in seen & self.roots) and not _is_below(self.drive, unlistable):
            self.has_drive = self.is_attached or any(_is_below(path, self.drive) for path in self.documents)

    def remove(self, path: Path) -> None:
        """Apply `remove` of one file."""
        self.documents.pop(path, None)
        self.roots.discard(path)
        if any(root in path.parents for root in self.roots):
            self.excluded.add(path)

    @property
    def is_attached(self) -> bool:
        """Say whether the disk is mounted now."""
        return (self.drive / ".drive").exists()

    def _places(self) -> set[Path]:
        return self.roots | ({self.drive} if self.has_drive else set())

    def _place_of(self, path: Path) -> Path:
        return next(one for one in (path, *path.parents) if one in self._places())

    def _is_reachable(self, place: Path) -> bool:
        if _is_below(place, self.drive) and self.has_drive and not self.is_attached:
            return False
        folder = place.parent if place in self.documents or place.is_file() else place
        if folder.is_dir() and any(folder.iterdir()):
            return True
        outer = next((one for one in place.parents if one in self._places()), None)
        return outer is not None and self._is_reachable(outer)

    def _files(self, root: Path) -> list[Path]:
        if root.is_file():
            return [root]
        return [path for path in sorted(root.rglob("*.txt")) if path not in self.excluded] if root.is_dir() else []


def _is_below(path: Path, folder: Path | None) -> bool:
    return folder is not None and path.is_relative_to(folder)


def _mount(folder: Path) -> bool:
    """Make a folder, on a small disk of its own if that is permitted; say whether it is."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)]
    return not subprocess.run(mount, capture_output=True, check=False).returncode


class Soak:
    """A library under random commands, with its model."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.choose, self.folder = random.Random(seed), folder  # noqa: S311  repeatable on purpose
        self.disk, self.here, self.stick = folder / "disk", folder / "here", folder / "stick"
        self.library, self.drive = self.disk / "library", self.here / "drive"
        self.model, self.away, self.source, self.number = Model(self.drive), folder / "away", folder / "source", 0
        self.mounts = [one for one in (self.disk, self.source) if _mount(one)]  # none without the right to
        for root in (self.here, self.stick):
            root.mkdir()
            for _ in range(4):
                self._write(root)
        for _ in range(3):
            self._write(self.source)
        (self.source / ".drive").touch()
        self.other = folder / "embedder"
        shutil.copytree(resolve("all-minilm-l6-v2", "embed").path, self.other, copy_function=os.symlink)
        self.settings = ["--profile", "tiny", "--context", "headings"]
        self.people: dict[str, list[Path]] = {}  # the folders that each may see
        self.done: Counter[str] = Counter()
        self._index(self.here, self.stick)

    def close(self) -> None:
        """Unmount what is mounted."""
        for path in (self.drive, *self.mounts):
            if path.is_mount():
                subprocess.run(["umount", "-l", path], check=False)

    def step(self) -> str:
        """Run one random command, check the library, and return what was done."""
        commands: dict[Callable[[], str], int] = {
            self.add: 4, self.edit: 4, self.delete: 3, self.move: 3, self.spoil: 1, self.unmount: 2, self.mount: 2,
            self.rescue: 2, self.index: 8, self.kill: 4, self.clean: 2, self.repair: 1, self.remove: 2, self.name: 1,
            self.change_settings: 2, self.change_model: 1, self.hide: 2, self.attach: 3, self.detach: 2, self.save: 2,
            self.set_clock: 2, self.swap: 2, self.watch: 1, self.kill_erasing: 1, self.admit: 2, self.upload: 2,
            self.ask_file: 3,
        }  # fmt: skip
        if self.disk in self.mounts:
            commands[self.fill] = 1
        (command,) = self.choose.choices(list(commands), list(commands.values()))
        what = command()
        self.done[command.__name__] += 1
        return what

    def _write(self, folder: Path, path: Path | None = None) -> Path:
        text = self._text()
        path = path or folder / self.choose.choice(["", "deep"]) / f"{self.number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def _text(self) -> str:
        self.number += 1
        sections = range(self.choose.randrange(1, 6))
        return "\n\n".join(f"Note {self.number}.{n} tells of word{self.number}x and the harbour." for n in sections)

    def _files(self) -> list[Path]:
        return [path for folder in (self.here, self.stick) for path in sorted(folder.rglob("*.txt"))]

    def hide(self) -> str:
        """Index while a folder cannot be listed."""
        folder = self.choose.choice([self.here, self.here / "deep", self.stick, self.stick / "deep", self.drive])
        return f"{folder.name} cannot be listed: {self._index(unlistable=folder)}"

    def attach(self) -> str:
        """Mount a drive below an indexed folder; without the right to, move its folder there."""
        if self.model.is_attached:
            return "attach nothing"
        if self.source in self.mounts:
            self.drive.mkdir(exist_ok=True)
            subprocess.run(["mount", "--bind", self.source, self.drive], check=True)
        else:
            shutil.rmtree(self.drive, ignore_errors=True)
            self.source.rename(self.drive)
        return f"attach, {self._index()}"

    def detach(self) -> str:
        """Unmount the drive; leave an empty folder or nothing."""
        if not self.model.is_attached:
            return "detach nothing"
        if self.source in self.mounts:
            subprocess.run(["umount", self.drive], check=True)
        else:
            self.drive.rename(self.source)
            self.drive.mkdir()
        if self.choose.random() < 0.5:  # noqa: PLR2004
            self.drive.rmdir()
        return f"detach, {self._index()}"

    def save(self) -> str:
        """Save a file while `index` reads it, whole or half of it before; the next `index` has the last version."""
        if not (files := self._files()):
            return "save nothing"
        path = self.choose.choice(files)
        saved = path.with_name(".saved")  # on the same disk, and hidden from `index`
        before, after = self._text(), self._text()
        path.write_text(self.choose.choice([before, f"{_UNREADABLE}{before}" * 9]))
        saved.write_text(after)
        self._run("index", "--json", CRASH_SAVED=f"{path}{os.pathsep}{saved}")
        saved.unlink(missing_ok=True)  # the file was not read, for example because its folder is ignored
        return f"save {path.name} while it is read, {self._index()}"

    def set_clock(self) -> str:
        """Give a file a time of long ago or of the far future, in half of the cases with another text of one size."""
        if not (files := [path for path in self._files() if _UNREADABLE not in path.read_text()]):
            return "set the clock of nothing"
        path, when = self.choose.choice(files), self.choose.choice([0, 86_400, 4_000_000_000, 10_000_000_000])
        if edited := self.choose.random() < 0.5:  # noqa: PLR2004
            path.write_text(path.read_text().replace("harbour", self.choose.choice(["harbors", "houseee", "harbour"])))
        os.utime(path, (when, when))
        return f"set the clock of {path.name} to {when}{' and edit it' if edited else ''}"

    def swap(self) -> str:
        """Let two files of one size and time swap their names."""
        files = self._files()
        if len(files) < 2:  # noqa: PLR2004
            return "swap nothing"
        first, second = self.choose.sample(files, 2)
        between = self.folder / "between"
        for path in (first, second):
            self.number += 1
            path.write_text(f"Note {self.number:06} tells of word{self.number:06}x and the harbour.")
            os.utime(path, (86_400, 86_400))
        self._index()
        shutil.move(first, between)
        shutil.move(second, first)
        shutil.move(between, second)
        return f"swap {first.name} and {second.name}, {self._index()}"

    def fill(self) -> str:
        """Fill the disk of the library: a search goes on, `index` says that the disk is full, `clean` makes room."""
        filling = self.disk / "filling"
        with suppress(OSError), filling.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        try:
            self._check_searches()
            self._write(self.here)
            process = self._start("index", *self.settings)
            errors = process.communicate(timeout=600)[1]
            if process.returncode and "full" not in errors:
                raise DifferenceError(f"on a full disk, index says: {errors.strip()[-2000:]}")
        finally:
            filling.unlink()
        return f"fill the disk, {self._index()}"

    def watch(self) -> str:
        """Let `index --watch` run beside an `index` with other settings; neither takes back what the other did."""
        watcher = self._start("index", "--watch", *self.settings)
        self.settings = []
        try:
            assert watcher.stderr is not None
            while "Watching" not in (line := watcher.stderr.readline()):
                if not line:
                    raise DifferenceError("`index --watch` has ended")
            size = self.choose.choice(["24", "48"])
            self._patiently("index", "--chunk-tokens", size, "--json")
            path = self._write(self.here)
            ends = time.monotonic() + _PATIENCE
            while path not in self._indexed() and time.monotonic() < ends:
                time.sleep(0.2)
        finally:
            watcher.send_signal(signal.SIGINT)
            watcher.communicate(timeout=600)
        if path not in self._indexed():
            raise DifferenceError(f"`index --watch` has not indexed {path}")
        with Library(self.library) as library:
            if library.settings.chunk_tokens != int(size):
                raise DifferenceError("`index --watch` has taken back the settings of another `index`")
        return f"watch, {self._index()}"

    def kill_erasing(self) -> str:
        """Kill `remove --erase` at a random moment; the same command finishes what it has begun."""
        if not self.model.documents:
            return "erase nothing"
        path, after = self.choose.choice(sorted(self.model.documents)), self.choose.uniform(0.1, 2.0)
        text = self.model.documents[path]
        process = self._start("remove", str(path), "--erase")
        with suppress(subprocess.TimeoutExpired):
            process.wait(after)
        process.kill()
        process.communicate()
        again = self._start("remove", str(path), "--erase")
        errors = again.communicate(timeout=600)[1]
        if again.returncode and "holds nothing" not in errors:  # the first one was done
            raise DifferenceError(f"a killed erasure cannot be finished: {errors.strip()[-2000:]}")
        self.model.remove(path)
        self._check()
        self._check_erased(path, text)
        return f"erase {path.name}, killed after {after:.1f} s"

    def admit(self) -> str:
        """Add a person with limits, or remove one."""
        if len(self.people) > 2 or (self.people and self.choose.random() < 0.3):  # noqa: PLR2004
            name = self.choose.choice(sorted(self.people))
            self._run("people", "remove", name)
            del self.people[name]
            return f"remove {name}"
        self.number += 1
        name, role = f"person-{self.number}", self.choose.choice(["reader", "editor"])
        folders = self.choose.sample(
            [self.here, self.stick, self.here / "deep", self.drive], self.choose.choice([1, 2])
        )
        limits = [text for folder in folders for text in ("--in", f"{folder}/**")]
        self._run("people", "add", name, "--role", role, *limits)
        self.people[name] = folders
        return f"add the {role} {name} of {' and '.join(folder.name for folder in folders)}, {self._index()}"

    def upload(self) -> str:
        """Add a file as a person with limits does on the page, now and then after an upload that was killed."""
        folder = uploads_folder(self.library)
        if people := [one for one in list_people(self.library) if one.may("editor")]:
            person = self.choose.choice(people)
            folder = additions.folder_of(self.library, person)
            self.people[person.name] = [*dict.fromkeys([*self.people[person.name], folder])]
        text = self._text()
        path, _ = additions.add_file(folder, f"{self.number}.txt", io.BytesIO(text.encode()))
        if self.choose.random() < 0.3:  # noqa: PLR2004
            left = folder / f".{self.number:016x}.part"
            left.write_text(text)
            os.utime(left, (0, 0))
            additions.clear_uploads(self.library)
            if left.exists():
                raise DifferenceError(f"{left} was left by an upload that was killed, and stays")
        return f"upload {path.name}: {self._index(uploads_folder(self.library))}"

    def ask_file(self) -> str:
        """Keep a file of questions about a document, with its name in their filter and an answer that quotes it."""
        if not self.model.documents:
            return "ask nothing"
        path, text = self.choose.choice(sorted(self.model.documents.items()))
        word = text.split(" tells of ")[1].split(maxsplit=1)[0]
        with Library(self.library, parts=EMBEDS_QUICKLY) as library:
            passage = next(one for one in library.search(word, top=1000) if Path(one.path) == path)
        question = f"What does the note on {word} tell?"
        answer = Answer(question, passage.text, "answered", citations=(Citation(1, passage),), read=(passage,))
        with closing(History(self.library)) as history:
            options = AskOptions(filters=Filters(within=(str(path),)))
            identifier = history.begin_list(f"questions of {word}.csv", [question, "What is a harbour?"], options)
            history.add(identifier, answer, epoch=history.epoch(), opens=True)
        return f"ask a file of questions about {path.name}"

    def _check_people(self) -> None:
        """Compare what each person sees with the documents of the person's folders."""
        with Library(self.library, parts=EMBEDS_QUICKLY) as library:
            for person in People(self.library).now().values():
                view = library.seen_by(person.limits)
                folders = self.people[person.name]
                wanted = {path for path in self.model.documents if any(_is_below(path, one) for one in folders)}
                if (seen := {Path(one.path) for one in view.documents.listed()}) != wanted:
                    raise DifferenceError(f"{person.name} sees {sorted(seen ^ wanted)} or does not see it")
                if view.status().documents != len(wanted):
                    raise DifferenceError(f"{person.name} is told another number of documents")
                found = {Path(passage.path) for passage in view.search("harbour", top=1000)} if wanted else set()
                if not found <= wanted:
                    raise DifferenceError(f"{person.name} finds {sorted(found - wanted)}")

    def _check_erased(self, path: Path, text: str) -> None:
        if text in self.model.documents.values():
            return
        word = text.split(" tells of ")[1].split(maxsplit=1)[0].encode()
        for file in (one for one in self.library.rglob("*") if one.is_file()):
            if word in file.read_bytes():
                raise DifferenceError(f"{file} still contains {word!r} of {path}, which was erased")

    def _patiently(self, *arguments: str) -> str:
        """Run a command again while another process writes the library."""
        ends = time.monotonic() + _PATIENCE
        while True:
            process = self._start(*arguments)
            printed, errors = process.communicate(timeout=600)
            if not process.returncode:
                return printed
            if "is writing" not in errors or time.monotonic() > ends:
                raise DifferenceError(f"{' '.join(arguments)} failed: {errors.strip()[-2000:]}")
            time.sleep(0.5)

    def _indexed(self) -> set[Path]:
        with closing(Store(self.library)) as store:
            live = Generations(self.library).live()
            held = set(live.documents()[0].tolist()) if live else set()
            return {Path(one.path) for one in store.documents() if one.id in held}

    def add(self) -> str:
        """Write a new file."""
        return f"add {self._write(self.choose.choice([one for one in (self.here, self.stick) if one.is_dir()])).name}"

    def edit(self) -> str:
        """Write a file again, with another text."""
        if not (files := self._files()):
            return "edit nothing"
        path = self.choose.choice(files)
        self._write(path.parent, path)
        return f"edit {path.name}"

    def spoil(self) -> str:
        """Make a file unreadable."""
        if not (files := self._files()):
            return "spoil nothing"
        path = self.choose.choice(files)
        path.write_text(f"{_UNREADABLE}{path.name}" * 9)
        return f"spoil {path.name}"

    def delete(self) -> str:
        """Delete a file."""
        if not (files := self._files()):
            return "delete nothing"
        path = self.choose.choice(files)
        path.unlink()
        return f"delete {path.name}"

    def move(self) -> str:
        """Rename a file."""
        if not (files := self._files()):
            return "move nothing"
        path = self.choose.choice(files)
        self.number += 1
        path.rename(path.with_name(f"moved-{self.number}.txt"))
        return f"move {path.name}"

    def unmount(self) -> str:
        """Remove the stick; leave an empty folder or nothing."""
        if self.away.exists():
            return "unmount nothing"
        self.stick.rename(self.away)
        if empty := self.choose.random() < 0.5:  # noqa: PLR2004
            self.stick.mkdir()
        return f"unmount, {'an empty folder' if empty else 'nothing'} left"

    def mount(self) -> str:
        """Put the stick back."""
        if not self.away.exists():
            return "mount nothing"
        shutil.rmtree(self.stick, ignore_errors=True)
        self.away.rename(self.stick)
        return "mount"

    def rescue(self) -> str:
        """Copy a file of the removed stick to the other folder."""
        lost = sorted(self.away.rglob("*.txt")) if self.away.exists() else []
        if not lost:
            return "rescue nothing"
        path = self.choose.choice(lost)
        self.number += 1
        shutil.copyfile(path, self.here / f"rescued-{self.number}.txt")
        return f"rescue {path.name}"

    def index(self) -> str:
        """Index everything, or one of the two folders."""
        given = self.choose.choice([(), (), (self.here,), (self.stick,)])
        return self._index(*(path for path in given if path.exists() or path in self.model.roots))

    def name(self) -> str:
        """Index one file by its name."""
        if not (files := [path for path in self._files() if _UNREADABLE not in path.read_text()]):
            return "name nothing"
        return self._index(self.choose.choice(files))

    def kill(self) -> str:
        """Kill an `index` at a random moment, search what is left, and let another `index` finish."""
        after = self.choose.uniform(0.1, 2.5)
        process = self._start("index", *self.settings)
        with suppress(subprocess.TimeoutExpired):
            process.wait(after)
        process.kill()
        process.communicate()
        self._search("harbour")
        return f"kill after {after:.1f} s, {self._index()}"

    def clean(self) -> str:
        """Delete what nothing needs."""
        self._run("clean")
        self._check()
        return "clean"

    def repair(self) -> str:
        """Damage a file of the live index in half of the cases, then repair."""
        live = Generations(self.library).live()
        if live is not None and self.choose.random() < 0.5:  # noqa: PLR2004
            (live.folder / "documents.npy").write_bytes(b"damaged")
        self._run("repair")
        self._check()
        return "repair"

    def remove(self) -> str:
        """Remove a document, for good in half of the cases."""
        if not self.model.documents:
            return "remove nothing"
        path = self.choose.choice(sorted(self.model.documents))
        text, erase = self.model.documents[path], self.choose.random() < 0.5  # noqa: PLR2004
        self._run("remove", str(path), *(["--erase"] if erase else []))
        self.model.remove(path)
        self._check()
        if erase:
            self._check_erased(path, text)
        return f"remove {path.name}{' for good' if erase else ''}"

    def change_settings(self) -> str:
        """Index with other chunk sizes and contexts."""
        size, context = self.choose.choice(["24", "48", "0"]), self.choose.choice(["headings", "auto"])
        self.settings = ["--chunk-tokens", size, "--context", context]
        return f"chunks of {size}, {context}: {self._index()}"

    def change_model(self) -> str:
        """Index with the other embedder."""
        name = self.choose.choice(["all-minilm-l6-v2", str(self.other)])
        self.settings = [*self.settings, "--embed-model", name]
        return f"embedder {Path(name).name}: {self._index()}"

    def _index(self, *given: Path, unlistable: Path | None = None) -> str:
        faults = {"CRASH_UNLISTABLE": str(unlistable)} if unlistable else {}
        report = json.loads(self._run("index", *map(str, given), *self.settings, "--json", **faults))
        self.settings = []
        self.model.index(given, unlistable)
        self._check()
        again = json.loads(self._run("index", "--json", **faults)) if not given else {"contexts": {}}
        if again["contexts"] or (not given and again["published"]):
            raise DifferenceError(f"a second index did some work: {again}")
        counts = {name: report[name] for name in ("added", "changed", "moved", "removed") if report[name]}
        return f"index {' '.join(path.name for path in given)} {counts}"

    def _start(self, *arguments: str, **faults: str) -> "subprocess.Popen[str]":
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCAL_RAG_")}
        if models := os.environ.get("LOCAL_RAG_MODELS"):
            environment["LOCAL_RAG_MODELS"] = models
        if self.source not in self.mounts:
            faults["CRASH_DRIVES"] = "1"
        command = [sys.executable, "-m", "tests.whole.crash.command", *arguments, "--library", str(self.library)]
        return subprocess.Popen(
            command, env=environment | faults | {"PYTHONPATH": str(ROOT)}, cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def _run(self, *arguments: str, **faults: str) -> str:
        process = self._start(*arguments, **faults)
        printed, errors = process.communicate(timeout=600)
        if process.returncode:
            raise DifferenceError(f"{' '.join(arguments)} failed: {errors.strip()[-2000:]}")
        return printed

    def _search(self, question: str) -> set[Path]:
        with Library(self.library, parts=EMBEDS_QUICKLY) as library:
            return {Path(passage.path) for passage in library.search(question, top=1000) if question in passage.text}

    def _check(self) -> None:
        """Compare documents, index and searches with the model."""
        with closing(Store(self.library)) as store:
            stored = {Path(one.path): store.document_text(one.id) for one in store.documents()}
            chunks = {row.id for row in store.rows()}
        if stored != self.model.documents:
            odd = {path.name for path in stored.keys() ^ self.model.documents.keys()}
            odd |= {path.name for path in stored if stored[path] != self.model.documents.get(path)}
            raise DifferenceError(f"the documents differ: {sorted(odd)}")
        live = Generations(self.library).live()
        if live is None or live.damage() or set(live.chunk_ids()) != chunks:
            raise DifferenceError("the chunks of the live index are not those of the documents")
        self._check_searches()
        self._check_people()

    def _check_searches(self) -> None:
        for path, text in self.choose.sample(sorted(self.model.documents.items()), min(2, len(self.model.documents))):
            word = text.split(" tells of ")[1].split()[0]
            wanted = {one for one, other in self.model.documents.items() if word in other}
            if self._search(word) != wanted:
                raise DifferenceError(f"a search for {word} does not find exactly {path}")


@click.command()
@click.argument("commands", default=_FULL_RUN)
@click.argument("seed", default=1)
def main(commands: int, seed: int) -> None:
    """Run COMMANDS random commands with SEED; a run of 500 or more is reported in docs/measurements."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        soak = Soak(Path(name).resolve(), seed)
        try:
            for number in range(1, commands + 1):
                click.echo(f"{number}: {soak.step()}")
        except DifferenceError as error:
            click.echo(f"Difference (seed {seed}): {error}", err=True)
            sys.exit(1)
        finally:
            soak.close()
        click.echo(f"No difference in {commands} commands (seed {seed}), {len(soak.model.documents)} documents left.")
        if commands >= _FULL_RUN:
            line = (
                f"{commands} random commands (seed {seed}) were run on a library. After each, the library was compared "
                "with a simple model of its expected contents: no difference."
            )
            table = {"header": ["command", "times"], "rows": sorted(soak.done.items())}
            seconds = round(time.monotonic() - started)
            report = {"title": "Soak", "lines": [line], "table": table, "seconds": seconds}
            OUTPUT.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
