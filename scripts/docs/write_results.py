"""Write docs/results.md, and the README's table of results, from the JSON that runs left in docs/measurements.

    python -m scripts.docs.write_results [--measurements FOLDER] [--output FILE] [--readme FILE]

Where only one of the two files is named, only that one is written. The README's table stands between two comments.
For the page it reads eval-DATASET-CONTEXT[-NOTE].json (`local-rag eval DATASET --json`), tuning-*.json
(tune_retrieval.py, tune_contexts.py, tune_reranker.py), worth-*.json (contexts.py), search-latency.json
(bench_search.py), rerank-speed.json (bench_rerank.py) and what growth_results.py reads, whichever are there; for the
table eval-codebases-llm.json, answers.json (counts by hand of `eval --answers`), index-handbook.json, contexts-*.json
(bench_contextualize.py) and reliability-crash.json (crash_test.py). The questions in docs/measurements are hashes: the
sets are not ours.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

from local_rag.evaluation.evaluate import compare_reports, load_report, stage_values
from local_rag.evaluation.metrics import METRICS, paired_test
from scripts.docs.growth_results import write_growth
from scripts.docs.tables import table

INTRODUCTION = """\
# Results

Written by `scripts/docs/write_results.py` from the JSON in `docs/measurements/`; not edited by hand.

## How it is measured

`local-rag eval DATASET` indexes a dataset as `local-rag index` would, asks its questions as `local-rag search` would,
and looks at which ranks the golden passages stand in every stage. Recall@k, in percent, is the mean share of a
question's golden passages among the first k ("Pass@k" of Anthropic's cookbook). MRR@10 and nDCG@10 are as trec_eval has
them, with which the tests compare ours. The interval is a 95 % bootstrap over questions (percentile method), p comes
from a two-sided paired permutation test, both by SciPy.

A golden span of characters belongs to the chunks that hold at least half of it or lie at least half within it, else to
the chunk that holds most of it. Where whole documents are golden, each counts at the place of its best chunk.

Every set is split by a hash of the question's words: settings were chosen on the half `--questions choose` alone.

## The data

The three sets are public. Fetch them, lay them out as below and run `scripts/benchmarks/prepare_eval.py SOURCE OUTPUT`:

- `SOURCE/codebases/`: `codebase_chunks.json` and `evaluation_set.jsonl` from `skills/contextual-embeddings/data/` of
  github.com/anthropics/anthropic-cookbook at commit 4b36a1e (MIT). 737 ready-made chunks of source code, 248 questions.
- `SOURCE/scifact/`: SciFact as BEIR publishes it (`corpus.jsonl`, `queries.jsonl`, `qrels/test.tsv`; claims CC BY 4.0,
  abstracts ODC-By 1.0). 5,183 abstracts, 300 test claims.
- `SOURCE/chunking-evaluation/`: `questions_df.csv` and the five Markdown files of the folder
  `chunking_evaluation/evaluation_framework/general_evaluation_data/` of github.com/brandonstarxel/chunking_evaluation
  at commit d451fc4 (MIT). 5 long documents, 472 questions with golden spans.

