"""Compare settings of retrieval on the half of the questions kept for choosing.

    python -m scripts.benchmarks retrieval DATASET... --json docs/measurements/tuning-keyword.json
    python -m scripts.benchmarks retrieval DATASET --contexts LIBRARY --json docs/measurements/tuning-contexts.json

Without `--contexts`, each dataset is indexed as by `local-rag eval DATASET --profile tiny --context headings`. With
it, the contexts come from a library that `local-rag eval DATASET` has made. The first row is what is
shipped; each other row changes one thing.
"""

import argparse
import json
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from local_rag import Library
from local_rag.document_records import heading_path
from local_rag.evaluation.dataset import Dataset, load_dataset
from local_rag.evaluation.evaluate import POOL, Ranker, index_dataset
from local_rag.evaluation.ranking_metrics import METRICS, measure
from local_rag.index.keyword_index import KeywordIndex
from local_rag.index.postings import Postings
from local_rag.index.scoring import KeywordTuning
from local_rag.index.vector_index import VectorIndex, VectorPart, VectorTuning, blend_neighbours
from local_rag.indexing.vectors import EmbeddingTuning, embedded_text
from local_rag.models.embedder import SentenceEmbedder
from local_rag.models.registry import resolve
from local_rag.passage_records import StoredChunk
from local_rag.retrieval.searcher import reciprocal_rank_fusion
from local_rag.settings import Settings
from local_rag.store.database import Store
from local_rag.text.tokens import keyword_tokens

EMBED_MODEL = "all-minilm-l6-v2"
SHIPPED = Settings()
KEYWORDS, VECTORS, EMBEDDING = KeywordTuning(), VectorTuning(), EmbeddingTuning()


@dataclass(frozen=True)
class Variant:
    """One way to search; the defaults are those of the program."""

    name: str
    stages: tuple[str, ...] = ("dense", "keyword")
    keywords: KeywordTuning = KEYWORDS
    vectors: VectorTuning = VECTORS
    rrf_k: int = SHIPPED.rrf_k
    dense_weight: float = SHIPPED.dense_weight
    context: float = EMBEDDING.context_weight
    keyword_context: bool = True


def bm25(**changes: Any) -> KeywordTuning:
    """Return the shipped keyword search with changes."""
    return replace(KEYWORDS, **changes)


BASE = Variant("as shipped")
ALONE = VectorTuning(neighbour=0.0)
BEFORE = replace(BASE, keywords=bm25(around=0.0, k1=1.5), vectors=ALONE, rrf_k=60, dense_weight=1.0)
VARIANTS = (
    BASE,
    replace(BEFORE, name="neither neighbours nor surroundings, k = 60, equal weights"),
    replace(BASE, name="dense alone", stages=("dense",)),
    replace(BASE, name="dense alone, no neighbours", stages=("dense",), vectors=ALONE),
    replace(BASE, name="keyword alone", stages=("keyword",)),
    replace(BASE, name="keyword alone, no surroundings", stages=("keyword",), keywords=bm25(around=0.0)),
    *(replace(BASE, name=f"neighbours weigh {weight}", vectors=VectorTuning(weight)) for weight in (0.0, 0.15, 0.4)),
    *(replace(BASE, name=f"surroundings weigh {weight}", keywords=bm25(around=weight)) for weight in (0.0, 0.25, 1.0)),
    *(replace(BASE, name=f"surroundings of {size} chunks", keywords=bm25(block_texts=size)) for size in (4, 16, 10**4)),
    *(replace(BASE, name=f"dense weighs {weight}", dense_weight=weight) for weight in (0.3, 0.5, 1.0)),
    *(replace(BASE, name=f"fusion k = {k}", rrf_k=k) for k in (20, 60)),
    *(
        replace(BASE, name=f"BM25 k1 = {k1}, b = {b}", keywords=bm25(k1=k1, b=b))
        for k1, b in ((0.9, 0.4), (1.5, 0.75), (2.0, 0.9))
    ),
)

