"""Time questions on a synthetic library, without a filter and with one that 1 of 100 documents passes.

    python -m scripts.benchmarks filters --json docs/measurements/filters.json

The store, the index and the search are those of `search`. The vectors are random, and nothing is reranked. Each
question is asked in all three ways in turn. `same` is one filter for all questions. `other` is a different filter for
each question, which has to be checked against all documents again. Run it on an idle machine.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.asking import EVERYTHING, Filters
from local_rag.index.generations import Generations
from local_rag.index.protocol import Contents, DocumentRows
from local_rag.records import Chunk, Document, Provenance
from local_rag.retrieval.question import Question
from local_rag.retrieval.searcher import Searcher
from local_rag.settings import Settings
from local_rag.store.database import Store
from scripts.benchmarks.search import DIMENSION, DOCUMENT_CHUNKS, QUESTION_WORDS, make_texts

PASSING = 100  # 1 of this many documents passes
WARM_UP = 5  # questions that are not counted
ROOT = Path("/measured")


class RandomEmbedder:
    """Return a random vector for each text."""

    def __init__(self) -> None:
        self._generator = np.random.default_rng(2)

    def embed_query(self, _text: str) -> np.ndarray:
        """Return a normalised vector."""
        vector = self._generator.standard_normal(DIMENSION).astype(np.float32)
        normalised: np.ndarray = vector / np.linalg.norm(vector)
        return normalised

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Return normalised vectors."""
        return np.stack([self.embed_query(text) for text in texts])


def build(folder: Path, chunks: int) -> None:
    """Make a library with this many chunks; document n is in the folder n modulo PASSING."""
    generator, embedder = np.random.default_rng(0), RandomEmbedder()
    with closing(Store(folder, create=True)) as store:
        store.add_roots([ROOT])
        for number in range(-(-chunks // DOCUMENT_CHUNKS)):
            texts = make_texts(min(DOCUMENT_CHUNKS, chunks - number * DOCUMENT_CHUNKS), generator)
            place = ROOT / f"{number % PASSING:03}" / f"{number}.md"
            said = Provenance(tags=("rare",) if number % PASSING == 0 else ())
            document = Document(place, f"Document {number}", " ".join(texts), "text", provenance=said)
            parts = [Chunk(position, 0, 0, text) for position, text in enumerate(texts)]
            store.put_document(document, parts, size=1, modified_ns=number, sha256=str(number), split_key="")

        def rows(documents: Sequence[int]) -> Iterator[DocumentRows]:
            for document in documents:
                held = list(store.chunks(document))
                texts = [row.chunk.text for row in held]
                yield DocumentRows(document, [row.id for row in held], embedder.embed_passages(texts), texts)

        documents = np.array([document.id for document in store.documents()], dtype=np.int64)
        contents = Contents(documents, np.ones_like(documents), rows)
        Generations(folder).publish(contents, {"fingerprint": {"context": "none"}})


def measure(folder: Path, questions: int) -> dict[str, Any]:
    """Ask every question without a filter and with both kinds; return the median and 95th percentile in ms."""
    index = Generations(folder).live()
    assert index is not None
    index.open()
    times: dict[str, list[float]] = {"none": [], "same": [], "other": []}
    with closing(Store(folder)) as store:
        plain, same, other = (Searcher(index, store, Settings(), RandomEmbedder(), None) for _ in times)
        for number, question in enumerate(make_texts(questions + WARM_UP, np.random.default_rng(1), QUESTION_WORDS)):
            ways = {
                "none": (plain, EVERYTHING),
                "same": (same, Filters(tags=("rare",))),
                "other": (other, Filters(within=(f"{number % PASSING:03}/**",))),
            }
            for name, (searcher, filters) in ways.items():
                started = time.perf_counter()
                found = searcher.trace(Question(question), top=10, filters=filters).passages
                if number >= WARM_UP:
                    times[name].append(1000 * (time.perf_counter() - started))
                wrong = [one for one in found if filters.tags and one.provenance.tags != filters.tags]
                assert not wrong, "a passage does not pass the filter"
    return {
        name: {"median_ms": statistics.median(values), "p95_ms": float(np.percentile(values, 95))}
        for name, values in times.items()
    }


def main() -> None:
    """Build, ask, print and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", type=int, nargs="+", default=[20_000, 100_000])
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sizes = []
    for chunks in arguments.chunks:
        with tempfile.TemporaryDirectory() as name:
            build(Path(name), chunks)
            sizes.append({"chunks": chunks, "passing": f"1 of {PASSING}", **measure(Path(name), arguments.questions)})
        print(json.dumps(sizes[-1]), flush=True)
    if arguments.json:
        report = {"cores": len(os.sched_getaffinity(0)), "questions": arguments.questions, "sizes": sizes}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
