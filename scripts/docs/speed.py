"""docs/speed.md, and the table of the engine's speed in docs/engine.md."""

import itertools

from scripts.docs.markdown import measured, prose, table
from scripts.docs.results import Measurement, size_sections

VARIANTS = (
    ("no reuse: every prompt from its first token", ("seconds_per_chunk", "no_reuse")),
    ("prefix matching: `Llama.create_completion`, chunk by chunk", ("seconds_per_chunk", "prefix_matching")),
    ("this engine, the same prompt", ("seconds_per_chunk", "engine")),
    ("prefix matching, prompt cut at the chunk", ("cut", "seconds_per_chunk", "prefix_matching")),
    ("this engine, prompt cut at the chunk", ("cut", "seconds_per_chunk", "engine")),
    (
        "the same with the copy that `index` makes where it is faster",
        ("optimized", "cut", "seconds_per_chunk", "engine"),
    ),
)
NAMES = {
    "search_cpu_seconds": "`search`, processor time, s",
    "search_seconds": "`search`, wall time, s",
    "ask_first_words_seconds": "`ask`, time to first words, s",
    "search_peak_mb": "`search`, memory, MB",
}
METRICS = ("recall@5", "recall@10", "recall@20", "ndcg@10")
DEPTHS = ("60", "20", "8")
HEAD = """\
# Speed

Written by `scripts/write_docs.py` from `docs/measurements/`; do not edit this page. *Before* is commit 866d648. Both
versions ran in turns on the same machine. Unless a section names another, it has 2 cores of an AMD EPYC with AVX2,
without AVX-512 and GPU. Only the ratios apply to other machines."""


def speed_page() -> str:
    """Return docs/speed.md."""
    cold, load, indexing, precision, early_exit, depth, ask = (
        measured(f"speed-{name}.json")
        for name in ("cold", "load", "indexing", "precision", "early-exit", "rerank-depth", "ask")
    )
    started = []
    for key, name in NAMES.items():
        now, before = cold[key], cold["against"][key]
        started.append([name, str(now), str(before), f"{now / before:.2f}"])
    depths = [
        [f"{rows[0]['set']} ({rows[0]['questions']} questions)"]
        + [_ndcg(row) + ("" if row["p"] is None else f" (p = {row['p']:.2f})") for row in rows]
        for _, found in itertools.groupby(depth["rows"], key=lambda row: row["set"])
        for rows in [list(found)]
    ]
    parts = [
        HEAD,
        "## Cold start",
        prose(f"Each command is started from the shell, on {cold['machine']} (`python -m scripts.benchmarks ask`)."),
        table(["what", "now", "before", "ratio"], started),
        "## Under load",
        prose(
            "Threads wait for each other after every operation, so a single one is faster if one of two cores is busy; "
            "the engine checks this twice per second. Beside one busy program on two cores, contexts are written at "
            f"{load['contexts_share']:.0%} of the rate of an idle machine (before: "
            f"{load['against']['contexts_share']:.0%}), and chunks embedded at {load['embedding_share']:.0%} (before: "
            f"{load['against']['embedding_share']:.0%})."
        ),
        "## Embedding with int8 weights",
        prose(_precision(precision["rows"])),
        "## Reranking more passages",
        prose(
            f"nDCG@10 if {depth['model']}, whose rank is fused with that of the search, reads so many passages. p is "
            "of a paired test against 60."
        ),
        table(["set", *DEPTHS], depths),
        "## Early exit from reranking",
        prose(_early_exit(early_exit["rows"])),
        "## Answers",
        prose(
            "Seconds from the question to the end of the answer (medians), models in memory, by turns with commit "
            "a5dee13 (`python -m scripts.benchmarks ask --dataset`). Now an answer is shown once it is decided that it "
            "is given, and where no passage could make one probable, none is written."
        ),
        table(
            ["questions", "s", "a5dee13, s", "ratio", "first words, ratio", "mean, ratio", "answered", "by a5dee13"],
            [
                [
                    f"{row['questions']} of {row['set']}",
                    f"{row['median_seconds']:.1f}",
                    f"{row['against']['median_seconds']:.1f}",
                    f"{row['ratio']['median_seconds']:.2f}",
                    f"{row['ratio']['median_first_words_seconds']:.2f}",
                    f"{row['ratio']['mean_seconds']:.2f}",
                    str(row["answered"]),
                    str(row["against"]["answered"]),
                ]
                for row in ask["rows"]
            ],
        ),
        "## Indexing",
        "\n".join(prose(line, "- ") for line in indexing["lines"]),
        *size_sections(),
    ]
    return "\n\n".join(parts) + "\n"


