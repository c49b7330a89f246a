"""Measure a growing library: indexing, an unchanged run, one changed and one removed file, opening and searching.

    python -m scripts.benchmarks grow --chunks 10000 --json grow-10000.json
    python -m scripts.benchmarks grow --plot grow-*.json --to docs/measurements/grow.png

The documents are varied copies of the pages in corpus/: some words of each copy are exchanged, and each section is one
chunk. Their vectors are those of the original paragraphs by all-minilm-l6-v2, with noise added. The embedder takes no
time, so only local-rag itself is measured. The contexts are those of the default mode that no model writes (`--context
terms`); the first `index` is also timed with `--context headings`, right before, unless `--alone`. Each step is a
process of its own; its time, processor time and peak memory are reported. Processor time is that of all threads and of
the processes that read files. Run it on an idle machine, or with `--busy`, which reports no other times.
"""

import argparse
import json
import os
import re
import shutil
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

from local_rag.asking import EVERYTHING, Filters
from local_rag.files import folder_bytes
from local_rag.index.generations import Generations
from local_rag.library import Library, Parts
from local_rag.llama.models_in_use import load_embedder
from local_rag.model_records import InstalledModel
from local_rag.models.registry import resolve
from local_rag.passage_records import ContextMode
from local_rag.store.database import Store
from local_rag.text.tokens import keyword_tokens

ROOT = Path(__file__).parents[2]
_SECTIONS = 16  # per document
_WORDS = (50, 95)  # per section; each section is a chunk
_BASES = 600  # real paragraphs
_EXCHANGED = 0.25  # of the words of a copy
_JITTER = 0.6  # length of the noise added to a vector
_QUESTIONS, _TOP = 100, 50
_EMBEDDER = "all-minilm-l6-v2"
FILTERED = ("filtered", "other_filter", "half")  # questions with a filter, compared with those without
_BUSY = "Made on a busy machine, so all times are those of the processor."
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
    """Run a step in a process of its own; return its report with its seconds and its peak memory."""
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
    processor = usage.ru_utime + usage.ru_stime
    seconds = time.monotonic() - started
    return {"seconds": seconds, "processor_seconds": processor, **found}


def open_library(folder: Path, context: ContextMode = "auto") -> Library:
    """Open a library with the embedder that takes no time."""
    return Library(
        folder, parts=Parts(load_embedder=JitteringEmbedder), profile="tiny", context=context, context_minutes=0.0
    )


def index(folder: Path, documents: Path, context: ContextMode = "auto") -> dict[str, Any]:
    """Index as the command does."""
    with open_library(folder, context) as library:
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
        started, computed = time.perf_counter(), time.process_time()
        library.retrieval.load()
        opened = {
            "open_seconds": time.perf_counter() - started,
            "open_processor_seconds": time.process_time() - computed,
        }
        times = dict[str, list[float]]()
        for round_ in (0, 1):
            for number, question in enumerate(asked):
                for name, filters in filters_of(documents, number).items():
                    started, computed = time.perf_counter(), time.process_time()
                    library.retrieval.trace(question, top=10, rerank=False, filters=filters)
                    if round_:
                        times.setdefault(f"{name}_ms", []).append(1000 * (time.perf_counter() - started))
                        times.setdefault(f"{name}_processor_ms", []).append(1000 * (time.process_time() - computed))
    found = {name: median(some) for name, some in times.items()}
    return {**opened, **found, "resident_mb": own_memory("VmRSS")}


def own_memory(name: str) -> float:
    """Return what Linux says of the memory of this process, in MB: VmRSS now, VmHWM at most."""
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