`local-rag eval make DOCUMENTS` drafts a set from documents of your own, to be reviewed by hand.
"""

TITLES = {"mrr@10": "MRR@10", "ndcg@10": "nDCG@10"}


def number(metric: str, value: float, sign: str = "") -> str:
    """Format recall as percent, the others as a share."""
    return f"{value:{sign}.2f}" if metric.startswith("recall") else f"{value:{sign}.3f}"


def describe(report: dict[str, Any]) -> str:
    """Name a run."""
    return ", ".join(part for part in (report["profile"], report["context"], report["note"]) if part)


def write_dataset(name: str, reports: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the tables of one dataset and part: all stages of all runs, then the paired tests between runs."""
    first = reports[0]
    half = "" if first["part"] == "all" else f", half to {first['part']}"
    yield f"## {name}{half}"
    yield f"{first['questions']} questions, {first['chunks']:,} chunks of {first['documents']:,} documents."
    header = ["profile, context", "stage", *(TITLES.get(metric, metric) for metric in METRICS), "95 % of recall@10"]
    rows = []
    for report in reports:
        for stage, values in report["stages"].items():
            low, high = report["intervals"][stage]["recall@10"]
            cells = [number(metric, values[metric]) for metric in METRICS]
            rows.append([describe(report), stage, *cells, f"{low:.1f} to {high:.1f}"])
    yield table(header, rows)
    rows = []
    for index, report in enumerate(reports):
        for other in reports[:index]:
            differences = compare_reports(report, other)["stages"]
            for stage, metrics in differences.items():
                cells = [
                    f"{number(metric, metrics[metric]['difference'], '+')} (p = {metrics[metric]['p']:.3f})"
                    for metric in ("recall@5", "recall@10", "recall@20", "ndcg@10")
                ]
                rows.append([describe(report), describe(other), stage, *cells])
    if rows:
        yield "Paired differences, the first run minus the second:"
        yield table(["run", "against", "stage", "recall@5", "recall@10", "recall@20", "nDCG@10"], rows)
    rows = []
    for report in reports:
        if "reranked" not in report["stages"]:
            continue
        values = stage_values(report["per_question"])
        cells = []
        for metric in ("recall@5", "recall@10", "recall@20", "ndcg@10"):
            reranked, fused = values["reranked"][metric], values["fused"][metric]
            p = paired_test(reranked, fused)
            cells.append(f"{number(metric, fmean(reranked) - fmean(fused), '+')} (p = {p:.3f})")
        rows.append([describe(report), *cells])
    if rows:
        yield "Reranked minus fused, within a run:"
        yield table(["run", "recall@5", "recall@10", "recall@20", "nDCG@10"], rows)
    stages = max((report["seconds_per_question"] for report in reports), key=len)
    yield "Milliseconds a question (mean):"
    rows = []
    for report in reports:
        seconds = report["seconds_per_question"]
        rows.append([describe(report), *(f"{1000 * seconds[name]:.1f}" if name in seconds else "-" for name in stages)])
    yield table(["profile, context", *stages], rows)


def write_tuning(title: str, report: dict[str, Any]) -> Iterator[str]:
    """Yield what was tried on the questions for choosing."""
    yield f"## What was chosen: {title}"
    yield report["note"]
    metrics = ("recall@5", "recall@10", "recall@20", "mrr@10", "ndcg@10")
    for name, rows in report["sets"].items():
        yield f"### {name}"
        yield table(
            ["variant", *(TITLES.get(metric, metric) for metric in metrics)],
            [[row["variant"], *(number(metric, row[metric]) for metric in metrics)] for row in rows],
        )


def write_prompts(ways: dict[str, Any]) -> Iterator[str]:
    """Yield what the ways of asking for a context gave, and the paired tests of the shipped one against the others."""
    yield "## What was chosen: how a context is asked for"
    yield (
        "codebases, contexts by the optimized copy of Qwen2.5-Coder-0.5B, nothing reranked; p tests the shipped way "
        "(document cut at the end of the chunk, windows of 1,536 tokens) against the row's."
    )
    for part, title in (("choose", "The half for choosing:"), ("all", "All questions:")):
        rows = []
        for way, entry in ways.items():
            tested = entry.get("shipped_minus_this", {}).get(part)
            cells = []
            for stage in ("dense", "keyword", "fused"):
                for metric in ("recall@5", "recall@10", "recall@20") if stage == "fused" else ("recall@10",):
                    p = f" (p = {tested[stage][metric]['p']:.3f})" if tested else ""
                    cells.append(number(metric, entry["recall"][part][stage][metric]) + p)
            rows.append([way, *cells])
        yield title
        yield table(["way", "dense @10", "keyword @10", "fused @5", "fused @10", "fused @20"], rows)


def write_latency(report: dict[str, Any]) -> Iterator[str]:
    """Yield the growth of search time, memory and load time."""
    yield "## Search time"
    yield (
        f"Synthetic texts and vectors of {report['dimension']} dimensions, {report['cores']} cores, warm: median "
        "milliseconds, 95th percentile in brackets. Embedding the question and reranking are not counted."
    )
    rows = []
    for row in report["sizes"]:
        median, slow = row["milliseconds"], row["milliseconds_p95"]
        stages = (
            f"{median[stage]:.2f} ({slow[stage]:.2f})" if stage in median else "-"
            for stage in ("dense", "keyword", "fuse", "total")
        )
        sizes = (f"{row[name]:.0f}" for name in ("memory_mb", "disk_mb", "build_seconds"))
        rows.append([f"{row['chunks']:,}", *stages, f"{row['load_seconds']:.2f}", *sizes])
    yield table(["chunks", "dense", "keyword", "fuse", "total", "load s", "memory MB", "disk MB", "build s"], rows)


