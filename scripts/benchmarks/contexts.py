"""Measure what contexts are worth: index a dataset with each kind of context, ask its questions and compare.

    python -m scripts.benchmarks contexts DATASET --ways none headings perfect auto --model NAME --json FILE

The ways are the modes of `index --context` and some that put contexts which no model wrote in the place of its
sentences, without what code says of look-alikes:

- tf-idf: the terms with the highest tf-idf in the chunk's document;
- rare: the terms of the document that occur in the fewest documents, in the order of the text;
- lead: the beginning of the first paragraph below the document's title;
- perfect: what the dataset's `facts.jsonl` says: lines of {"document": id, "context"} or {"chunk": id, "context"}. If
  it has lines for chunks, the part `given` reports the questions whose golden chunks all have a context of their own.
  Contexts for all chunks would gain less than that, because here no other chunk has one.

Neighbours, surroundings and headings are always used. The ways without a model share one library in `--libraries`. Each
way with a model has a library of its own, so a stopped run can be resumed. A run adds its ways to those that FILE has
for the same dataset. For all questions, those to choose on and those to report on the JSON has the means of every
stage, the recall of an ideal reranking of the 150 candidates, the better of dense and keyword search for each question,
the seconds spent on writing contexts, and paired tests between all ways. A dataset without documents, such as `corpus`,
is indexed as a folder, in the modes of `index --context`.
"""

import argparse
import hashlib
import itertools
import json
import math
import re
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import Any, Literal, get_args

from local_rag import Library
from local_rag.document_records import Chunk
from local_rag.errors import LocalRagError
from local_rag.evaluation.dataset import Dataset, Part, Question, load_dataset
from local_rag.evaluation.evaluate import POOL, compare_reports, evaluate, index_dataset, stage_values
from local_rag.evaluation.ranking_metrics import RECALL_DEPTHS, recall
from local_rag.indexing.compare import APART_PLAN, apart_key
from local_rag.indexing.sentence_writer import plan_of
from local_rag.keys import key_of
from local_rag.library import Parts
from local_rag.models.choice import find
from local_rag.passage_records import ContextMode
from local_rag.progress_records import Progress
from local_rag.store.context_rows import plan_code_contexts, plan_sentences, put_context
from local_rag.text.tokens import keyword_tokens

MODES = get_args(ContextMode)
TERMS = 8
LEAD_CHARACTERS = 300
METRICS = (*(f"recall@{depth}" for depth in RECALL_DEPTHS), "mrr@10")
PARTS: tuple[Part | Literal["given"], ...] = ("all", "choose", "report", "given")

_WORD = re.compile(r"[^\W\d][\w'\u2019-]+|\d{3,}")

Chunks = Mapping[int, tuple[str, Chunk]]  # chunk id -> (document id, chunk), as index_dataset returns it


def tf_idf(dataset: Dataset, chunks: Chunks) -> dict[int, str]:
    """Give each chunk the terms of its document with the highest tf-idf, highest first."""
    return _by_document(dataset, chunks, lambda count, spread, _place: -count * spread)


def rare(dataset: Dataset, chunks: Chunks) -> dict[int, str]:
    """Give each chunk the terms of its document that the fewest others have, in the order of the text."""
    return _by_document(dataset, chunks, lambda _count, spread, place: (-spread, place))


def lead(dataset: Dataset, chunks: Chunks) -> dict[int, str]:
    """Give each chunk the beginning of its document's first paragraph; for code, its first lines."""
    contexts = {}
    for document in dataset.documents:
        paragraphs = (" ".join(part.split()) for part in document.document.text.split("\n\n"))
        first = next((part for part in paragraphs if part and not part.startswith("#")), "")
        contexts[document.id] = textwrap.shorten(first, LEAD_CHARACTERS, placeholder="")
    return {key: contexts[document] for key, (document, _) in chunks.items()}


