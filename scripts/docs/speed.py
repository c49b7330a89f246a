"""docs/speed.md, and the table of the engine's speed in docs/engine.md."""

from scripts.docs.markdown import measured, prose, table
from scripts.docs.results import size_sections

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
    "search_no_rerank_cpu_seconds": "`search --no-rerank`, processor time, s",
    "ask_first_words_seconds": "`ask`, time to first words, s",
    "search_peak_mb": "`search`, memory, MB",
    "torch_imported": "torch imported by `search`",
}
METRICS = ("recall@5", "recall@10", "recall@20", "ndcg@10")
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
        started.append([name, str(now), str(before), "" if isinstance(now, bool) else f"{now / before:.2f}"])
    shares = [
        [name, str(load[key]), str(load["against"][key])]
        for key, name in (("contexts_share", "contexts"), ("embedding_share", "embedding"))
    ]
    differences = [
        [row["set"], row["stage"]]
        + [f"{row[one]['difference']:+.{3 if one == 'ndcg@10' else 2}f} (p = {row[one]['p']:.2f})" for one in METRICS]
        for row in precision["rows"]
    ]
    rules = [
        [row["set"], row["rule"], f"{row['share']:.2f}"]
        + [f"{row[one]:.{3 if one == 'ndcg@10' else 1}f}" for one in METRICS]
        for row in early_exit["rows"]
    ]
    depths = [
        [f"{row['set']} ({row['questions']} questions)", str(row["reranked"])]
        + [f"{row[one]:.{3 if one == 'ndcg@10' else 1}f}" for one in METRICS]
        + ["" if row["p"] is None else f"{row['p']:.2f}"]
        for row in depth["rows"]
    ]
    metrics = ["recall@5", "recall@10", "recall@20", "nDCG@10"]
    parts = [
        HEAD,
        "## Cold start",
        prose(f"Each command is started from the shell, on {cold['machine']} (`python -m scripts.benchmarks ask`)."),
        table(["what", "now", "before", "ratio"], started),
        "## Under load",
        prose(
            "The rate beside one busy program on two cores, as a share of the rate on an idle machine "
            "(`python -m scripts.benchmarks under_load`). Threads wait for each other after every operation. If one of "
            "two cores is busy, a single thread is faster. The engine checks this twice per second."
        ),
        table(["what", "now", "before"], shares),
        "## Embedding with int8 weights",
        "Difference from the original weights, over the same chunks; p is of a paired test.",
        table(["set", "stage", *metrics], differences),
        "## Reranking more passages",
        prose(
            f"The rank of {depth['model']} is fused with that of the search, so a passage far down in the search comes "
            "to the top only if nothing above it fits. It reads the 20 passages that are kept; p is of a paired test "
            "of nDCG@10 against 60."
        ),
        table(["set", "reranked", *metrics, "p"], depths),
        "## Early exit from reranking",
        prose(
            "A cross-encoder whose rank alone decides stops after a batch without a passage among the best. *Share* is "
            "the part of the candidates that was scored."
        ),
        table(["set", "rule", "share", *metrics], rules),
        "## Answers",
        prose(
            "Seconds from the question to the end of the answer (medians), models in memory, by turns with commit "
            "a5dee13 (`python -m scripts.benchmarks ask --dataset`). That version showed words as they were written. "
            "Now an answer is shown once it is decided that it is given, and where no passage could make one probable, "
            "none is written."
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
