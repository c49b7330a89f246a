"""Compare readers, each a folder or file, on evaluation sets that none was trained on.

    python -m scripts.training.compare_readers candidates DATASETS CACHE
    python -m scripts.training.compare_readers score CACHE MODEL SCORES.json     MODEL: model.onnx or model.pt
    python -m scripts.training.compare_readers report CACHE OLD.json NEW.json... --json docs/measurements/reader.json
    python -m scripts.training.compare_readers uses CACHE --old FOLDER --new FOLDER --json docs/measurements/uses.json

`uses` compares what the program makes of two readers, and of words alone: which units of the first passages it shows,
and which sentence of the first golden passage it marks.

`candidates` searches each dataset once as the program does and keeps the first fused candidates of each question, so
that every model ranks the same ones. A question is of the parts `choose` and `report`; the locked part is never asked.
"""

import json
import os
import random
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import numpy as np

from local_rag.answering.selection import select_sources
from local_rag.evaluation.ranking_metrics import confidence_interval, ndcg, paired_test
from local_rag.llama.models_in_use import load_reader
from local_rag.model_records import InstalledModel
from local_rag.models.own_models import ONNX_FILE
from local_rag.models.reader import Reader, reranked_text
from local_rag.passage_records import Passage
from local_rag.retrieval.highlights import closest_sentence, readable
from local_rag.retrieval.searcher import best_sentence
from local_rag.text.tokens import keyword_tokens
from scripts.training.mine_reader_examples import sentences, spans_of
from scripts.training.reader_model import half_precision
from scripts.training.sets import normalised
from scripts.training.train_reader import area, sentence_scores

CANDIDATES = 16
QUESTIONS = 100
PASSAGES = 8  # of which the program shows units
LARGEST = 700  # documents of a set; of a larger one, golden documents and others by chance
LENGTH = 256
BLEND_K, FUSED_WEIGHT = 10, 2.0  # as the program fuses both orders

Row = dict[str, Any]


def candidates_of(folder: Path, work: Path) -> list[Row]:
    """Index a dataset and return questions with their candidates, which of them are golden, and what answers."""
    from dataclasses import replace

    from local_rag import Library
    from local_rag.evaluation.dataset import load_dataset
    from local_rag.evaluation.evaluate import Ranker, index_dataset
    from local_rag.models.reader import reranked_text

    dataset = load_dataset(folder)
    chance = random.Random(0)
    questions = [one for one in dataset.questions if one.has_golden and one.part != "locked"]
    questions = sorted(chance.sample(questions, min(QUESTIONS, len(questions))), key=lambda one: one.text)
    if len(dataset.documents) > LARGEST and folder.name == "scifact":
        golden = {name for one in questions for name in one.documents}
        others = [one for one in dataset.documents if one.id not in golden]
        used = golden | {one.id for one in chance.sample(others, LARGEST - len(golden))}
        dataset = replace(dataset, documents=tuple(one for one in dataset.documents if one.id in used))
    rows = []
    with Library(work / folder.name, profile="tiny", context="headings") as library:
        chunks = index_dataset(dataset, library, lambda _progress: None)
        ranker = Ranker(dataset, chunks)
        for question in questions:
            found: Sequence[Passage] = library.retrieval.trace(question.text, top=CANDIDATES, rerank=False).passages
            ids = [one.chunk_id for one in found if one.chunk_id in chunks]
            count, ranks = ranker.ranks(question, {"fused": ids})
            keys = [chunks[one][0] if question.documents else str(one) for one in ids]
            distinct = list(dict.fromkeys(keys))
            golden_keys = {distinct[rank - 1] for rank in ranks["fused"]}
            texts = [one.text for one in found if one.chunk_id in chunks]
            starts = [(chunks[one][0], chunks[one][1].start) for one in ids]
            spans = [
                [
                    [max(0, span.start - start), min(len(text), span.end - start)]
                    for span in question.spans
                    if span.document == document and span.start < start + len(text) and span.end > start
                ]
                if question.spans
                else spans_of(text, [one for group in question.must_include for one in group])
                for text, (document, start) in zip(texts, starts, strict=True)
            ]
            rows.append(
                {
                    "set": folder.name,
                    "question": question.text,
                    "golden": count,
                    "keys": keys,
                    "is_golden": [key in golden_keys for key in keys],
                    "prefixes": [reranked_text(one).removesuffix(one.text) for one in found if one.chunk_id in chunks],
                    "texts": texts,
                    "spans": spans,
                }
            )
    return rows


