"""Choose when and how FAISS is asked: recall of exact search and time, for sizes of a segment and shares of its lists.

The vectors are those of `grow.py`: real ones, jittered. Beside inverted files of 8-bit vectors, which are used, it
measures a graph (HNSW) and 16-bit ones.

    nice scripts/measure/near.py --rows 50000 --rows 250000 --json near.json
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from grow import paragraphs  # noqa: E402

from local_rag.models.load import load_embedder  # noqa: E402  found only after the line above
from local_rag.models.registry import resolve  # noqa: E402
from local_rag.store.vector_index import NearTuning, VectorIndex, VectorPart, open_near, write_near  # noqa: E402

_POOL, _QUESTIONS, _JITTER = 150, 100, 0.6
_PROBED = (64, 32, 16, 8)


def make_vectors(bases: np.ndarray, rows: int, seed: int) -> np.ndarray:
    """Return jittered copies of real vectors, normalised."""
    random = np.random.default_rng(seed)
    noise = random.standard_normal((rows, bases.shape[1]), dtype=np.float32) / np.sqrt(bases.shape[1])
    vectors = bases[random.integers(0, len(bases), rows)] + np.float32(_JITTER) * noise
    normalised: np.ndarray = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return normalised


def ask(index: VectorIndex, questions: np.ndarray) -> tuple[list[set[int]], float]:
    """Return what each question finds, and the median time in milliseconds."""
    found, times = [], []
    for question in questions:
        started = time.perf_counter()
        found.append({row for row, _ in index.search(question, _POOL)})
        times.append(1000 * (time.perf_counter() - started))
    return found, median(times)


def compare(vectors: np.ndarray, questions: np.ndarray, folder: Path) -> list[dict[str, Any]]:
    """Measure exact search, the index that is used under several tunings, and two others."""
    import faiss

    exact, milliseconds = ask(VectorIndex([VectorPart(vectors)]), questions)
    rows: list[dict[str, Any]] = [{"rows": len(vectors), "index": "exact", "ms": milliseconds, "recall": 1.0}]

    def told(name: str, found: list[set[int]], ms: float, built: float) -> None:
        recall = float(np.mean([len(one & other) / _POOL for one, other in zip(found, exact, strict=True)]))
        rows.append({"rows": len(vectors), "index": name, "ms": ms, "recall": recall, "build_seconds": built})
        click.echo(json.dumps(rows[-1]), err=True)

    started = time.perf_counter()
    write_near(vectors, folder / "near.faiss", NearTuning(least_rows=1))
    built = time.perf_counter() - started
    near = open_near(folder / "near.faiss")
    for probed in _PROBED:
        index = VectorIndex([VectorPart(vectors, None, near)], tuning=NearTuning(probed=probed))
        told(f"IVF,SQ8 one of {probed} lists", *ask(index, questions), built)
    for name in ("HNSW32,SQ8", "IVF1024,SQfp16"):
        started = time.perf_counter()
        other = faiss.index_factory(vectors.shape[1], name, faiss.METRIC_INNER_PRODUCT)
        other.train(vectors[:: max(1, len(vectors) // 50_000)])
        other.add(vectors)
        built = time.perf_counter() - started
        if name.startswith("HNSW"):
            faiss.ParameterSpace().set_index_parameter(other, "efSearch", 4 * _POOL)
        else:
            faiss.ParameterSpace().set_index_parameter(other, "nprobe", 64)
        found, times = [], []
        for question in questions:
            started = time.perf_counter()
            found.append(set(other.search(question.reshape(1, -1), _POOL)[1][0].tolist()))
            times.append(1000 * (time.perf_counter() - started))
        told(name, found, median(times), built)
    return rows


@click.command()
@click.option("--rows", "sizes", multiple=True, type=int, default=(20_000, 50_000, 100_000), show_default=True)
@click.option("--json", "output", type=click.Path(path_type=Path), help="Where the figures are written.")
def main(sizes: tuple[int, ...], output: Path | None) -> None:
    """Measure segments of these sizes."""
    bases = load_embedder(resolve("all-minilm-l6-v2", "embed")).embed_passages(paragraphs())
    questions, rows = make_vectors(bases, _QUESTIONS, 1), []
    with tempfile.TemporaryDirectory() as name:
        for size in sizes:
            rows += compare(make_vectors(bases, size, 2), questions, Path(name))
    if output:
        output.write_text(json.dumps(rows, indent=1) + "\n")
    click.echo(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
