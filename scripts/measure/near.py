"""Choose when and how FAISS is asked: recall of exact search and time, for several codes and sizes of a segment.

The vectors are those of the passages of datasets, as `prepare_eval.py` writes them, or else of the pages in corpus/,
and the questions those of the datasets. Where more vectors are wanted than there are, they are jittered copies.

    nice scripts/measure/near.py SCIFACT MTRAG --rows 18000 --rows 260000 --json near.json
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from grow import paragraphs  # noqa: E402

from local_rag.index.vector_index import NearTuning, VectorIndex, VectorPart, one_thread, open_near, write_near  # noqa: E402
from local_rag.models.load import load_embedder  # noqa: E402  found only after the line above
from local_rag.models.registry import resolve  # noqa: E402

_POOL, _QUESTIONS = 150, 250
_JITTER = 0.6
_WORDS = 110  # of a passage
_CANDIDATES = (2, 4, 8, 16)
# Other indexes of FAISS, with what they are told when they are asked.
_OTHERS = {"IVF2048,SQ8": {"nprobe": 256}, "HNSW32,SQ8": {"efSearch": 8 * _POOL}, "RaBitQ": {}, "SQ8": {}}

Search = Callable[[np.ndarray], "set[int]"]


def read_texts(datasets: tuple[Path, ...]) -> tuple[list[str], list[str]]:
    """Return passages and questions."""
    if not datasets:
        passages = paragraphs()
        return passages, [" ".join(text.split()[5:14]) for text in passages[:_QUESTIONS]]
    passages, questions = list[str](), list[str]()
    for dataset in datasets:
        for line in (dataset / "documents.jsonl").read_text().splitlines():
            words = json.loads(line)["text"].split()
            passages += [" ".join(words[start : start + _WORDS]) for start in range(0, len(words), _WORDS)]
        lines = (dataset / "questions.jsonl").read_text().splitlines()
        questions += [json.loads(line)["question"] for line in lines[: _QUESTIONS // len(datasets)]]
    return passages, questions


def make_vectors(bases: np.ndarray, rows: int) -> np.ndarray:
    """Return the first real vectors, or all and jittered copies of them, normalised."""
    random = np.random.default_rng(2)
    vectors = bases[np.arange(rows) % len(bases)]
    noise = random.standard_normal((max(0, rows - len(bases)), bases.shape[1]), dtype=np.float32)
    vectors[len(bases) :] += np.float32(_JITTER / np.sqrt(bases.shape[1])) * noise
    normalised: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return normalised


def ask(search: Search, questions: np.ndarray) -> tuple[list[set[int]], float]:
    """Return what each question finds, and the median time in milliseconds."""
    found, times = [], []
    for question in questions:
        started = time.perf_counter()
        found.append(search(question))
        times.append(1000 * (time.perf_counter() - started))
    return found, median(times)


def searching(index: VectorIndex) -> Search:
    """Return a search of an index of ours."""
    return lambda question: {row for row, _ in index.search(question, _POOL)}


def compare(vectors: np.ndarray, questions: np.ndarray, folder: Path) -> list[dict[str, Any]]:
    """Measure exact search, the codes that are used under several tunings, and others."""
    import faiss

    exact, milliseconds = ask(searching(VectorIndex([VectorPart(vectors)])), questions)
    rows: list[dict[str, Any]] = [{"rows": len(vectors), "index": "exact", "ms": milliseconds, "recall": 1.0}]

    def tell(name: str, search: Search, build_seconds: float) -> None:
        found, ms = ask(search, questions)
        shares = [len(one & other) / len(other) for one, other in zip(found, exact, strict=True)]
        row = {"index": name, "ms": ms, "recall": float(np.mean(shares)), "lowest_recall": min(shares)}
        rows.append({"rows": len(vectors), **row, "build_seconds": build_seconds})
        click.echo(json.dumps(rows[-1]), err=True)

    started = time.perf_counter()
    write_near(vectors, folder / "codes.faiss", NearTuning(least_rows=1))
    built, near = time.perf_counter() - started, open_near(folder / "codes.faiss")
    for candidates in _CANDIDATES:
        part = VectorPart(vectors, None, near)
        index = VectorIndex([part], tuning=NearTuning(candidates=candidates))
        tell(f"pairs in 4 bits, {candidates} times as many compared", searching(index), built)
    for name, told in _OTHERS.items():
        started = time.perf_counter()
        other = faiss.index_factory(vectors.shape[1], name, faiss.METRIC_INNER_PRODUCT)
        other.train(vectors[:: max(1, len(vectors) // 80_000)])
        other.add(vectors)
        built = time.perf_counter() - started
        for parameter, value in told.items():
            faiss.ParameterSpace().set_index_parameter(other, parameter, value)

        def search(question: np.ndarray, other: Any = other) -> set[int]:
            found = np.sort(other.search(question.reshape(1, -1), 8 * _POOL)[1][0])
            found = found[found >= 0]
            return set(found[np.argsort(-(vectors[found] @ question))[:_POOL]].tolist())

        with one_thread():
            tell(f"{name}, 8 times as many compared", search, built)
    return rows


@click.command()
@click.argument("datasets", nargs=-1, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--rows", "sizes", multiple=True, type=int, default=(50_000,), show_default=True)
@click.option("--work", type=click.Path(path_type=Path), help="Folder in which vectors are kept for another run.")
@click.option("--json", "output", type=click.Path(path_type=Path), help="Where the figures are written.")
def main(datasets: tuple[Path, ...], sizes: tuple[int, ...], work: Path | None, output: Path | None) -> None:
    """Measure segments of these sizes."""
    with tempfile.TemporaryDirectory() as name:
        folder = work or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        kept = folder / "passages.npy", folder / "questions.npy"
        if not all(path.exists() for path in kept):
            embedder = load_embedder(resolve("all-minilm-l6-v2", "embed"))
            for path, texts in zip(kept, read_texts(datasets), strict=True):
                np.save(path, embedder.embed_passages(texts))
        bases, questions = (np.load(path) for path in kept)
        rows = [row for size in sizes for row in compare(make_vectors(bases, size), questions, folder)]
    if output:
        output.write_text(json.dumps(rows, indent=1) + "\n")
    click.echo(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