def read_facts(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the contexts in a file of facts, for documents and for chunks."""
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]
        of_document = {line["document"]: line["context"] for line in lines if "document" in line}
        return of_document, {line["chunk"]: line["context"] for line in lines if "chunk" in line}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise LocalRagError(f"{path} is not a file of facts ({error}); name one with --facts.") from None


def perfect(dataset: Dataset, chunks: Chunks, facts: Path | None = None) -> dict[int, str]:
    """Give each chunk the context that the facts have for it, or else that for its document."""
    of_document, of_chunk = read_facts(facts or dataset.folder / "facts.jsonl")
    names = {document.id: list(document.chunks) for document in dataset.documents}
    contexts = {}
    for key, (document, chunk) in chunks.items():
        name = names[document][chunk.position] if names[document] else ""
        contexts[key] = of_chunk.get(name) or of_document.get(document, "")
    return contexts


GIVEN: Mapping[str, Callable[..., dict[int, str]]] = {"tf-idf": tf_idf, "rare": rare, "lead": lead, "perfect": perfect}
WITHOUT_MODEL = {"none", "headings", *GIVEN}
_MINUTES = 1e6  # enough for every sentence


def _by_document(
    dataset: Dataset, chunks: Chunks, order: Callable[[int, float, int], Any], count: int = TERMS
) -> dict[int, str]:
    """Give each chunk the first terms of its document, ordered by count, idf and first position.

    Words with the same stem are one term, in the form in which it occurs first.
    """
    found: dict[str, tuple[Counter[str], dict[str, str]]] = {}
    for document in dataset.documents:
        written: dict[str, str] = {}
        stems = list[str]()
        for word in _WORD.findall(f"{document.document.title}\n{document.document.text}"):
            # A stop word has no stem; the first stem of an identifier is the whole identifier.
            for stem in keyword_tokens(word)[:1]:
                stems.append(stem)
                written.setdefault(stem, word)
        found[document.id] = Counter(stems), written
    documents = Counter(stem for counts, _ in found.values() for stem in counts)
    contexts = {}
    for name, (counts, written) in found.items():
        places = {stem: place for place, stem in enumerate(written)}
        idf = {stem: math.log(len(found) / documents[stem]) for stem in counts}
        best = sorted(counts, key=lambda stem: (order(counts[stem], idf[stem], places[stem]), places[stem]))
        contexts[name] = ", ".join(written[stem] for stem in best[:count])
    return {key: contexts[document] for key, (document, _) in chunks.items()}


def give_contexts(library: Library, contexts: Mapping[int, str]) -> None:
    """Store contexts by chunk id in the place of the model's sentences, and let code say nothing."""
    plan, nothing = plan_of(find(library.settings, "context")), apart_key("")
    with library.upkeep.writing() as (store, _):
        put_context(store, nothing, "", "unneeded")
        for document in store.documents():
            rows = list(store.rows(document.id))
            texts = {stored.id: contexts.get(stored.id, "") for stored in rows if stored.kind == "chunk"}
            for text in dict.fromkeys(texts.values()):
                put_context(store, key_of("given", text), text, "model" if text else "dropped")
            plan_code_contexts(store, document.id, APART_PLAN, [(stored.id, nothing, None) for stored in rows])
            plan_sentences(store, document.id, plan, [(key, key_of("given", text)) for key, text in texts.items()])


class WritingTime:
    """Print progress, and add up the time spent on writing contexts."""

    def __init__(self, way: str) -> None:
        self.seconds = 0.0
        self._way, self._last = way, 0.0

    def __call__(self, progress: Progress) -> None:
        """Record one report of progress."""
        now = time.monotonic()
        writing = progress.stage in {"compare", "contextualize"}
        if writing:
            self.seconds += now - self._last if self._last else 0.0
        self._last = now if writing else 0.0
        if progress.done % 100 == 0:
            print(self._way, progress.stage, progress.done, progress.total, progress.detail, flush=True)


def measure(
    dataset: Dataset, way: str, folder: Path, *, rerank: bool, facts: Path | None, parts: Parts, **settings: Any
) -> dict[str, Any]:
    """Index a dataset in one way and ask its questions."""
    given = given_questions(dataset, facts)
    clock = WritingTime(way)
    mode, minutes = ("auto", 0.0) if way in GIVEN else (way, _MINUTES)
    if way in GIVEN:
        with Library(folder, parts=parts, context="headings", **settings) as library:
            chunks = index_dataset(dataset, library, clock)
            started = time.monotonic()
            contexts = perfect(dataset, chunks, facts) if way == "perfect" else GIVEN[way](dataset, chunks)
            clock.seconds += time.monotonic() - started
            give_contexts(library, contexts)
    with Library(folder, parts=parts, context=mode, context_minutes=minutes, **settings) as library:
        if not dataset.documents:
            library.index([dataset.folder], contexts=minutes > 0, progress=clock)
        report = evaluate(dataset, library, part="all", rerank=rerank, progress=clock)
    seconds = clock.seconds if way in WITHOUT_MODEL else _add_seconds(folder, clock.seconds)
    # No model wrote the given contexts, although the library has a context model.
    models = {role: name for role, name in report["models"].items() if role != "context" or way not in WITHOUT_MODEL}
    return {
        "seconds_writing": seconds,
        "models": models,
        **{name: report[name] for name in ("chunks", "generated_contexts", "seconds_per_question", "per_question")},
        "halves": {part: summary(rows) for part in PARTS if (rows := of_part(report["per_question"], part, given))},
    }


def _add_seconds(library: Path, seconds: float) -> float:
    """Add the seconds that earlier, stopped runs spent on a library's contexts."""
    path = library.with_name(f"{library.name}.seconds.json")
    with suppress(OSError, ValueError):
        seconds += json.loads(path.read_text())
    path.write_text(json.dumps(seconds))
    return seconds


def of_part(
    rows: Sequence[Mapping[str, Any]], part: Part | Literal["given"], given: Collection[str]
) -> list[Mapping[str, Any]]:
    """Return the rows of a half of the questions, or of those whose golden chunks have a given context."""
    if part == "given":
        return [row for row in rows if row["question"] in given]
    return [row for row in rows if part in {"all", Question(row["question"]).part}]


def given_questions(dataset: Dataset, facts: Path | None) -> set[str]:
    """Return the questions whose golden chunks all have a context of their own in the facts."""
    of_chunk = read_facts(facts)[1] if facts else {}
    return {one.text for one in dataset.questions if one.chunks and set(one.chunks) <= of_chunk.keys()}


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the means of each stage, and the best that could be made of what the stages found.

    `ideal_reranking` puts every golden candidate first. `better_list` takes the better of dense and keyword search for
    each question.
    """
    values = stage_values(rows)
    found = [sum(rank <= POOL for rank in row["ranks"]["fused"]) for row in rows]
    ideal = [
        {depth: recall(range(1, count + 1), row["golden"], depth) for depth in RECALL_DEPTHS}
        for row, count in zip(rows, found, strict=True)
    ]
    lists = {metric: zip(values["dense"][metric], values["keyword"][metric], strict=True) for metric in METRICS}
    return {
        "questions": len(rows),
        "stages": {stage: {metric: fmean(numbers[metric]) for metric in METRICS} for stage, numbers in values.items()},
        "ideal_reranking": {f"recall@{depth}": 100 * fmean(one[depth] for one in ideal) for depth in RECALL_DEPTHS},
        "better_list": {metric: fmean(max(pair) for pair in pairs) for metric, pairs in lists.items()},
    }


def comparisons(ways: Mapping[str, Mapping[str, Any]], given: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield paired tests of each way against every other, by halves and stages: the second minus the first."""
    for (before, one), (after, other) in itertools.combinations(ways.items(), 2):
        for part in PARTS:
            rows = [{"per_question": of_part(way["per_question"], part, given)} for way in (other, one)]
            if not rows[0]["per_question"]:
                continue
            stages = compare_reports(*rows)["stages"]
            kept = {
                stage: {metric: {name: tests[metric][name] for name in ("difference", "p")} for metric in METRICS}
                for stage, tests in stages.items()
            }
            yield {"way": after, "against": before, "part": part, "stages": kept}


def content_of(dataset: Dataset) -> str:
    """Return a hash of the dataset's documents and questions."""
    files = [path for name in ("documents", "questions") if (path := dataset.folder / f"{name}.jsonl").exists()]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def load_ways(path: Path, content: str) -> dict[str, Any]:
    """Return the ways that earlier runs measured on the same dataset."""
    if not path.exists():
        return {}
    report = json.loads(path.read_text(encoding="utf-8"))
    return dict(report["ways"]) if report.get("content") == content else {}


def table(ways: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a table: every stage of every way, on the half to report."""
    yield f"{'way':24} {'stage':16} " + " ".join(f"{metric:>10}" for metric in METRICS) + "  writing"
    for name, way in ways.items():
        half = way["halves"].get("report") or way["halves"]["all"]
        for stage, values in half["stages"].items():
            numbers = " ".join(f"{values[metric]:10.3f}" for metric in METRICS)
            yield f"{name:24} {stage:16} {numbers} {way['seconds_writing']:7.0f} s"
        for title, found in (("reranking", half["ideal_reranking"]), ("fusion", half["better_list"])):
            numbers = " ".join(f"{found[metric]:10.3f}" if metric in found else " " * 10 for metric in METRICS)
            yield f"{name:24} {f'ideal {title}':16} {numbers}".rstrip()


def main() -> None:
    """Measure the requested ways and compare them with all measured ways."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--ways", nargs="+", choices=[*MODES, *GIVEN], required=True)
    parser.add_argument("--model", default="", help="the context model of the ways that need one")
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--profile", default="starter")
    parser.add_argument(
        "--libraries", type=Path, help="folder of the libraries (default: in .local-rag of the dataset)"
    )
    parser.add_argument("--facts", type=Path, help="default: facts.jsonl of the dataset")
    parser.add_argument(
        "--candidates", type=int, default=60, help="passages to rerank, the same on every machine; 0: none"
    )
    arguments = parser.parse_args()
    try:
        dataset = load_dataset(arguments.dataset)
        libraries = arguments.libraries or arguments.dataset / ".local-rag" / "contexts"
        content = content_of(dataset)
        ways = load_ways(arguments.json, content)
        for way in arguments.ways:
            name = way if way in WITHOUT_MODEL else f"{way} {Path(arguments.model).name.removesuffix('.gguf')}".strip()
            ways[name] = measure(
                dataset,
                way,
                libraries / ("without-model" if way in WITHOUT_MODEL else name.replace(" ", "-")),
                rerank=arguments.candidates > 0,
                facts=arguments.facts,
                parts=Parts(),
                profile=arguments.profile,
                context_model=arguments.model or None,
                rerank_candidates=arguments.candidates or None,
            )
            report = {
                "dataset": dataset.folder.resolve().name,
                "content": content,
                "profile": arguments.profile,
                "candidates": arguments.candidates,
                "ways": ways,
                "comparisons": list(comparisons(ways, given_questions(dataset, arguments.facts))),
            }
            arguments.json.write_text(json.dumps(report, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    except LocalRagError as error:
        parser.exit(1, f"{error}\n")
    print("\n".join(table(ways)))
