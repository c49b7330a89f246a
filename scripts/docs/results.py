"""docs/results.md, the sentence about results in the README, and the table in docs/answers.md.

The questions in docs/measurements are hashes, because the question sets belong to others.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from local_rag.evaluation.evaluate import load_report, stage_values
from local_rag.evaluation.ranking_metrics import by_question, paired_test
from scripts.docs.markdown import MEASUREMENTS, measured, prose, table
from scripts.docs.own_embedder import own_embedder

Measurement = dict[str, Any]
Sections = Mapping[str, Callable[[list[Any]], Iterator[str]]]  # the measurements of each section

INTRODUCTION = """\
# Results

Written by `scripts/write_docs.py` from `docs/measurements/`, which has more figures; do not edit this page.

## How it is measured

`local-rag eval DATASET` indexes a dataset as `local-rag index` does, asks its questions as `local-rag search` does and
records the rank of each golden passage after each stage. *Recall@k*, in percent, is the mean share of a question's
golden passages among the first k. nDCG@10 is that of trec_eval; the tests compare our implementation with it.
Intervals are 95 % bootstrap intervals over the questions, and p is of a two-sided paired permutation test.

A golden span of text belongs to every chunk that contains at least half of it or lies at least half within it, or else
to the chunk with the largest part of it. If whole documents are golden, each has the rank of its best chunk.
A hash of the question splits each dataset in a half to choose settings on, a quarter to report and a locked quarter,
which is for one measurement at the end.

## The data

The three sets are public. Download them and run `python -m scripts.benchmarks prepare_eval SOURCE OUTPUT`. For your own
documents, `local-rag eval make DOCUMENTS` drafts a dataset for you to review.

- `SOURCE/codebases/`: `codebase_chunks.json` and `evaluation_set.jsonl` from `skills/contextual-embeddings/data/` of
  github.com/anthropics/anthropic-cookbook at commit 4b36a1e (MIT). 737 ready-made chunks of source code, 248 questions.
- `SOURCE/scifact/`: SciFact as BEIR publishes it (`corpus.jsonl`, `queries.jsonl`, `qrels/test.tsv`; claims CC BY 4.0,
  abstracts ODC-By 1.0). 5,183 abstracts, 300 test claims.
- `SOURCE/chunking-evaluation/`: `questions_df.csv` and the five Markdown files of the folder
  `chunking_evaluation/evaluation_framework/general_evaluation_data/` of github.com/brandonstarxel/chunking_evaluation
  at commit d451fc4 (MIT). 5 long documents, 472 questions with golden spans.

## Finding passages