def _ndcg(row: Measurement) -> str:
    return f"{row['ndcg@10']:.3f}"


def _early_exit(rows: list[Measurement]) -> str:
    """Say in a sentence what early exit saves, and how the ranking differs over all sets."""
    every, early = ({row["set"]: row for row in rows if row["rule"] == rule} for rule in ("all", "early exit"))
    shares = [row["share"] for row in early.values()]
    changes = [early[name]["ndcg@10"] - every[name]["ndcg@10"] for name in every]
    return (
        "A cross-encoder whose rank alone decides stops after a batch without a passage among the best. On "
        f"{len(every)} sets it scored {min(shares):.0%} to {max(shares):.0%} of the candidates, and nDCG@10 changed by "
        f"{min(changes):+.3f} to {max(changes):+.3f} ([figures](measurements/speed-early-exit.json))."
    )


def _precision(rows: list[Measurement]) -> str:
    """Say in a sentence how int8 weights differ over all sets and stages."""
    changes = [row[one]["difference"] for row in rows for one in METRICS[:-1]]
    least = min(row[one]["p"] for row in rows for one in METRICS)
    ranks = [row["ndcg@10"]["difference"] for row in rows]
    return (
        f"On {len({row['set'] for row in rows})} sets, dense and fused, recall@5 to recall@20 change by "
        f"{min(changes):+.2f} to {max(changes):+.2f} points and nDCG@10 by {min(ranks):+.3f} to {max(ranks):+.3f}; the "
        f"smallest p of a paired test is {least:.2f} ([figures](measurements/speed-precision.json))."
    )


def engine_speed() -> str:
    """Return the table of docs/engine.md: how fast contexts are written, as the benchmark `contextualize` found."""
    run = measured("contexts-*.json")
    baseline = run["seconds_per_chunk"]["prefix_matching"]
    rows = []
    for title, path in VARIANTS:
        seconds = run
        for name in path:
            seconds = seconds[name]
        rows.append([title, f"{seconds:.2f}", f"{baseline / seconds:.2f}"])
    usual, cut = (one["tokens_reused"] / (one["tokens_reused"] + one["tokens_evaluated"]) for one in (run, run["cut"]))
    head = prose(
        f"{run['chunks']} chunks of a document of {run['document_tokens']:,} tokens, {run['model']}, greedy decoding, "
        f"{run['cores']} cores of an {run['processor']}, no GPU. The figures are medians of {run['rounds']} rounds in "
        "which all variants take turns."
    )
    notes = (
        f"Of the prompt's tokens {usual:.0%} came from the KV cache with the usual prompt, and {cut:.0%} with the cut "
        "one, which is shorter.",
        f"With the usual prompt the engine ran at {run['share_of_limit']:.0%} of what the rates of reading and "
        "decoding, measured in the same run, allow for these token counts.",
        f"{run['contexts_equal']} of {run['contexts']} contexts equal those of prefix matching token for token. Where "
        f"another first differs, the two tokens are at most {run['largest_gap_at_first_difference']:.2f} of log "
        "probability apart: batches of other shapes round differently.",
    )
    figures = table(["variant", "seconds a chunk", "times as fast as prefix matching"], rows)
    return "\n\n".join([head, figures, "\n".join(prose(note, "- ") for note in notes)])
