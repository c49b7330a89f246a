"""Measure a growing library: indexing, an unchanged run, one changed and one removed file, opening and searching.

    nice python -m scripts.benchmarks grow --chunks 10000 --json grow-10000.json
    python -m scripts.benchmarks grow --plot grow-*.json --to docs/measurements/grow.png

The documents are varied copies of the pages in corpus/: some words of each copy are exchanged, and each section is one
chunk. Their vectors are those of the original paragraphs by all-minilm-l6-v2, with noise added. The embedder takes no
time, so only local-rag itself is measured. Each step is a process of its own; its time and peak memory are reported.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from local_rag.index.generations import Generations
from local_rag.index.keyword_index import keyword_tokens
from local_rag.library import Library, Parts
from local_rag.models.load import load_embedder
from local_rag.models.registry import resolve
from local_rag.records import InstalledModel
from local_rag.store.database import Store

ROOT = Path(__file__).parents[2]
_SECTIONS = 16  # per document
_WORDS = (50, 95)  # per section; each section is a chunk
_BASES = 600  # real paragraphs
_EXCHANGED = 0.25  # of the words of a copy
_JITTER = 0.6  # length of the noise added to a vector
_QUESTIONS, _TOP = 100, 50
_EMBEDDER = "all-minilm-l6-v2"
_MARK = re.compile(r"Section (\d+)\.\d+")


class JitteringEmbedder:
    """Return the vector of the real paragraph that a text is a copy of, with noise that depends on the text."""

    def __init__(self, _model: InstalledModel) -> None:
        self._bases: np.ndarray = np.load(os.environ["GROW_BASES"])

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Return normalised vectors, shape (len(texts), dimension)."""
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> np.ndarray:
        """Return one normalised vector."""
        seed = int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
        found = _MARK.search(text)
        base = self._bases[(int(found[1]) if found else seed) % len(self._bases)]
        random = np.random.default_rng(seed)
        vector = base + _JITTER * random.standard_normal(len(base), dtype=np.float32) / np.sqrt(len(base))
        normalised: np.ndarray = (vector / np.linalg.norm(vector)).astype(np.float32)
        return normalised


def paragraphs() -> list[str]:
    """Return sequences of words from the pages of corpus/, each as long as a section."""
    words = " ".join(path.read_text(errors="replace") for path in sorted((ROOT / "corpus").rglob("*.md"))).split()
    words = [word for word in words if re.fullmatch(r"[\w'-]+[.,;:]?", word)]
    random, found, start = np.random.default_rng(1), list[str](), 0
    while len(found) < _BASES and start < len(words):
        end = start + int(random.integers(*_WORDS))
        found.append(" ".join(words[start:end]))
        start = end
    return found