A row is one run of `local-rag eval`. The last column is the difference in recall@10: for `fused` against the run with
`headings`, for `reranked` against `fused` of the same run. `reranked` is by the reranker before the reader that is
[compared with it](#a-reader-of-our-own) below."""

READERS = """\
One pass over question and passage says how relevant the passage is, which of its words belong to the answer, and
whether it answers at all. These figures are of the first reader, a reranker with two more outputs. The shipped reader
is a later one ([card](../models/minilm-l6-reader/MODEL_CARD.md)). Three shorter attempts did not gain enough, because
their marks were nearly the same for all words of a passage. The fourth read 3 million tokens, learned the marks from
all layers with a loss over the sentences of a passage, and had the reranker as teacher. No question of these sets and
no golden passage was in the training data. Most other passages of nq belong to its training half, and some of scifact
to training claims. The rows of unseen passages leave out those of nq.

Both rerank the same first 16 passages of up to 100 questions, in scifact among 700 abstracts, both in int8. The
target was +3 in nDCG@10 on two sets, +8 in *right sentence first*, and an AUC of 0.90 on nq. The right sentence is
looked for in the first golden passage; the reranker scores each sentence by itself below its title. The AUC compares
the highest "answers" score with and without the golden passages; for the reranker, it is that of the relevance.
Differences and p are against the reranker."""

READER_USES = """\
This table shows how local-rag uses the reader in the first eight passages of search alone: the units that it shows to
the model, and the sentence that it marks in the first golden passage. `words` has no reader. `cross-encoder` is the
earlier reranker, whose score of a passage counts for all of its sentences. p is against `cross-encoder`."""

USES = {
    "first unit is right": "first unit is right",
    "1 / rank": "mean 1 / rank",
    "shown": "shown",
    "marked sentence is right": "marked sentence is right",
    "tokens shown": "tokens shown",
}
SHOWN = ("recall@5", "recall@10", "recall@20", "ndcg@10")
OMITTED = {"auto-10", "auto-50"}  # the JSON has these contexts, for a tenth and half of the chunks
SMALL = 0.01  # a p below it is not given
TITLES = {"ndcg@10": "nDCG@10"}
CONTEXTS = ("none", "headings", "terms", "auto", "llm")
GROWTH = {
    "chunks": "chunks",
    "index_processor_seconds": "index s",
    "index_peak_mb": "peak MB",
    "unchanged_processor_seconds": "unchanged s",
    "one_change_processor_seconds": "one change s",
    "search_processor_ms": "search ms",
    "half_processor_ratio": "filter",
    "resident_mb": "memory MB",
    "library_mb": "disk MB",
}


def results_page(measurements: Path = MEASUREMENTS) -> str:
    """Return docs/results.md, with a section for each kind of measurement that the folder has."""
    parts = [INTRODUCTION, *_datasets(measurements), *_contexts(measurements), *_choices(measurements)]
    sections: Sections = {
        "reader-comparison.json": _readers,
        "reader-uses.json": _reader_uses,
        "own-embedder.json": own_embedder,
    }
    parts += _sections(measurements, sections)
    return "\n\n".join(parts) + "\n"


def size_sections(measurements: Path = MEASUREMENTS) -> list[str]:
    """Return what docs/speed.md says of libraries of different sizes."""
    sections: Sections = {
        "search-latency.json": _search_time,
        "rerank-speed.json": _reranking_time,
        "grow-*.json": _growth,
        "near.json": _many_vectors,
        "first-index.json": _first_index,
        "search-while-indexing.json": _searching_while_indexing,
    }
    return _sections(measurements, sections)


def _sections(measurements: Path, sections: Sections) -> list[str]:
    parts: list[str] = []
    for name, section in sections.items():
        if reports := [json.loads(path.read_text(encoding="utf-8")) for path in measurements.glob(name)]:
            parts += section(reports)
    return parts


def _number(metric: str, value: float, sign: str = "") -> str:
    return f"{value:{sign}.1f}" if metric.startswith("recall") else f"{value:{sign}.3f}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 2):,}"


def _metrics(values: Mapping[str, float]) -> list[str]:
    return [_number(metric, values[metric]) for metric in SHOWN]


def _titles() -> list[str]:
    return [TITLES.get(metric, metric) for metric in SHOWN]


def _datasets(measurements: Path) -> Iterator[str]:
    """Yield a table of all runs on datasets: their fused and reranked stages."""
    reports: list[Measurement] = []
    for path in sorted(measurements.glob("eval-*.json")):
        report = load_report(path)
        report["note"] = path.stem.removeprefix(f"eval-{report['dataset']}-{report['context']}").replace("-", " ")
        reports.append(report)
    reports.sort(key=lambda one: (one["dataset"], one["part"], CONTEXTS.index(one["context"]), one["note"]))
    header = ["set", "profile, context", "questions", "stage", *_titles(), "95 % of recall@10", "difference"]
    yield table(header, [row for report in reports for row in _run_rows(report, reports)])


def _run_rows(run: Measurement, runs: Sequence[Measurement]) -> Iterator[list[str]]:
    title = ", ".join(part.strip() for part in (run["profile"], run["context"], run["note"]) if part)
    same = [one for one in runs if (one["dataset"], one["part"]) == (run["dataset"], run["part"])]
    plain = next((one for one in same if one["context"] == "headings"), run)
    for stage, other, before in (("fused", plain, "fused"), ("reranked", run, "fused")):
        if stage not in run["stages"]:
            continue
        low, high = run["intervals"][stage]["recall@10"]
        difference = "-" if (other, before) == (run, stage) else _compare(run, stage, other, before)
        cells = [*_metrics(run["stages"][stage]), f"{low:.1f} to {high:.1f}", difference]
        yield [run["dataset"], title, str(run["questions"]), stage, *cells]


def _compare(run: Measurement, stage: str, other: Measurement, before: str) -> str:
    """Return the difference in recall@10 of two stages over the questions of both runs, and its p."""
    rows, others = (by_question(one["per_question"]) for one in (run, other))
    asked = [question for question in rows if question in others]
    values = stage_values([rows[question] for question in asked])[stage]["recall@10"]
    other_values = stage_values([others[question] for question in asked])[before]["recall@10"]
    return _difference(fmean(values) - fmean(other_values), paired_test(values, other_values))


def _difference(value: float, p: float) -> str:
    return f"{value:+.1f} ({f'p = {p:.2f}' if p >= SMALL else f'p < {SMALL}'})"


def _contexts(measurements: Path) -> Iterator[str]:
    """Yield what contexts are worth, as the benchmark `contexts` found for each dataset."""
    reports = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(measurements.glob("worth-*.json"))]
    if not reports:
        return
    yield "## What contexts are worth"
    yield prose(
        "`python -m scripts.benchmarks contexts` compares ways to write contexts, with the profile `starter`, on the "
        "half of the questions kept for reporting. Neighbours, surroundings and headings are always used. `terms` is "
        "what code says: what sets a document apart, for chunks that could be mistaken for those of another document; "
        "`auto-25` says it of a quarter of the chunks. "
        "`lead` puts the beginning of each document before its chunks. `perfect` is what a perfect writer would say: "
        "from the facts that the look-alike set was generated from, or written by hand by someone who had not seen the "
        "questions. Figures are of the last stage."
    )
    header = ["set", "contexts", "chunks with one", "stage", *_titles()[:3], "recall@5 against headings"]
    yield table(header, [row for report in reports for row in _context_rows(report)])


