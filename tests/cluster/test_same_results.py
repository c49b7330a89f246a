"""The same models on a cluster and here: run in full, since real models take minutes."""

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from local_rag.cluster.workers.ray_workers import RayWorkers
from local_rag.indexing.situating_prompts import context_plan, context_room, plan_contexts, prompt_requests
from local_rag.indexing.workers import EmbeddingJob, LocalWorkers
from local_rag.llama.generator import common_prefix
from local_rag.llama.models_in_use import open_engine, open_vocabulary
from local_rag.model_records import InstalledModel
from local_rag.models.registry import resolve
from local_rag.reading.isolate import IsolatedReader
from local_rag.reading.split import Splitting
from tests.cluster.conftest import FULL, Two

pytestmark = [
    pytest.mark.rest,
    pytest.mark.skipif(not FULL, reason="takes long; run by `scripts/cluster_test.sh full`"),
]
_CORPUS = Path(__file__).parents[2] / "corpus"
_CLOSE = 0.25  # of log probability: batches of other shapes round differently


def ignore(_remark: str) -> None: ...


def test_contexts_are_equal_or_part_where_two_tokens_are_as_likely(
    two: Two, embed_model: InstalledModel, splitting: Splitting
) -> None:
    writer = resolve("smollm2-135m-instruct", "context")
    jobs = []
    with IsolatedReader(splitting) as reader, open_vocabulary(writer.path) as vocabulary:
        for path in islice(sorted(_CORPUS.rglob("*.md")), 6):
            read = reader.read(path)
            plan = context_plan(writer.identity)
            jobs += plan_contexts(
                read.document.title, read.document.text, read.chunks, vocabulary=vocabulary, plan=plan
            )
    jobs = list({job.key: job for job in jobs}.values())[:96]
    here, there = LocalWorkers(embed_model, writer), RayWorkers(two.address, embed_model, writer)
    one, other = ({w.key: w.text for w in workers.write_contexts(iter(jobs), 0, ignore)} for workers in (here, there))
    assert one.keys() == other.keys()
    differing = [job for job in jobs if one[job.key] != other[job.key] and one[job.key] and other[job.key]]
    assert len(differing) <= len(jobs) // 4
    with open_engine(writer.path, context_tokens=context_room) as engine:
        for request in prompt_requests(differing, engine.model):
            tokens = [engine.model.tokenize(texts[request.key].removeprefix("This chunk")) for texts in (one, other)]
            shared = common_prefix(*tokens)
            if shared < min(map(len, tokens)):  # else one of them was only cut back further
                suffix = [*request.suffix, *tokens[0][:shared]]
                likely = engine.log_probabilities(list(request.prefix)[: request.start], suffix)
                assert abs(likely[tokens[0][shared]] - likely[tokens[1][shared]]) <= _CLOSE


def test_vectors_of_the_same_texts_are_the_same(two: Two, embed_model: InstalledModel) -> None:
    texts = [path.read_text(encoding="utf-8")[:600] for path in islice(sorted(_CORPUS.rglob("*.md")), 80)]
    jobs = [EmbeddingJob(str(number), text, text[:80] * (number % 2)) for number, text in enumerate(texts)]
    found = []
    for workers in (LocalWorkers(embed_model, None), RayWorkers(two.address, embed_model, None)):
        rows = {
            key: row for keys, rows in workers.embed(iter(jobs), ignore) for key, row in zip(keys, rows, strict=True)
        }
        found.append(np.stack([rows[job.key] for job in jobs]))
    assert (found[0] * found[1]).sum(axis=1).min() >= 0.9999