def write_rerank_speed(report: dict[str, Any]) -> Iterator[str]:
    """Yield how long reranking takes."""
    yield "## Reranking time"
    yield (
        f"{report['passages']} passages of about {report['tokens_each']} tokens, {report['cores']} cores, median. "
        "Last column: how many are scored in the time a question is given by default."
    )
    rows = [
        [
            row["model"],
            f"{row['load_seconds']:.2f}",
            f"{row['seconds']:.2f}",
            f"{row['pairs_per_second']:.1f}",
            f"{row['reranked_in_default_time']} in {row['seconds_taken']:.1f} s",
        ]
        for row in report["rerankers"]
    ]
    yield table(["model", "load s", "s for all", "pairs a second", "by default"], rows)


def readme_rows(measurements: Path) -> Iterator[list[str]]:
    """Yield the rows of the README's table: what, what was measured, where all figures are."""

    def read(pattern: str) -> Any:
        return json.loads(next(measurements.glob(pattern)).read_text(encoding="utf-8"))

    found = load_report(measurements / "eval-codebases-llm.json")
    recall = found["stages"]["reranked"]
    yield [
        "finding passages",
        f"{found['questions']} questions on {found['chunks']} chunks of source code: {recall['recall@10']:.0f} % of "
        f"the right chunks are among the first 10, {recall['recall@20']:.0f} % among the first 20",
        "[results](docs/results.md#codebases)",
    ]
    asked = read("answers.json")["all"]
    yield [
        "answering",
        f"{asked['answerable']} questions that the documents answer: {asked['right_answer']} got every fact asked for, "
        f"{asked['answered'] - asked['right_answer']} got less or something else, "
        f"{asked['answerable'] - asked['answered']} were refused; {asked['unanswerable']} that they do not answer: "
        f"{asked['refused']} were refused",
        "[answers](docs/how-it-works.md#answers)",
    ]
    indexed, written = read("index-handbook.json"), read("contexts-*.json")
    yield [
        "indexing",
        f"a handbook of {indexed['pages']} pages in {indexed['seconds']} s without generated contexts; with them "
        f"{written['cut']['seconds_per_chunk']['engine']:.1f} s a chunk, or "
        f"{written['optimized']['cut']['seconds_per_chunk']['engine']:.1f} s where a copy of the model is faster, "
        "which `index` finds out",
        "[engine](docs/engine.md#how-fast-it-is)",
    ]
    crashed = read("reliability-crash.json")["figures"]
    kinds = ("contexts", "vectors")
    finished = sum(crashed[f"{kind}_acknowledged"] for kind in kinds)
    lost = sum(max(0, crashed[f"{kind}_acknowledged"] - crashed[f"{kind}_in_the_end"]) for kind in kinds)
    yield [
        "not losing work",
        f"`index` was killed {crashed['kills']} times, {crashed['faults']} writes failed, {crashed['full_disks']} "
        f"disks were full: {lost} of {finished} finished contexts and vectors were lost",
        "[reliability](docs/reliability.md#crashes)",
    ]


def write_readme(readme: Path, measurements: Path) -> None:
    """Put the table between the two comments of the README."""
    rows = table(["what", "measured", "all figures"], list(readme_rows(measurements)))
    pattern = r"(<!-- results: .*? -->\n).*?(<!-- end of results -->)"
    text = readme.read_text(encoding="utf-8")
    filled, count = re.subn(pattern, lambda found: f"{found[1]}{rows}\n\n{found[2]}", text, flags=re.DOTALL)
    if count != 1:
        sys.exit(f"The comments of `results` stand {count} times in {readme} instead of once; restore them.")
    readme.write_text(filled, encoding="utf-8")


