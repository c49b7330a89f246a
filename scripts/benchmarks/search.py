"""Time a search in growing indexes of synthetic chunks, without embedding the question and without reranking.

    python -m scripts.benchmarks search --json docs/measurements/search-latency.json

Texts are drawn from a Zipf distribution over an artificial vocabulary, like the words of real texts. Vectors are random
and normalised, with 384 dimensions like those of MiniLM. Each size runs in a process of its own, so its memory is that
of one index. Sizes above `--keyword-limit` have no keyword index; their vector search is fused with a keyword list of
the same length. Run it on an idle machine.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.index.arrays import open_array, write_array
from local_rag.index.keyword_index import KeywordIndex
from local_rag.index.postings import Postings
from local_rag.index.vector_index import VectorIndex, VectorPart, blend_neighbours
from local_rag.retrieval.searcher import reciprocal_rank_fusion
from local_rag.settings import Settings
from local_rag.text.tokens import keyword_tokens

ROOT = Path(__file__).parents[2]
DIMENSION = 384
CHUNK_WORDS = 100
QUESTION_WORDS = 10
DOCUMENT_CHUNKS = 30
VOCABULARY = 50_000
QUESTIONS = 50


def make_texts(count: int, generator: np.random.Generator, words: int = CHUNK_WORDS) -> list[str]:
    """Return texts whose word frequencies follow those of natural language."""
    vocabulary = np.array([f"w{number:x}q" for number in range(VOCABULARY)])
    chances = 1 / (np.arange(VOCABULARY) + 10.0)
    drawn = generator.choice(vocabulary, size=(count, words), p=chances / chances.sum())
    return [" ".join(row) for row in drawn]


def memory_mb() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(chunks: int, with_keywords: bool) -> dict[str, Any]:
    """Build, save, load and search the indexes of one size; return milliseconds per stage, memory and load time."""
    generator = np.random.default_rng(0)
    documents = (np.arange(chunks) // DOCUMENT_CHUNKS).tolist()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started = time.perf_counter()
        build(chunks, documents, folder, with_keywords, generator)
        built = time.perf_counter() - started
        disk = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
        # In a process that only searches, so the memory of building is not counted.
        arguments = [sys.executable, "-m", "scripts.benchmarks", "search", "--ask", name]
        answer = subprocess.run(arguments, capture_output=True, text=True, check=True, cwd=ROOT)
    report: dict[str, Any] = json.loads(answer.stdout)
    return {"chunks": chunks, **report, "build_seconds": built, "disk_mb": disk}


def build(chunks: int, documents: list[int], folder: Path, with_keywords: bool, generator: np.random.Generator) -> None:
    """Save both indexes to a folder."""
    vectors = generator.standard_normal((chunks, DIMENSION), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    write_array(folder / "vectors.npy", blend_neighbours(vectors, documents))
    del vectors
    if with_keywords:
        tokens = [keyword_tokens(text) for text in make_texts(chunks, generator)]
        Postings.build(tokens, documents).write(folder / "keywords")


def ask(folder: Path) -> dict[str, Any]:
    """Load the indexes of a folder and search them; the first questions warm up and are not counted."""
    settings = Settings()
    generator = np.random.default_rng(1)
    questions = make_texts(QUESTIONS, generator, QUESTION_WORDS)
    queries = generator.standard_normal((QUESTIONS, DIMENSION), dtype=np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    import faiss  # noqa: F401  the memory and import time of the libraries do not count

    before, started = memory_mb(), time.perf_counter()
    vectors = VectorIndex([VectorPart(open_array(folder / "vectors.npy"))])
    postings = folder / "keywords"
    keywords = KeywordIndex([(Postings.open(postings), None)]) if postings.exists() else None
    loaded = time.perf_counter() - started
    times: dict[str, list[float]] = {"dense": [], "keyword": [], "fuse": [], "total": []}
    for question, query in zip(questions, queries, strict=True):
        marks = [time.perf_counter()]
        dense = vectors.search(query, settings.pool)
        marks.append(time.perf_counter())
        found = keywords.search(keyword_tokens(question), settings.pool) if keywords else dense[::-1]
        marks.append(time.perf_counter())
        reciprocal_rank_fusion(
            {"dense": [row for row, _ in dense], "keyword": [row for row, _ in found]},
            k=settings.rrf_k,
            weights={"dense": settings.dense_weight, "keyword": settings.keyword_weight},
        )
        marks.append(time.perf_counter())
        for stage, seconds in zip(times, [*np.diff(marks), marks[-1] - marks[0]], strict=True):
            times[stage].append(1000 * seconds)
    warm = {stage: values[5:] for stage, values in times.items() if keywords or stage != "keyword"}
    return {
        "milliseconds": {stage: statistics.median(values) for stage, values in warm.items()},
        "milliseconds_p95": {stage: float(np.percentile(values, 95)) for stage, values in warm.items()},
        "load_seconds": loaded,
        "memory_mb": memory_mb() - before,
    }


def main() -> None:
    """Measure every size and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--keyword-limit", type=int, default=100_000)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--ask", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ask:
        print(json.dumps(ask(arguments.ask)))
        return
    rows = []
    for size in arguments.sizes:
        rows.append(measure(size, size <= arguments.keyword_limit))
        print(json.dumps(rows[-1]), flush=True)
    report = {"cores": len(os.sched_getaffinity(0)), "dimension": DIMENSION, "pool": Settings().pool, "sizes": rows}
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