def filters_of(documents: Path, number: int) -> dict[str, Filters]:
    """Return the filters that a question is asked with: none, one folder, one of twenty folders in turn, and a half."""
    folders = sorted(path for path in documents.iterdir() if path.is_dir())
    half = tuple(str(folder) for folder in folders[: max(1, len(folders) // 2)])
    return {
        "search": EVERYTHING,
        "filtered": Filters(within=(str(folders[0]),)),
        "other_filter": Filters(within=(str(folders[number % 20 % len(folders)]),)),
        "half": Filters(within=half),
    }


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


def with_headings(folder: Path, documents: Path) -> dict[str, Any]:
    """Index without comparing documents."""
    return index(folder, documents, "headings")


STEPS = {"index": index, "with_headings": with_headings, "search": search, "order": order}


def measure(chunks: int, work: Path, alone: bool, report: Callable[[dict[str, Any]], None]) -> None:
    """Run all steps; report the figures once before the last step, which builds the index again, and once after."""
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

    compared = {}
    if not alone:
        headings = step("with_headings", work / "headings")
        shutil.rmtree(work / "headings")
    first = step("index")
    if not alone:
        compared = {
            "headings_ratio": first["seconds"] / headings["seconds"],
            "headings_processor_ratio": first["processor_seconds"] / headings["processor_seconds"],
        }
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
        "context": "auto",
        "index_seconds": first["seconds"],
        "index_processor_seconds": first["processor_seconds"],
        **compared,
        "index_peak_mb": first["peak_mb"],
        "unchanged_seconds": unchanged["seconds"],
        "unchanged_processor_seconds": unchanged["processor_seconds"],
        "unchanged_peak_mb": unchanged["peak_mb"],
        "one_change_seconds": changed["seconds"],
        "one_change_processor_seconds": changed["processor_seconds"],
        "one_removal_seconds": removed["seconds"],
        "one_removal_processor_seconds": removed["processor_seconds"],
        "open_seconds": searched["open_seconds"],
        "open_processor_seconds": searched["open_processor_seconds"],
        "search_ms": searched["search_ms"],
        "search_processor_ms": searched["search_processor_ms"],
        **{f"{name}_ratio": searched[f"{name}_ms"] / searched["search_ms"] for name in FILTERED},
        **{
            f"{name}_processor_ratio": searched[f"{name}_processor_ms"] / searched["search_processor_ms"]
            for name in FILTERED
        },
        "resident_mb": searched["resident_mb"],
        "store_mb": sum(path.stat().st_size for path in library.glob("library.sqlite3*")) / 1e6,
        "library_mb": folder_bytes(library) / 1e6,
        "same_order": None,
    }
    report(figures)
    # The same store, so documents keep the distinctions that were fixed as the library grew.
    shutil.copytree(library, fresh, ignore=shutil.ignore_patterns("generations", "segments", "CURRENT"))
    step("index", fresh)
    rebuilt = step("order", fresh)["order"]
    same = sum(one == other for one, other in zip(grown, rebuilt, strict=True))
    report(figures | {"same_order": same / len(grown)})


def is_spoilt_by_others(figure: str) -> bool:
    """Say whether a figure depends on what other programs do meanwhile."""
    return figure.endswith(("_seconds", "_ms", "_ratio")) and "processor" not in figure


def plot(files: Sequence[Path], to: Path) -> None:
    """Plot each figure against the number of chunks."""
    from matplotlib import pyplot

    rows = sorted((json.loads(path.read_text()) for path in files), key=lambda row: row["chunks"])
    kept = ("chunks", "context", "same_order", "note")
    names = [name for name in rows[0] if name not in kept and all(name in row for row in rows)]
    _, axes = pyplot.subplots(-(-len(names) // 2), 2, figsize=(9, 3 * -(-len(names) // 2)), squeeze=False)
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
    parser.add_argument("--busy", action="store_true", help="leave out the times that other programs would spoil")
    parser.add_argument("--alone", action="store_true", help="do not index with headings too, which doubles the time")
    parser.add_argument("--plot", action="store_true", help="plot the figures of the given files instead")
    parser.add_argument("--to", type=Path, default=Path("grow.png"), help="file for the plot")
    parser.add_argument("--step", choices=sorted(STEPS), help=argparse.SUPPRESS)
    parser.add_argument("paths", nargs="*", type=Path, help="files to plot")
    arguments = parser.parse_args()
    if arguments.step:
        # Not from the parent's usage of this process, which counts the memory of the parent too.
        print(json.dumps({**STEPS[arguments.step](*arguments.paths), "peak_mb": own_memory("VmHWM")}))
        return
    if arguments.plot:
        plot(arguments.paths, arguments.to)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = arguments.work or Path(name)
        folder.mkdir(parents=True, exist_ok=True)

        def report(figures: dict[str, Any]) -> None:
            if arguments.busy:
                figures = {name: one for name, one in figures.items() if not is_spoilt_by_others(name)}
                figures["note"] = _BUSY
            print(json.dumps(figures, indent=1), file=sys.stderr if figures["same_order"] is None else sys.stdout)
            if arguments.json:
                arguments.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")

        measure(arguments.chunks, folder.resolve(), arguments.alone, report)