def _context_rows(report: Measurement) -> Iterator[list[str]]:
    ways = report["ways"]
    halves = next(iter(ways.values()))["halves"]
    part = next(part for part in ("given", "report", "all") if part in halves)
    name = report["dataset"] + (", by hand" if part == "given" else "")
    for way, found in ways.items():
        if way in OMITTED:
            continue
        values, stage = found["halves"][part]["stages"], list(found["halves"][part]["stages"])[-1]
        test: Measurement | None = next(
            (
                one["stages"][stage]["recall@5"]
                for one in report["comparisons"]
                if one["part"] == part and {one["way"], one["against"]} == {way, "headings"}
            ),
            None,
        )
        gain = "-"
        if test and way != "headings":
            base = ways["headings"]["halves"][part]["stages"][stage]["recall@5"]
            gain = _difference(values[stage]["recall@5"] - base, test["p"])
        cells = [_number(metric, values[stage][metric]) for metric in SHOWN[:3]]
        yield [name, way, f"{found['generated_contexts']:,} of {found['chunks']:,}", stage, *cells, gain]


def _choices(measurements: Path) -> Iterator[str]:
    """Yield what was compared when settings were chosen: the reference and the best of the others."""
    rows = []
    for name, title in (
        ("tuning-keyword.json", "retrieval without contexts"),
        ("tuning-contexts.json", "retrieval with contexts"),
        ("tuning-reranker.json", "weight of the reranker"),
    ):
        if (measurements / name).exists():
            for dataset, variants in measured(name, measurements)["sets"].items():
                found = {row["variant"]: row["recall@10"] for row in variants}
                rows.append([f"[{title}](measurements/{name})", dataset, *_best(found)])
    name = "tuning-prompts.json"
    if (measurements / name).exists():
        ways = measured(name, measurements)
        found = {way: entry["recall"]["choose"]["fused"]["recall@10"] for way, entry in ways.items()}
        rows.append([f"[instruction for contexts](measurements/{name})", "codebases", *_best(found)])
    if rows:
        yield "## How settings were chosen"
        yield prose(
            "Each row compares variants on the half of the questions kept for choosing, by recall@10 before reranking "
            "(the reranker: after it). The reference is what is shipped, or fusion without reranking."
        )
        yield table(["choice", "set", "variants", "reference", "recall@10", "best other variant", "recall@10"], rows)