WITH_CONTEXTS = (
    BASE,
    replace(BASE, name="no contexts", context=0.0, keyword_context=False),
    replace(BASE, name="contexts in the vectors alone", keyword_context=False),
    replace(BASE, name="contexts in the keyword index alone", context=0.0),
    *(replace(BASE, name=f"contexts weigh {weight}", context=weight) for weight in (0.25, 0.5, 1.0)),
    *(replace(BASE, name=f"neighbours weigh {weight}", vectors=VectorTuning(weight)) for weight in (0.0, 0.25, 0.5)),
    *(replace(BASE, name=f"surroundings weigh {weight}", keywords=bm25(around=weight)) for weight in (0.0, 0.5, 1.0)),
    *(replace(BASE, name=f"dense weighs {weight}", dense_weight=weight) for weight in (0.5, 1.0)),
    *(replace(BASE, name=f"fusion k = {k}", rrf_k=k) for k in (5, 20, 60)),
)


class Indexed:
    """A dataset with its chunks, their contexts if a library has them, and the questions for choosing."""

    def __init__(self, dataset: Dataset, contexts: Path | None) -> None:
        model = resolve(EMBED_MODEL, "embed")
        folder = contexts or dataset.folder / ".local-rag" / "tiny"
        profile, context = ("starter", "auto") if contexts else ("tiny", "headings")
        with Library(folder, profile=profile, context=context) as library:
            chunks = index_dataset(dataset, library, lambda _progress: None)
        with closing(Store(folder)) as store:
            stored: list[StoredChunk] = list(store.chunks())
        self.ids = [chunk.id for chunk in stored]
        self.documents = [chunk.document_id for chunk in stored]
        parts = [(heading_path(chunk.title, chunk.chunk.headings), chunk.chunk.text) for chunk in stored]
        self.texts = ["\n".join(part for part in some if part) for some in parts]
        embedder = SentenceEmbedder(model)
        self.vectors = embedder.embed_passages([embedded_text(*some, model=model) for some in parts])
        self.contexts = [chunk.sentence if contexts else "" for chunk in stored]
        self.context_vectors = np.zeros_like(self.vectors)
        if situated := [row for row, text in enumerate(self.contexts) if text]:
            self.context_vectors[situated] = embedder.embed_passages([self.contexts[row] for row in situated])
        self.ranker = Ranker(dataset, chunks)
        self.questions = [item for item in dataset.questions if item.has_golden and item.part == "choose"]
        self.queries = [embedder.embed_query(question.text) for question in self.questions]

    def measure(self, variant: Variant) -> dict[str, Any]:
        """Return the mean of every metric for a variant."""
        vectors = self.vectors + variant.context * self.context_vectors
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        dense = VectorIndex([VectorPart(blend_neighbours(vectors, self.documents, variant.vectors))])
        pairs = zip(self.contexts if variant.keyword_context else [""] * len(self.texts), self.texts, strict=True)
        tokens = [keyword_tokens("\n".join(pair)) for pair in pairs]
        postings = Postings.build(tokens, self.documents, variant.keywords)
        keyword = KeywordIndex([(postings, None)], variant.keywords)
        rows = []
        for question, query in zip(self.questions, self.queries, strict=True):
            terms = keyword_tokens(question.text)
            lists = {"dense": dense.search(query, POOL), "keyword": keyword.search(terms, POOL)}
            rankings = {name: [row for row, _ in lists[name]] for name in variant.stages}
            weights = {"dense": variant.dense_weight}
            fused = reciprocal_rank_fusion(rankings, k=variant.rrf_k, weights=weights)
            golden, ranks = self.ranker.ranks(question, {"fused": [self.ids[row] for row, _ in fused]})
            rows.append(measure(ranks["fused"], golden))
        return {"variant": variant.name, **{metric: fmean(row[metric] for row in rows) for metric in METRICS}}


def main() -> None:
    """Measure every variant on every dataset."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", type=Path, nargs="+")
    parser.add_argument("--contexts", type=Path, metavar="LIBRARY")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sets: dict[str, list[dict[str, Any]]] = {}
    for folder in arguments.datasets:
        indexed = Indexed(load_dataset(folder), arguments.contexts)
        sets[folder.name] = []
        for variant in WITH_CONTEXTS if arguments.contexts else VARIANTS:
            sets[folder.name].append(indexed.measure(variant))
            print(folder.name, json.dumps(sets[folder.name][-1]), flush=True)
    note = (
        f"Fused retrieval {'with' if arguments.contexts else 'without'} generated contexts, without reranking, "
        "embedder all-MiniLM-L6-v2, on the half of the questions kept for choosing. Each row changes one thing of what "
        "is shipped."
    )
    if arguments.json:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        arguments.json.write_text(json.dumps({"note": note, "sets": sets}, indent=1) + "\n")
