"""Run random commands on a library and compare it with a simple model of its expected contents.

Every `local-rag` command is a process of its own. Embeddings and contexts are fakes; reading, SQLite and the indexes
are real. `Model` says which documents a user may expect in the library after `index`.
"""

import json
import os
import random
import shutil
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
from local_rag.index.generations import Generations  # noqa: E402
from local_rag.models.registry import resolve  # noqa: E402
from local_rag.store.database import Store  # noqa: E402
from tests.fakes import EMBEDS_QUICKLY  # noqa: E402

OUTPUT = ROOT / "docs" / "measurements" / "reliability-soak.json"
_UNREADABLE = "\x00\x01"
_FULL_RUN = 500


class DifferenceError(Exception):
    """The library differs from the model."""


@dataclass
class Model:
    """The expected library: its roots, the removed paths and the text of each document."""

    roots: set[Path] = field(default_factory=set)
    excluded: set[Path] = field(default_factory=set)
    documents: dict[Path, str] = field(default_factory=dict)

    def index(self, given: Iterable[Path]) -> None:
        """Apply one `index` of these paths, or of all roots."""
        given = set(given)
        self.roots |= given
        self.excluded -= given
        looked_at = {root for root in self.roots if not given or given & {root, *root.parents}}
        held = {self._root_of(path) for path in self.documents}
        reachable = {root for root in self.roots if root not in held or self._is_reachable(root)}
        found = {path: path.read_text() for root in looked_at & reachable for path in self._files(root)}
        missing = [path for path in self.documents if path not in found]
        gone = {path for path in missing if self._root_of(path) in looked_at & reachable}
        replaceable = gone | {path for path in missing if self._root_of(path) not in reachable}
        for path, text in found.items():
            if path not in self.documents and _UNREADABLE not in text:
                same = next((one for one in replaceable if self.documents.get(one) == text), None)
                if same is not None:
                    del self.documents[same]
        files = {root for root in looked_at & reachable if root in self.documents or root.suffix}
        self.roots -= {root for root in files if not root.exists()}
        for path in gone:
            self.documents.pop(path, None)
        self.documents |= {path: text for path, text in found.items() if _UNREADABLE not in text}

    def remove(self, path: Path) -> None:
        """Apply `remove` of one file."""
        self.documents.pop(path, None)
        self.roots.discard(path)
        if any(root in path.parents for root in self.roots):
            self.excluded.add(path)

    def _root_of(self, path: Path) -> Path:
        return next(one for one in (path, *path.parents) if one in self.roots)

    def _is_reachable(self, root: Path) -> bool:
        folder = root.parent if root in self.documents or root.is_file() else root
        if folder.is_dir() and any(folder.iterdir()):
            return True
        outer = next((one for one in root.parents if one in self.roots), None)
        return outer is not None and self._is_reachable(outer)

    def _files(self, root: Path) -> list[Path]:
        if root.is_file():
            return [root]
        return [path for path in sorted(root.rglob("*.txt")) if path not in self.excluded] if root.is_dir() else []


class Soak:
    """A library under random commands, with its model."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.choose, self.model = random.Random(seed), Model()  # noqa: S311  repeatable on purpose
        self.library, self.here, self.stick = folder / "library", folder / "here", folder / "stick"
        self.away, self.number, self.folder = folder / "away", 0, folder
        for root in (self.here, self.stick):
            root.mkdir()
            for _ in range(4):
                self._write(root)
        self.other = folder / "embedder"
        shutil.copytree(resolve("all-minilm-l6-v2", "embed").path, self.other, copy_function=os.symlink)
        self.settings = ["--profile", "tiny", "--context", "headings"]
        self.done: Counter[str] = Counter()
        self._index(self.here, self.stick)

    def step(self) -> str:
        """Run one random command, check the library, and return what was done."""
        commands: dict[Callable[[], str], int] = {
            self.add: 4, self.edit: 4, self.delete: 3, self.move: 3, self.spoil: 1, self.unmount: 2, self.mount: 2,
            self.rescue: 2, self.index: 8, self.kill: 4, self.clean: 2, self.repair: 1, self.remove: 2, self.name: 1,
            self.change_settings: 2, self.change_model: 1,
        }  # fmt: skip
        (command,) = self.choose.choices(list(commands), list(commands.values()))
        what = command()
        self.done[command.__name__] += 1
        return what

    def _write(self, folder: Path, path: Path | None = None) -> Path:
        self.number += 1
        path = path or folder / self.choose.choice(["", "deep"]) / f"{self.number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        sections = self.choose.randrange(1, 6)
        path.write_text(
            "\n\n".join(f"Note {self.number}.{n} tells of word{self.number}x and the harbour." for n in range(sections))
        )
        return path

    def _files(self) -> list[Path]:
        return [path for folder in (self.here, self.stick) for path in sorted(folder.rglob("*.txt"))]

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
        if erase and text not in self.model.documents.values():
            word = text.split(" tells of ")[1].split()[0].encode()
            for file in (one for one in self.library.rglob("*") if one.is_file()):
                if word in file.read_bytes():
                    raise DifferenceError(f"{file} still contains {word!r} of {path}, which was erased")
        return f"remove {path.name}{' for good' if erase else ''}"

    def change_settings(self) -> str:
        """Index with other chunk sizes and contexts."""
        size, context = self.choose.choice(["24", "48", "0"]), self.choose.choice(["headings", "llm"])
        self.settings = ["--chunk-tokens", size, "--context", context]
        return f"chunks of {size}, {context}: {self._index()}"

    def change_model(self) -> str:
        """Index with the other embedder."""
        name = self.choose.choice(["all-minilm-l6-v2", str(self.other)])
        self.settings = [*self.settings, "--embed-model", name]
        return f"embedder {Path(name).name}: {self._index()}"

    def _index(self, *given: Path) -> str:
        report = json.loads(self._run("index", *map(str, given), *self.settings, "--json"))
        self.settings = []
        self.model.index(given)
        self._check()
        again = json.loads(self._run("index", "--json")) if not given else {"contexts": {}}
        if again["contexts"] or (not given and again["published"]):
            raise DifferenceError(f"a second index did some work: {again}")
        counts = {name: report[name] for name in ("added", "changed", "moved", "removed") if report[name]}
        return f"index {' '.join(path.name for path in given)} {counts}"

    def _start(self, *arguments: str) -> "subprocess.Popen[str]":
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LOCAL_RAG_")}
        if models := os.environ.get("LOCAL_RAG_MODELS"):
            environment["LOCAL_RAG_MODELS"] = models
        command = [sys.executable, "-m", "tests.whole.crash.command", *arguments, "--library", str(self.library)]
        return subprocess.Popen(
            command, env=environment | {"PYTHONPATH": str(ROOT)}, cwd=self.folder, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def _run(self, *arguments: str) -> str:
        process = self._start(*arguments)
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
        try:
            soak = Soak(Path(name).resolve(), seed)
            for number in range(1, commands + 1):
                click.echo(f"{number}: {soak.step()}")
        except DifferenceError as error:
            click.echo(f"Difference (seed {seed}): {error}", err=True)
            sys.exit(1)
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