def _best(found: Mapping[str, float]) -> list[str]:
    (reference, value), *others = found.items()
    best = max(others, key=lambda one: one[1])
    return [str(len(found)), reference, f"{value:.1f}", best[0], f"{best[1]:.1f}"]


def _search_time(reports: list[Measurement]) -> Iterator[str]:
    (report,) = reports
    yield "## Search time"
    yield prose(
        f"Synthetic texts and vectors with {report['dimension']} dimensions, {report['cores']} cores, warm: median "
        "milliseconds, with the 95th percentile in brackets, without embedding the question and reranking."
    )
    rows = []
    for row in report["sizes"]:
        median, slow = row["milliseconds"], row["milliseconds_p95"]
        stages = (
            f"{median[stage]:.2f} ({slow[stage]:.2f})" if stage in median else "-" for stage in ("dense", "keyword")
        )
        rows.append([f"{row['chunks']:,}", *stages, f"{row['memory_mb']:.0f}"])
    yield table(["chunks", "dense", "keyword", "memory MB"], rows)


def _reranking_time(reports: list[Measurement]) -> Iterator[str]:
    (report,) = reports
    yield prose(
        f"Median seconds to rerank {report['passages']} passages of about {report['tokens_each']} tokens on "
        f"{report['cores']} cores, and how many fit into the default time for a question:"
    )
    yield "\n".join(
        prose(f"{row['model']}: {row['seconds']:.2f}; {row['reranked_in_default_time']} fit.", "- ")
        for row in report["rerankers"]
    )


def _readers(reports: list[Measurement]) -> Iterator[str]:
    (report,) = reports
    yield "## A reader of our own"
    yield READERS

    def cell(found: Measurement, name: str) -> str:
        if name not in found:
            return "-"
        value = found[name]
        return f"{value['mean']:.1f} {_difference(value['difference'], value['p'])}" if "p" in value else value["mean"]

    rows = [
        [
            name,
            model,
            *(str(cell(found, column)) for column in ("alone", "with fused", "sentence first")),
            f"{found['auc']:.2f}",
        ]
        for name in next(iter(report.values()))
        for model, sets in report.items()
        for found in [sets[name]]
    ]
    yield table(["set", "model", "nDCG@10 alone", "fused with search", "right sentence first", "AUC of answers"], rows)


def _reader_uses(reports: list[Measurement]) -> Iterator[str]:
    (report,) = reports
    yield READER_USES

    def cell(value: Measurement) -> str:
        p = f" (p {'< 0.01' if value['p'] < SMALL else '= ' + format(value['p'], '.2f')})"
        return f"{value['mean']:.1f}{p if value['p'] < 1 else ''}"

    rows = [
        [f"{name}, {found['questions']}", way, *(cell(found[way][use]) for use in USES)]
        for name, found in report.items()
        for way in found
        if way != "questions"
    ]
    yield table(["set, questions", "by", *USES.values()], rows)


def _growth(reports: list[Measurement]) -> Iterator[str]:
    yield "## As a library grows"
    yield prose(
        "`python -m scripts.benchmarks grow`: varied copies of the pages in `corpus/`, an embedder that takes no time, "
        "contexts by code and no sentences. Times are those of the processor, of all threads and processes. *Filter* "
        "says how many times as long a search takes with a filter that half of the folders pass. The largest library "
        "was made on a machine about twice as fast."
    )
    reports.sort(key=lambda one: int(one["chunks"]))
    by_clock = {name: name.replace("_processor", "") for name in GROWTH}
    rows = [[_figure(one.get(name, one.get(by_clock[name]))) for name in GROWTH] for one in reports]
    yield table(list(GROWTH.values()), rows)
    yield "![Each figure against the number of chunks](measurements/grow.png)"


