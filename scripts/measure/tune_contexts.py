"""Compare ways to ask for a chunk's context, by the retrieval that the contexts of each give.

    python scripts/measure/tune_contexts.py DATASET --libraries FOLDER --json docs/measurements/tuning-prompts.json

All chunks of the dataset get a context in each way, by the same model; each way has a library of its own in FOLDER, so
that a stopped run goes on where it was. What a way asks is part of the keys of its contexts, so that they are never
taken for those of another way. The JSON has recall of every stage without reranking, and a paired test of the shipped
way against each other one, on all questions and on the half for choosing.
"""

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Generator as Stream
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from other_prompts import INSTRUCTION, OPENING, TEXTS, cut_at_chunk, document_head, quotation

from local_rag import Library
from local_rag.evaluation.dataset import load_dataset
from local_rag.evaluation.evaluate import compare_reports, evaluate
from local_rag.index.generations import Generations
from local_rag.indexing.contextualize import MAX_TOKENS, WINDOW_TOKENS, ContextJob, context_room, repair_context
from local_rag.indexing.indexer import Indexer, OpenVocabulary
from local_rag.indexing.work import LocalWorkers, Note, WrittenContext
from local_rag.keys import key_of
from local_rag.library import Parts
from local_rag.llama.engine import EngineSettings
from local_rag.llama.generator import Request, Vocabulary
from local_rag.llama.optimize import fastest_file
from local_rag.llama.tuning import stored_settings
from local_rag.models.choice import find_for_index
from local_rag.records import InstalledModel, Progress
from local_rag.store.database import Store

SHIPPED = "shipped"
QUOTED_WORDS = 12  # at each end of a chunk
QUOTED_TOKENS = 384  # of a chunk, with the words around it
SHORTER = (
    "Please give a short context to situate the last chunk within the document for search retrieval, in one sentence."
)
NAMES = (
    "For a search engine, say in one short sentence what the document is about and what its last chunk holds. "
    "Use the names that stand in the text."
)


@dataclass(frozen=True)
class Way:
    """A way to ask for contexts; the defaults are what is shipped.

    A chunk is the last that the model reads, or it is `quoted` behind its window, as contexts are usually asked for:
    the whole chunk, or the words at both its ends.
    """

    instruction: str = INSTRUCTION
    window_tokens: int = WINDOW_TOKENS  # no more than the default
    quoted: Literal["no", "chunk", "ends"] = "no"
    told: bool = False  # what sets the document apart, as `--context auto` says it, where a chunk can be mistaken

    def model(self, model: InstalledModel) -> InstalledModel:
        """Return the model under an identity that stands for the way too: it becomes part of every context's key."""
        return replace(model, identity=key_of(model.identity, TEXTS, QUOTED_WORDS, asdict(self)))

    def vocabulary(self, open_vocabulary: OpenVocabulary) -> OpenVocabulary:
        """Open vocabularies for which windows are cut to this size."""

        @contextmanager
        def opened(path: Path) -> Iterator[Vocabulary]:
            with open_vocabulary(path) as vocabulary:
                # A window takes half of what a model reads.
                vocabulary.context_length = min(vocabulary.context_length, 2 * self.window_tokens)
                yield vocabulary

        return opened

    def room(self, context_length: int, sequences: int) -> int:
        """Return the KV cells for the prompts."""
        room = context_room(min(context_length, 2 * self.window_tokens), sequences)
        return room if self.quoted == "no" and not self.told else room + sequences * QUOTED_TOKENS

    def prompts(self, jobs: Iterable[ContextJob], model: Vocabulary) -> Iterator[Request]:
        """Yield the prompt of each job under its key."""
        if self.quoted == "no":
            yield from cut_at_chunk(jobs, model, self.instruction, told=self.told)
            return
        head, quote = document_head(model), quotation(model, self.instruction)
        window, prefix = None, list[int]()
        for job in jobs:
            if job.window is not window:
                window = job.window
                prefix = [*head, *model.tokenize("\n".join((window.head, *window.pieces)))]
            chunk = window.pieces[job.piece]
            yield Request(job.key, prefix, quote(chunk if self.quoted == "chunk" else ends(chunk)), MAX_TOKENS)


