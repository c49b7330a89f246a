"""Measure the overhead of a cluster worker, and how many workers one driver can feed.

    python -m scripts.benchmarks cluster corpus --profile tiny        # both measurements
    python -m scripts.benchmarks cluster --only driver                # fake models with 1, 2, 4 and 8 workers

Starts Ray on the loopback interface with its own token and folder, and stops it. The engine in this process and the
worker use the same two threads and take turns. Prints JSON. Run it on an idle machine.
"""

import argparse
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from local_rag.cluster.workers.ray_connection import certificates, make_token, ray_environment
from local_rag.cluster.workers.ray_workers import RayWorkers
from local_rag.indexing.situating_prompts import ContextJob, Window, context_plan, plan_contexts
from local_rag.indexing.workers import LocalWorkers
from local_rag.llama.generator import Counts, Request, Vocabulary
from local_rag.llama.models_in_use import open_vocabulary
from local_rag.model_records import InstalledModel
from local_rag.models.choice import find_for_index
from local_rag.models.own_models import TOKENIZER_FILE
from local_rag.reading.isolate import IsolatedReader
from local_rag.reading.split import Splitting
from local_rag.settings import Settings

ACTORS = (1, 2, 4, 8)


class NoModel:
    """Return the same text for every prompt, at once."""

    def __init__(self, path: Path) -> None:
        self.counts, self.context_tokens = Counts(), 8192
        self.model: Vocabulary = _Words(path)

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[str, list[int], bool]]:
        """Yield the same tokens for each request."""
        for request in requests:
            yield request.key, list(b" is about three hundred bytes of nothing in particular, " * 5), True


class _Words:
    context_length = 8192
    parameters = 0

    def __init__(self, path: Path) -> None:
        self.path = path

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        return list(text.encode())

    def piece(self, token: int) -> bytes:
        return bytes([token])

    def detokenize(self, tokens: list[int]) -> str:
        return bytes(tokens).decode()

    def chat_frame(self, system: str) -> tuple[str, str]:
        return system, ""


@contextmanager
def no_engine(path: Path, **_options: object) -> Iterator[Any]:
    """Open an engine without a model."""
    yield NoModel(path)


@contextmanager
def state_folder() -> Iterator[None]:
    """Use a temporary token and state folder for all clusters, because Ray reads the token once per process."""
    with tempfile.TemporaryDirectory(prefix="lr", ignore_cleanup_errors=True) as state:
        os.environ |= {"LOCAL_RAG_CLUSTER_STATE": state, "LOCAL_RAG_CLUSTER_TOKEN_FILE": f"{state}/token"}
        os.environ["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
        make_token()
        certificates().make_authority()
        certificates().certify([])
        os.environ |= ray_environment("127.0.0.1")
        yield


@contextmanager
def machines(count: int, cores: int) -> Iterator[str]:
    """Start a Ray cluster of `count` nodes on loopback; yield its address."""
    from ray.cluster_utils import Cluster

    node = {"num_cpus": cores, "object_store_memory": 200 << 20}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        for _ in range(count - 1):
            cluster.add_node(**node)
        yield cluster.address
    finally:
        cluster.shutdown()


def fake_jobs(count: int, chunks: int = 8) -> Iterator[ContextJob]:
    """Yield jobs with windows of several kilobytes."""
    for number in range(count // chunks):
        window = Window(f"Document {number}", ("word " * 120,) * chunks, 0, chunks)
        yield from (ContextJob(f"{number}/{piece}", window, piece) for piece in range(chunks))


def measure_driver(
    models: tuple[InstalledModel, InstalledModel], chunks: int, numbers: Sequence[int]
) -> dict[str, Any]:
    """Return the contexts per second that one driver receives from each number of workers without a model."""
    found: dict[str, Any] = {}
    for actors in numbers:
        with machines(actors, 1) as address:
            workers = RayWorkers(address, *models, open_engine=no_engine)
            first, done = 0.0, 0
            # The expected number is 0, because for many contexts a worker would first tune a model to the machine.
            for _ in workers.write_contexts(fake_jobs(chunks), 0, lambda _remark: None):
                first = first or time.perf_counter()
                done += 1
            found[str(actors)] = round((done - 1) / (time.perf_counter() - first))
    found["driver_megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return found


def real_jobs(folder: Path, models: tuple[InstalledModel, InstalledModel], chunks: int) -> list[ContextJob]:
    """Plan the contexts of the documents of a folder."""
    embed_model, context_model = models
    jobs: list[ContextJob] = []
    form = context_model.context_form
    plan = context_plan(context_model.identity, form)
    with (
        IsolatedReader(Splitting(embed_model.path / TOKENIZER_FILE, 145)) as reader,
        open_vocabulary(context_model.path) as vocabulary,
    ):
        for path in sorted(folder.rglob("*.md")):
            if len(jobs) >= chunks:
                break
            read = reader.read(path)
            jobs += plan_contexts(
                read.document.title, read.document.text, read.chunks, vocabulary=vocabulary, plan=plan, form=form
            )
    return list(islice({job.key: job for job in jobs}.values(), chunks))


def seconds(workers: LocalWorkers | RayWorkers, jobs: list[ContextJob]) -> float:
    """Return the seconds per context, counted from the first one, because each run loads the model once."""
    started, finished = 0.0, 0
    for _ in workers.write_contexts(iter(jobs), 0, lambda _remark: None):
        started = started or time.perf_counter()
        finished += 1
    assert finished == len(jobs)
    return (time.perf_counter() - started) / (finished - 1)


def measure_overhead(
    folder: Path, models: tuple[InstalledModel, InstalledModel], chunks: int, rounds: int
) -> dict[str, Any]:
    """Compare one worker with the engine in this process; they take turns."""
    jobs, taken = real_jobs(folder, models, chunks), dict[str, list[float]](local=[], worker=[])
    with machines(1, 2) as address:
        for _ in range(rounds):
            taken["local"].append(seconds(LocalWorkers(*models), jobs))
            taken["worker"].append(seconds(RayWorkers(address, *models), jobs))
    medians = {name: statistics.median(values) for name, values in taken.items()}
    return {
        "chunks": len(jobs),
        "seconds_per_chunk": medians,
        "slower": round(medians["worker"] / medians["local"] - 1, 3),
    }


def main() -> None:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("corpus"), help="documents to write contexts for")
    parser.add_argument("--profile", default="tiny")
    parser.add_argument("--only", choices=("overhead", "driver"))
    parser.add_argument("--actors", type=int, nargs="*", default=ACTORS, help="numbers of workers, with a fake model")
    parser.add_argument("--chunks", type=int, default=256)
    parser.add_argument("--fake-chunks", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    embed_model, context_model = find_for_index(Settings(profile=arguments.profile))
    if context_model is None:
        sys.exit("The profile has no model that writes contexts; name another with --profile.")
    models, found = (embed_model, context_model), dict[str, Any]()
    with state_folder():
        if arguments.only != "driver":
            found["overhead"] = measure_overhead(arguments.folder, models, arguments.chunks, arguments.rounds)
        if arguments.only != "overhead":
            found["contexts_a_second_by_actors"] = measure_driver(models, arguments.fake_chunks, arguments.actors)
    print(json.dumps(found, indent=1))