def _many_vectors(reports: list[list[Measurement]]) -> Iterator[str]:
    (rows,) = reports
    yield "### Many vectors"
    yield prose(
        "Larger segments use 4-bit codes and compare 8 times as many candidates exactly. For one question against one "
        "segment, 150 results and one thread ([other indexes](measurements/near.json)):"
    )
    exact, codes = (
        [row for row in rows if row["index"] == index]
        for index in ("exact", "pairs in 4 bits, 8 times as many compared")
    )
    yield "\n".join(
        prose(
            f"{whole['rows']:,} vectors: exact {whole['ms']:.1f} ms; codes {row['ms']:.1f} ms, recall "
            f"{100 * row['recall']:.2f} % (worst question {100 * row['lowest_recall']:.0f}), built in "
            f"{_figure(row['build_seconds'])} s.",
            "- ",
        )
        for whole, row in zip(exact, codes, strict=True)
    )


def _first_index(reports: list[Measurement]) -> Iterator[str]:
    (report,) = reports
    now = report["medians"]["this"]
    yield "### The first `index`"
    yield prose(
        f"During the first `index`, some documents can be searched after {_figure(now['published'])} s, and all after "
        f"{_figure(now['live'])} s; it ends after {_figure(now['ended'])} s. An `index` that changes nothing takes "
        f"{_figure(now['unchanged'])} s. The folder: {report['about']}"
    )


def _searching_while_indexing(reports: list[Measurement]) -> Iterator[str]:
    (report,) = reports
    rest, busy = report["rest"], report["while_indexing"]
    yield "### Searching while indexing"
    yield prose(
        f"{report['chunks']:,} chunks, without reranking, while `index` publishes one revision after another: "
        f"{busy['searches']} searches took {busy['median_ms']:.0f} ms (median; at rest {rest['median_ms']:.0f}), 95 % "
        f"at most {busy['p95_ms']:.0f} ({rest['p95_ms']:.0f}), the longest {busy['longest_ms']:.0f}. {busy['errors']} "
        f"failed, and {busy['mixed']} returned passages of more than one revision."
    )


def readme_results(measurements: Path = MEASUREMENTS) -> str:
    """Return the README's sentence about answers."""
    sets = {name: report["answers"] for name, report in measured("answers.json", measurements)["sets"].items()}
    public = next(counts for name, counts in sets.items() if "Natural Questions" in name)
    own = next(counts for name, counts in sets.items() if name.startswith("`corpus/`, the locked quarter"))
    return prose(
        f"On two cores without a GPU, `starter` answered {public['right']} of {public['answerable']} questions of "
        f"Natural Questions right and {public['wrong']} wrong, and {own['right']} of {own['answerable']} questions "
        f"about `corpus/` right and {own['wrong']} wrong; for the others it quoted the documents or refused. "
        "[Results](docs/results.md) and [answers](docs/answers.md#results) have all figures."
    )


def answers(measurements: Path = MEASUREMENTS) -> str:
    """Return the table of docs/answers.md: what came of the questions of each set.

    answers.json holds the `answers` of reports that `local-rag eval --answers --json` wrote.
    """
    report = measured("answers.json", measurements)
    rows = []
    for name, found in report["sets"].items():
        counts = found["answers"]
        rows.append(
            [
                f"{name}: {counts['answerable']} answerable, {counts['unanswerable']} not",
                *(_share(counts, one) for one in ("facts_shown", "right", "wrong")),
                f"{counts['quoted']}, {counts['quoted_right']} of them right",
                str(counts["refused_answerable"]),
                _share(counts, "stated_unanswerable"),
            ]
        )
    header = ["set", "facts shown", "right", "wrong", "quoted", "refused", "unanswerable and answered"]
    return f"{prose(report['note'])}\n\n{table(header, rows)}"


def _share(counts: Mapping[str, Any], name: str) -> str:
    """Return a count with the 95 % interval of its share."""
    low, high = counts["intervals"][name]
    return f"{counts[name]} ({low:.0f} to {high:.0f} %)"
