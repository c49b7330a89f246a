"""Measure what publishing one changed document costs in a search engine: seconds, points and bytes sent.

    python -m scripts.benchmarks publish_one --documents 2500 10000 --json publish-one.json

The engine is the stand-in of the tests: Qdrant's engine core behind its REST protocol and TLS, in a process of its own,
not a Qdrant server. Each document is one chunk with a vector of 384 dimensions, of words from the pages of corpus/; the
embedder takes no time. The contexts are those that no model writes (`context_minutes` 0). The seconds of the publish
are those of the last stage of `index`; those of the whole run include looking at all files. At the end
the engine core compacts what it holds and builds its graph, and its files and its memory are measured: some of both it
allocates in advance, so measure two sizes. Run it on an idle machine.
"""

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import qdrant_edge as edge

from local_rag.library import Library, Parts
from local_rag.records import Progress
from local_rag.store.schema import STORE_FILE
from scripts.benchmarks.grow import paragraphs
from tests.support.certificates import Authority
from tests.support.qdrant_stand_in import configuration
from tests.support.search_engine import StandIn

_IN_A_FOLDER = 500
_DIMENSION = 384
_CHANGED = 7  # revisions of the changed document that are measured
_GRAPH_FROM = 1_000  # kilobytes of vectors


class NoEmbedder:
    """Return a vector that depends on the text alone."""

    def __init__(self, _model: Any) -> None:
        pass

    def embed_passages(self, texts: Sequence[str]) -> np.ndarray:
        """Return normalised vectors, shape (len(texts), dimension)."""
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> np.ndarray:
        """Return one normalised vector."""
        seed = int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
        vector = np.random.default_rng(seed).standard_normal(_DIMENSION, dtype=np.float32)
        normalised: np.ndarray = vector / np.linalg.norm(vector)
        return normalised


def document(number: int, revision: int, bases: list[str]) -> str:
    """Return a document of one section: a paragraph of corpus/, some of whose words another one has lent."""
    random = np.random.default_rng([number, revision])
    own, other = bases[number % len(bases)].split(), bases[int(random.integers(len(bases)))].split()
    text = [lent if random.random() < 0.5 else word for word, lent in zip(own, other, strict=False)]  # noqa: PLR2004
    return f"# Page {number}\n\n{' '.join(text)}\n"


def place(folder: Path, number: int) -> Path:
    """Return the path of a document."""
    return folder / f"{number // _IN_A_FOLDER:04}" / f"{number:06}.md"


def write_documents(folder: Path, documents: int, bases: list[str]) -> None:
    """Write the documents."""
    for number in range(documents):
        path = place(folder, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document(number, 0, bases))


class Publishes:
    """Add up the seconds of the stage `publish`, from the progress that is reported."""

    def __init__(self) -> None:
        self.seconds, self._began = 0.0, 0.0

    def __call__(self, progress: Progress) -> None:
        """Take one report."""
        if progress.stage == "publish":
            now = time.perf_counter()
            if progress.done:
                self.seconds += now - self._began
            self._began = now


def stored_bytes(folder: Path) -> Counter[str]:
    """Return how many bytes the disk holds of each kind of file of a collection."""
    found = Counter[str]()
    for path in folder.rglob("*"):
        if path.is_file():
            of_segment = path.relative_to(folder).parts[2:-1]  # segments/ID/KIND/...
            found[of_segment[0] if of_segment else "other"] += path.stat().st_blocks * 512
    return found


def memory_of(shard: Path) -> dict[str, int]:
    """Load a collection in this process; return how many bytes of memory it takes, without and with its files."""

    def status(name: str) -> int:
        found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
        assert found is not None
        return int(found[1]) * 1024

    names = ("RssAnon", "VmRSS")
    before = {name: status(name) for name in names}
    loaded = edge.EdgeShard.load(str(shard))
    vector = NoEmbedder(None).embed_query("x").tolist()
    for _ in range(20):
        loaded.query(edge.QueryRequest(limit=100, query=edge.Query.Nearest(vector, using="dense")))
    grown = {name: status(name) - before[name] for name in names}
    loaded.close()
    return grown


def measure_stored(folder: Path, chunks: int) -> dict[str, Any]:
    """Compact each collection of the engine and build its graph; return the bytes of disk and memory per chunk."""
    found: dict[str, Any] = {}
    for collection in sorted(folder.iterdir()):
        shard, body = collection / "shard", json.loads((collection / "config.json").read_text())
        before, started = stored_bytes(shard), time.perf_counter()
        loaded = edge.EdgeShard.load(str(shard), configuration(body, graph_from=_GRAPH_FROM))
        while loaded.optimize():
            pass
        loaded.close()
        seconds = time.perf_counter() - started
        with get_context("spawn").Pool(1) as process:
            memory = process.apply(memory_of, (shard,)) if body.get("vectors") else {}
        after = stored_bytes(shard)
        found["rows" if body.get("vectors") else "facts"] = {
            "disk_before": round(before.total() / chunks),
            "disk": round(after.total() / chunks),
            "disk_of": {kind: round(size / chunks) for kind, size in after.most_common()},
            "memory": {name: round(size / chunks) for name, size in memory.items()},
            "compaction_seconds": round(seconds, 1),
        }
    return found


def measure(documents: int, work: Path) -> dict[str, Any]:
    """Index all documents, then change one again and again; return the figures."""
    bases, folder = paragraphs(), work / "documents"
    write_documents(folder, documents, bases)
    authority = Authority(work)
    engine = StandIn(authority)
    try:
        found: dict[str, Any] = {"engine": "stand-in over Qdrant's engine core, over TLS", "documents": documents}

        def index() -> dict[str, Any]:
            """Index in a new library object, as each command does."""
            points, sent = engine.written()
            publishes, started = Publishes(), time.perf_counter()
            with Library(
                work / "library",
                parts=Parts(load_embedder=NoEmbedder),
                profile="tiny",
                context_minutes=0.0,
                search_engine={"address": engine.setting, "ca": str(authority.ca)},
            ) as library:
                report = library.index([folder], progress=publishes)
            now_points, now_sent = engine.written()
            return {
                "chunks": report.chunks,
                "points": now_points - points,
                "bytes": now_sent - sent,
                "publish_seconds": round(publishes.seconds, 2),
                "index_seconds": round(time.perf_counter() - started, 2),
            }

        print("first index ...", file=sys.stderr)
        found["first"] = index()
        found["store_bytes_a_chunk"] = round((work / "library" / STORE_FILE).stat().st_size / documents)
        found["changes"] = []
        for revision in range(1, _CHANGED + 1):
            place(folder, documents // 2).write_text(document(documents // 2, revision, bases))
            found["changes"].append(index())
            print(f"changed: {found['changes'][-1]}", file=sys.stderr)
        for name in ("points", "bytes", "publish_seconds", "index_seconds"):
            found[f"most_{name}"] = max(change[name] for change in found["changes"])
        engine.kill()
        found["engine_bytes_a_chunk"] = measure_stored(engine.folder / "collections", documents)
        return found
    finally:
        engine.remove()


def main() -> None:
    """Measure, and write JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--json", type=Path, help="file for the figures; without it they are printed")
    arguments, found = parser.parse_args(), list[dict[str, Any]]()
    for documents in arguments.documents:
        with tempfile.TemporaryDirectory(prefix="local-rag-") as work:
            found.append(measure(documents, Path(work)))
    figures = json.dumps(found, indent=1)
    if arguments.json:
        arguments.json.write_text(f"{figures}\n")
    else:
        print(figures)