def ends(chunk: str) -> str:
    """Return the first and last words of a chunk."""
    parts = chunk.split()
    if len(parts) <= 2 * QUOTED_WORDS:
        return " ".join(parts)
    return f"{' '.join(parts[:QUOTED_WORDS])} ... {' '.join(parts[-QUOTED_WORDS:])}"


NARROWER = 1024
WAYS = {
    SHIPPED: None,
    "windows of 1,024 tokens": Way(window_tokens=NARROWER),
    "shorter instruction": Way(SHORTER),
    "shorter instruction, windows of 1,024 tokens": Way(SHORTER, window_tokens=NARROWER),
    "names asked for": Way(NAMES),
    "told what sets the document apart": Way(told=True),
    "chunk repeated": Way(quoted="chunk"),
    "first and last words repeated": Way(quoted="ends"),
}


class AskingWorkers(LocalWorkers):
    """Work as ever, but ask for contexts in another way."""

    def __init__(self, embed_model: InstalledModel, context_model: InstalledModel, way: Way, parts: Parts) -> None:
        super().__init__(embed_model, context_model, load_embedder=parts.load_embedder, open_engine=parts.open_engine)
        self.file, self.way, self.open_engine = fastest_file(context_model), way, parts.open_engine

    def write_contexts(self, jobs: Iterable[ContextJob], expected: int, note: Note) -> Stream[WrittenContext]:
        """Write many contexts at a time."""
        note(f"loading {self.file.name}")
        with self.open_engine(
            self.file,
            context_tokens=self.way.room,
            settings=lambda model: stored_settings(model.path) or EngineSettings(),
        ) as engine:
            engine.counts = self.counts
            for key, tokens, whole in engine.complete(self.way.prompts(jobs, engine.model)):
                text, kind = repair_context(f"{OPENING}{engine.model.detokenize(tokens)}", whole)
                yield WrittenContext(key, text, kind)


class AskingLibrary(Library):
    """A library whose contexts are asked for in another way."""

    def __init__(self, folder: Path, way: Way, parts: Parts, **settings: Any) -> None:
        super().__init__(folder, parts=parts, context="llm", **settings)
        self.way, self.parts = way, parts

    @contextmanager
    def writing(
        self, progress: Callable[[Progress], None] = lambda _progress: None, *, create: bool = False, here: bool = False
    ) -> Iterator[tuple[Store, Indexer]]:
        """Hold the library's lock; yield its store and an indexer that asks in this way."""
        embed_model, context_model = find_for_index(self.settings)
        assert context_model is not None
        with super().writing(progress, create=create) as (store, _):
            yield (
                store,
                Indexer(
                    store,
                    Generations(self.folder),
                    AskingWorkers(embed_model, context_model, self.way, self.parts),
                    self.settings,
                    embed_model=embed_model,
                    context_model=self.way.model(context_model),
                    open_vocabulary=self.way.vocabulary(self.parts.open_vocabulary),
                    progress=progress,
                ),
            )


def open_library(folder: Path, way: Way | None) -> Library:
    """Open the library of a way, None being the shipped one."""
    return AskingLibrary(folder, way, Parts()) if way else Library(folder, context="llm")


def main() -> None:
    """Write contexts in each way asked for, search with them, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--libraries", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    arguments = parser.parse_args()
    dataset = load_dataset(arguments.dataset)
    report: dict[str, Any] = json.loads(arguments.json.read_text()) if arguments.json.exists() else {}
    runs = {}
    for way in dict.fromkeys((SHIPPED, *arguments.ways)):

        def say(progress: Progress, way: str = way) -> None:
            if progress.done % 100 == 0:
                print(way, progress.stage, progress.done, progress.total, progress.detail, flush=True)

        folder = arguments.libraries / way.replace(" ", "-").replace(",", "")
        with open_library(folder, WAYS[way]) as library:
            runs[way] = {
                part: evaluate(dataset, library, part=part, rerank=False, progress=say) for part in ("all", "choose")
            }
        report[way] = {"recall": {part: run["stages"] for part, run in runs[way].items()}}
        if way != SHIPPED:
            report[way]["shipped_minus_this"] = {
                part: compare_reports(runs[SHIPPED][part], run)["stages"] for part, run in runs[way].items()
            }
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")
        fused = report[way]["recall"]["all"]["fused"]
        print(way, *(f"{fused[f'recall@{depth}']:.1f}" for depth in (5, 10, 20)), flush=True)


if __name__ == "__main__":
    main()