def write_documents(folder: Path, chunks: int, bases: Sequence[str]) -> None:
    """Write documents with this many sections in total."""
    words = np.array(sorted({word for text in bases for word in text.split()}))
    for number in range(-(-chunks // _SECTIONS)):
        path = folder / f"{number // 500:04}" / f"{number:06}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document(number, 0, min(_SECTIONS, chunks - number * _SECTIONS), bases, words))


def document(number: int, revision: int, sections: int, bases: Sequence[str], words: np.ndarray) -> str:
    """Return a document; its first section differs between revisions."""
    parts = [f"# Page {number}\n"]
    for section in range(sections):
        index = number * _SECTIONS + section
        random = np.random.default_rng([index, revision if section == 0 else 0])
        text = np.array(bases[index % len(bases)].split())
        changed = random.random(len(text)) < _EXCHANGED
        text[changed] = random.choice(words, int(changed.sum()))
        parts.append(f"## Section {index % len(bases)}.{index}\n\n{' '.join(text)}\n")
    return "\n".join(parts)


def in_child(step: str, *arguments: Path | str, bases: Path) -> dict[str, Any]:
    """Run a step in a process of its own; return its report, its seconds and its peak memory."""
    command = [sys.executable, "-P", "-m", "scripts.benchmarks", "grow", "--step", step, *map(str, arguments)]
    environment = os.environ | {"GROW_BASES": str(bases), "PYTHONPATH": str(ROOT)}
    started = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"The step {step} failed.")
    found: dict[str, Any] = json.loads(output)
    return {"seconds": time.monotonic() - started, "peak_mb": usage.ru_maxrss / 1024, **found}


def open_library(folder: Path) -> Library:
    """Open a library with the embedder that takes no time."""
    return Library(folder, parts=Parts(load_embedder=JitteringEmbedder), profile="tiny", context="headings")


def index(folder: Path, documents: Path) -> dict[str, Any]:
    """Index as the command does."""
    with open_library(folder) as library:
        report = library.index([documents])
    return {"chunks": report.chunks, "published": report.published}


def questions(documents: Path) -> list[str]:
    """Return short sequences of words from documents."""
    paths, random = sorted(documents.rglob("*.md")), np.random.default_rng(2)
    found = []
    for _ in range(_QUESTIONS):
        words = paths[int(random.integers(len(paths)))].read_text().split()
        start = int(random.integers(max(1, len(words) - 8)))
        found.append(" ".join(words[start : start + int(random.integers(3, 9))]))
    return found


def search(folder: Path, documents: Path) -> dict[str, Any]:
    """Open a library with a cold disk cache, and time warm searches without reranking."""
    import faiss  # noqa: F401  importing is not measured

    for path in (one for one in folder.rglob("*") if one.is_file()):
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    asked = questions(documents)
    with open_library(folder) as library:
        started = time.perf_counter()
        library.load()
        opened = time.perf_counter() - started
        times = []
        for question in [*asked, *asked]:
            seconds = library.trace(question, top=10, rerank=False).seconds
            times.append(1000 * sum(seconds[stage] for stage in ("dense", "keyword", "fuse")))
    resident = re.search(r"VmRSS:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert resident is not None
    return {"open_seconds": opened, "search_ms": median(times[_QUESTIONS:]), "resident_mb": int(resident[1]) / 1024}


def order(folder: Path, documents: Path) -> dict[str, Any]:
    """Return the chunks that keyword search finds for each question, as path and position."""
    generation = Generations(folder).live()
    assert generation is not None
    generation.open()
    found = []
    with closing(Store(folder)) as store:
        for question in questions(documents):
            ids = [chunk for chunk, _ in generation.keywords(keyword_tokens(question), _TOP)]
            stored = store.chunks_by_id(ids)
            found.append([f"{stored[one].path} {stored[one].chunk.position}" for one in ids])
    return {"order": found}


STEPS = {"index": index, "search": search, "order": order}


def measure(chunks: int, work: Path, report: Callable[[dict[str, Any]], None]) -> None:
    """Run all steps; report the figures once before the last step, which takes as long as the first, and once after."""
    documents, library, fresh, vectors = (work / name for name in ("documents", "library", "fresh", "bases.npy"))
    bases = paragraphs()
    if not vectors.exists():
        np.save(vectors, load_embedder(resolve(_EMBEDDER, "embed")).embed_passages(bases))
    write_documents(documents, chunks, bases)
    words = np.array(sorted({word for text in bases for word in text.split()}))
    paths = sorted(documents.rglob("*.md"))

    def step(name: str, folder: Path = library) -> dict[str, Any]:
        print(f"{name} {folder.name} ...", file=sys.stderr)
        return in_child(name, folder, documents, bases=vectors)

    first = step("index")
    unchanged = step("index")
    paths[len(paths) // 2].write_text(document(len(paths) // 2, 1, _SECTIONS, bases, words))
    changed = step("index")
    paths[len(paths) // 3].unlink()
    removed = step("index")
    if not changed["published"] or not removed["published"] or unchanged["published"]:
        sys.exit("An unchanged run published an index, or a changed one did not.")
    searched, grown = step("search"), step("order")["order"]
    figures = {
        "chunks": first["chunks"],
        "index_seconds": first["seconds"],
        "index_peak_mb": first["peak_mb"],
        "unchanged_seconds": unchanged["seconds"],
        "unchanged_peak_mb": unchanged["peak_mb"],
        "one_change_seconds": changed["seconds"],
        "one_removal_seconds": removed["seconds"],
        "open_seconds": searched["open_seconds"],
        "search_ms": searched["search_ms"],
        "resident_mb": searched["resident_mb"],
        "same_order": None,
    }
    report(figures)
    step("index", fresh)
    rebuilt = step("order", fresh)["order"]
    same = sum(one == other for one, other in zip(grown, rebuilt, strict=True))
    report(figures | {"same_order": same / len(grown)})


def plot(files: Sequence[Path], to: Path) -> None:
    """Plot each figure against the number of chunks."""
    from matplotlib import pyplot

    rows = sorted((json.loads(path.read_text()) for path in files), key=lambda row: row["chunks"])
    names = [name for name in rows[0] if name not in ("chunks", "same_order", "note")]
    _, axes = pyplot.subplots(-(-len(names) // 2), 2, figsize=(9, 14), squeeze=False)
    for name, axis in zip(names, axes.flat, strict=False):
        axis.plot([row["chunks"] for row in rows], [row[name] for row in rows], marker="o")
        axis.set(title=name.replace("_", " "), xlabel="chunks", xlim=(0, None), ylim=(0, None))
    for axis in axes.flat[len(names) :]:
        axis.axis("off")
    pyplot.tight_layout()
    pyplot.savefig(to)


def main() -> None:
    """Measure a library of so many chunks, or plot what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, default=10_000, help="how many chunks the library has (default 10000)")
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--work", type=Path, help="folder to work in, which is kept (default: a temporary one)")
    parser.add_argument("--plot", action="store_true", help="plot the figures of the given files instead")
    parser.add_argument("--to", type=Path, default=Path("grow.png"), help="file for the plot")
    parser.add_argument("--step", choices=sorted(STEPS), help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", type=Path, help="files to plot")
    arguments = parser.parse_args()
    if arguments.step:
        print(json.dumps(STEPS[arguments.step](*arguments.paths)))
        return
    if arguments.plot:
        plot(arguments.paths, arguments.to)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.work or Path(name)
        folder.mkdir(parents=True, exist_ok=True)

        def report(figures: dict[str, Any]) -> None:
            print(json.dumps(figures, indent=1), file=sys.stderr if figures["same_order"] is None else sys.stdout)
            if arguments.json:
                arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")

        measure(arguments.chunks, folder.resolve(), report)