def write_worth(reports: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield what contexts are worth, from what contexts.py has left for each dataset."""
    yield "## What contexts are worth"
    yield (
        "By `scripts/benchmarks/contexts.py`, on the half of the questions kept for reporting, profile `starter`. "
        "Neighbours, surroundings and headings are in place in all ways. `auto` is what `index --context auto` writes, "
        "without a model: what sets a document apart, for chunks that can be mistaken; `auto-25` is that for a quarter "
        "of all chunks, those that need it most. `lead` is the beginning of each document for all its chunks, "
        "`perfect` what a perfect writer would say, from the facts that the look-alike set was made of, or by hand. p "
        "is of a paired test against `headings`."
    )
    shown = ("recall@5", "recall@10", "recall@20", "mrr@10")
    for report in reports:
        halves = next(iter(report["ways"].values()))["halves"]
        part = next(part for part in ("given", "report", "all") if part in halves)
        ways = {name: way["halves"][part] for name, way in report["ways"].items()}
        first = next(iter(ways.values()))
        yield f"### {report['dataset']}" + (", contexts by hand" if part == "given" else "")
        yield f"{first['questions']} questions." + (
            " For all their right chunks somebody who had not seen the questions wrote a context by hand, and for few "
            "others: contexts for all chunks can bring no more than that."
            if part == "given"
            else ""
        )
        tests = {
            (one["way"], one["against"]): one["stages"] for one in report["comparisons"] if one["part"] == part
        } | {
            (one["against"], one["way"]): one["stages"] for one in report["comparisons"] if one["part"] == part
        }  # fmt: skip
        rows = []
        for name, half in ways.items():
            given = report["ways"][name]["generated_contexts"]
            for stage, values in half["stages"].items():
                cells = [number(metric, values[metric]) for metric in shown]
                base = ways.get("headings", {}).get("stages", {}).get(stage)
                test = tests.get((name, "headings"), {}).get(stage)
                gain = "-"
                if base and test and name != "headings":
                    difference = values["recall@5"] - base["recall@5"]
                    gain = f"{difference:+.2f} (p = {test['recall@5']['p']:.3f})"
                rows.append([name, f"{given:,} of {report['ways'][name]['chunks']:,}", stage, *cells, gain])
        header = ["contexts", "chunks with one", "stage", *(TITLES.get(one, one) for one in shown), "recall@5 gained"]
        yield table(header, rows)
        rows = []
        for name, half in ways.items():
            ideal, lists = half["ideal_reranking"], half["better_list"]
            pool = number("recall", half["stages"]["fused"]["recall@150"])
            cells = [number("recall", found[f"recall@{depth}"]) for found in (ideal, lists) for depth in (5, 10, 20)]
            rows.append([name, pool, *cells])
        yield (
            "What is in the way: recall@150 of the candidates; what an ideal reranking of them would reach; and what "
            "an ideal fusion would, which takes the better of dense and keyword search for each question."
        )
        depths = [f"{title} @{depth}" for title in ("ideal reranking", "ideal fusion") for depth in (5, 10, 20)]
        yield table(["contexts", "recall@150", *depths], rows)


def main() -> None:
    """Write what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    checkout = Path(__file__).parents[2]
    parser.add_argument("--measurements", type=Path, default=checkout / "docs" / "measurements")
    parser.add_argument("--output", type=Path, help="the page; docs/results.md where neither file is named")
    parser.add_argument("--readme", type=Path, help="the README; README.md where neither file is named")
    arguments = parser.parse_args()
    both = not arguments.output and not arguments.readme
    if output := arguments.output or (both and checkout / "docs" / "results.md"):
        write_page(output, arguments.measurements)
    if readme := arguments.readme or (both and checkout / "README.md"):
        write_readme(readme, arguments.measurements)


def write_page(output: Path, measurements: Path) -> None:
    """Write the page."""
    parts = [INTRODUCTION.rstrip()]

    def key(report: dict[str, Any]) -> tuple[str, str]:
        return report["dataset"], report["part"]

    order = ("none", "headings", "auto", "llm")
    reports = []
    for path in sorted(measurements.glob("eval-*.json")):
        report = load_report(path)
        report["note"] = path.stem.removeprefix(f"eval-{report['dataset']}-{report['context']}").strip("-")
        reports.append(report)
    reports.sort(key=lambda report: (*key(report), report["profile"], order.index(report["context"]), report["note"]))
    for (name, _), group in groupby(reports, key):
        parts += write_dataset(name, list(group))
    if worth := [json.loads(path.read_text()) for path in sorted(measurements.glob("worth-*.json"))]:
        parts += write_worth(worth)
    others = (
        ("tuning-keyword.json", partial(write_tuning, "retrieval without a language model")),
        ("tuning-contexts.json", partial(write_tuning, "retrieval with contexts")),
        ("tuning-prompts.json", write_prompts),
        ("tuning-reranker.json", partial(write_tuning, "the reranker's share")),
        ("search-latency.json", write_latency),
        ("rerank-speed.json", write_rerank_speed),
    )
    for file, write in others:
        if (measurements / file).exists():
            parts += write(json.loads((measurements / file).read_text()))
    parts += write_growth(measurements)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text("\n\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