class Model:
    """Run an ONNX file of one or three outputs on pairs."""

    def __init__(self, path: Path) -> None:
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.tokenizer = Tokenizer.from_file(str(path.parent / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(LENGTH)

    def run(self, question: str, text: str) -> tuple[Any, list[np.ndarray]]:
        """Return the encoding of a pair and every output for it."""
        encoding = self.tokenizer.encode(question, text)
        known = {"input_ids": encoding.ids, "attention_mask": encoding.attention_mask}
        known["token_type_ids"] = encoding.type_ids
        inputs = {name: np.array([values], dtype=np.int64) for name, values in known.items()}
        return encoding, [np.asarray(output)[0] for output in self._session.run(None, inputs)]


class TorchModel:
    """Run a trained reader on pairs before it is exported."""

    def __init__(self, path: Path) -> None:
        import torch

        from scripts.training.reader_model import load_tokenizer, load_trained

        torch.set_num_threads(1)
        self._model = load_trained(path).eval()
        self.tokenizer = load_tokenizer()
        self.tokenizer.enable_truncation(LENGTH)

    def run(self, question: str, text: str) -> tuple[Any, list[np.ndarray]]:
        """Return the encoding of a pair and every output for it."""
        import torch

        encoding = self.tokenizer.encode(question, text)
        inputs = (torch.tensor([values]) for values in (encoding.ids, encoding.attention_mask, encoding.type_ids))
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=half_precision()):
            return encoding, [output[0].float().numpy() for output in self._model(*inputs)]


def scores_of(model: Model | TorchModel, row: Row) -> Row:
    """Return a model's scores of all candidates of a question, and of the sentences of its first golden passage."""
    relevance, answers, of_sentences = [], [], []
    asked = next((i for i, golden in enumerate(row["is_golden"]) if golden and row["spans"][i]), None)
    for index, (prefix, text) in enumerate(zip(row["prefixes"], row["texts"], strict=True)):
        encoding, outputs = model.run(row["question"], prefix + text)
        relevance.append(float(outputs[0].item()))
        answers.append(float(outputs[1].item()) if len(outputs) > 1 else relevance[-1])
        if index == asked and len(outputs) > 1:
            inside = [
                ((start - len(prefix), end - len(prefix)), float(token))
                for (start, end), part, token in zip(encoding.offsets, encoding.sequence_ids, outputs[2], strict=True)
                if part == 1
            ]
            of_sentences = sentence_scores(text, [one for one, _ in inside], [token for _, token in inside])
        elif index == asked:  # as the program scores units: each by itself, below its title
            parts = [prefix + text[start:end] for start, end in sentences(text)]
            of_sentences = [float(model.run(row["question"], part)[1][0].item()) for part in parts]
    return {"relevance": relevance, "answers": answers, "sentences": of_sentences, "asked": asked}


def order_of(scores: Sequence[float], fused: bool) -> list[int]:
    """Return the positions in the order of the scores, or of both orders as the program fuses them."""
    order = sorted(range(len(scores)), key=lambda position: -scores[position])
    if not fused:
        return order
    blend = {at: 1 / (BLEND_K + rank) + FUSED_WEIGHT / (BLEND_K + at + 1) for rank, at in enumerate(order, start=1)}
    return sorted(blend, key=lambda at: (-blend[at], at))


def gain(row: Row, order: Sequence[int]) -> float:
    """Return nDCG@10, in points, of a question in an order of its candidates."""
    keys = list(dict.fromkeys(row["keys"][position] for position in order))
    golden = {key for key, is_golden in zip(row["keys"], row["is_golden"], strict=True) if is_golden}
    return 100 * ndcg([rank for rank, key in enumerate(keys, start=1) if key in golden], row["golden"], 10)


def sentence_first(row: Row, scores: Row) -> float | None:
    """Return 100 or 0: whether the best sentence of the golden passage answers; None if all do or none does."""
    if scores["asked"] is None:
        return None
    places, spans = sentences(row["texts"][scores["asked"]]), row["spans"][scores["asked"]]
    right = [any(start < b and a < end for a, b in spans) for start, end in places]
    if all(right) or not any(right):
        return None
    return 100.0 * right[max(range(len(places)), key=scores["sentences"].__getitem__)]


def without(row: Row, scores: Row, seen: set[str]) -> tuple[Row, Row]:
    """Return a question and its scores without the passages that were trained on."""
    kept = [i for i, text in enumerate(row["texts"]) if row["is_golden"][i] or normalised(text) not in seen]
    pick = {"keys", "is_golden", "prefixes", "texts", "spans"}
    less = {name: [value[i] for i in kept] if name in pick else value for name, value in row.items()}
    fewer = {name: [scores[name][i] for i in kept] for name in ("relevance", "answers")}
    asked = kept.index(scores["asked"]) if scores["asked"] is not None else None
    return less, scores | fewer | {"asked": asked}


def measured(rows: Sequence[Row], scores: Sequence[Row]) -> dict[str, list[float]]:
    """Return each metric's value for every question, and the two samples that an AUC is of."""
    pairs = list(zip(rows, scores, strict=True))
    firsts = [sentence_first(row, one) for row, one in pairs]
    held = [(row, one) for row, one in pairs if any(row["is_golden"]) and not all(row["is_golden"])]
    return {
        "fused": [gain(row, range(len(row["keys"]))) for row in rows],
        "alone": [gain(row, order_of(one["relevance"], False)) for row, one in pairs],
        "with fused": [gain(row, order_of(one["relevance"], True)) for row, one in pairs],
        "sentence first": [value for value in firsts if value is not None],
        "answerable": [max(one["answers"]) for row, one in held],
        "held out": [
            max(score for score, golden in zip(one["answers"], row["is_golden"], strict=True) if not golden)
            for row, one in held
        ],
    }


def summary(values: dict[str, list[float]], old: dict[str, list[float]] | None) -> dict[str, Any]:
    """Return means with intervals, and differences from the old model with p."""
    found: dict[str, Any] = {"auc": round(area(values["answerable"], values["held out"]), 3)}
    for name in ("fused", "alone", "with fused", "sentence first"):
        if not values[name]:
            continue
        low, high = confidence_interval(values[name])
        found[name] = {"mean": round(fmean(values[name]), 1), "from": round(low, 1), "to": round(high, 1)}
        found[name]["questions"] = len(values[name])
        if old and name != "fused":
            found[name]["difference"] = round(fmean(values[name]) - fmean(old[name]), 1)
            found[name]["p"] = round(paired_test(values[name], old[name]), 4)
    return found


def passages_of(row: Row, count: int) -> list[Passage]:
    """Return the first candidates of a question as passages, each with the prefix that is read with it."""
    empty: dict[str, Any] = {"terms": "", "sentence": "", "headings": (), "page": None, "line": None, "end_line": None}
    given = list(zip(row["prefixes"], row["texts"], strict=True))[:count]
    return [
        Passage(chunk_id=at, path=f"{at}.txt", title=prefix.rstrip("\n"), text=text, score=0.0, **empty)
        for at, (prefix, text) in enumerate(given)
    ]


def uses_of(row: Row, reader: Reader | None) -> dict[str, float]:
    """Return what a reader makes of a question whose right units are known."""
    passages, question = passages_of(row, PASSAGES), row["question"]

    def is_right(number: int, start: int, end: int) -> bool:
        return any(start < b and a < end for a, b in row["spans"][number])

    sources = select_sources(question, [passages], count_tokens=lambda text: len(text) // 4, reader=reader)
    shown = [(source, unit) for source in sources for unit in source.units]
    right = [(source, unit) for source, unit in shown if is_right(source.passage.chunk_id, unit.start, unit.end)]
    golden = next(at for at, spans in enumerate(row["spans"]) if spans)
    passage = passages[golden]
    wanted = frozenset(keyword_tokens(question))
    reading = reader.score(question, [reranked_text(passage)])[0] if reader else None
    start, end = best_sentence(question, passage, reading) if reading else (0, 0)
    if start == end:
        start, end = closest_sentence(readable(passage), wanted)
    return {
        "first unit is right": 100.0 * any(unit.rank == 0 for _, unit in right),
        "1 / rank": 100.0 / (1 + min((unit.rank for _, unit in right), default=10**6)),
        "shown": 100.0 * bool(right),
        "marked sentence is right": 100.0 * is_right(golden, start, end),
        "tokens shown": float(sum(len(source.text) // 4 for source in sources)),
    }


@click.group()
def main() -> None:
    """Compare readers."""


def read_rows(path: Path) -> list[Row]:
    """Read one record a line."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@main.command()
@click.argument("datasets", type=click.Path(exists=True, path_type=Path), nargs=-1)
@click.argument("cache", type=click.Path(path_type=Path))
def candidates(datasets: tuple[Path, ...], cache: Path) -> None:
    with cache.open("w", encoding="utf-8") as file:
        for folder in datasets:
            rows = candidates_of(folder, cache.parent / "libraries")
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            click.echo(f"{folder.name}: {len(rows)} questions")


@main.command()
@click.argument("cache", type=click.Path(exists=True, path_type=Path))
@click.argument("model_path", type=click.Path(exists=True, path_type=Path))
@click.argument("output", type=click.Path(path_type=Path))
def score(cache: Path, model_path: Path, output: Path) -> None:
    path = model_path / ONNX_FILE if model_path.is_dir() else model_path
    model = TorchModel(path) if path.suffix == ".pt" else Model(path)
    found = []
    for number, row in enumerate(read_rows(cache)):
        found.append(scores_of(model, row))
        if number % 40 == 0:
            click.echo(f"{number} questions")
    output.write_text(json.dumps(found))


@main.command()
@click.argument("cache", type=click.Path(exists=True, path_type=Path))
@click.argument("old", type=click.Path(exists=True, path_type=Path))
@click.argument("new", type=click.Path(exists=True, path_type=Path), nargs=-1)
@click.option("--examples", type=click.Path(exists=True, path_type=Path), help="What was trained on.")
@click.option("--json", "report_path", type=click.Path(path_type=Path))
def report(cache: Path, old: Path, new: tuple[Path, ...], examples: Path | None, report_path: Path | None) -> None:
    rows = read_rows(cache)
    trained = read_rows(examples) if examples else []
    seen = {normalised(one["text"]) for example in trained for one in example["passages"]}
    found: dict[str, Any] = {}
    base: dict[str, dict[str, list[float]]] = {}
    for path in (old, *new):
        scores = json.loads(path.read_text())
        for name in [*dict.fromkeys(row["set"] for row in rows), *(["nq, unseen passages"] if seen else [])]:
            of_set = [(row, one) for row, one in zip(rows, scores, strict=True) if row["set"] == name.split(",")[0]]
            if "," in name:
                of_set = [without(row, one, seen) for row, one in of_set]
            values = measured([row for row, _ in of_set], [one for _, one in of_set])
            found.setdefault(path.stem, {})[name] = summary(values, base.get(name))
            if path == old:
                base[name] = values
    text = json.dumps(found, indent=1)
    click.echo(text)
    if report_path:
        report_path.write_text(text + "\n")


def reader_of(folder: Path) -> Reader:
    """Load the reader of a folder."""
    return load_reader(InstalledModel(name=folder.name, role="rerank", path=folder, identity="", context_length=LENGTH))


@main.command()
@click.argument("cache", type=click.Path(exists=True, path_type=Path), nargs=-1)
@click.option("--old", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True)
@click.option("--new", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True)
@click.option("--json", "report_path", type=click.Path(path_type=Path))
def uses(cache: tuple[Path, ...], old: Path, new: Path, report_path: Path | None) -> None:
    rows = [row for path in cache for row in read_rows(path) if any(row["spans"][:PASSAGES])]
    readers: dict[str, Reader | None] = {"words": None, "reader before": reader_of(old), "reader": reader_of(new)}
    found: dict[str, Any] = {}
    for name in dict.fromkeys(row["set"] for row in rows):
        values = {way: [uses_of(row, reader) for row in rows if row["set"] == name] for way, reader in readers.items()}
        before = values["reader before"]
        found[name] = {
            way: {
                figure: {
                    "mean": round(fmean(one[figure] for one in of_way), 1),
                    "p": round(paired_test([one[figure] for one in of_way], [one[figure] for one in before]), 4),
                }
                for figure in of_way[0]
            }
            for way, of_way in values.items()
        } | {"questions": len(before)}
    text = json.dumps(found, indent=1)
    click.echo(text)
    if report_path:
        report_path.write_text(text + "\n")


if __name__ == "__main__":
    main()
