"""docs/speed.md, and the table of the engine's speed in docs/engine.md."""

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
METRICS = ("recall@5", "recall@10", "recall@20", "ndcg@10")
DEPTHS = (60, 20, 8)
HEAD = """\
# Speed

Written by `scripts/write_docs.py` from `docs/measurements/`; do not edit this page. *Before* is commit 866d648, run by
turns on the same machine. Unless a section names another, it has 2 cores of an AMD EPYC with AVX2, without AVX-512 and
GPU. Only the ratios apply to other machines."""


def speed_page() -> str:
    """Return docs/speed.md."""
    cold, load, indexing, precision, early_exit, depth, ask = (
        measured(f"speed-{name}.json")
        for name in ("cold", "load", "indexing", "precision", "early-exit", "rerank-depth", "ask")
    )
    parts = [
        HEAD,
        "## Cold start",
        prose(_cold_start(cold)),
        "## Under load",
        prose(
            "Beside one busy program on two cores, contexts are written at "
            f"{load['contexts_share']:.0%} of the rate of an idle machine (before: "
            f"{load['against']['contexts_share']:.0%}), and chunks embedded at {load['embedding_share']:.0%} "
            f"({load['against']['embedding_share']:.0%})."
        ),
        "## Embedding with int8 weights",
        prose(_precision(precision["rows"])),
        "## Reranking more passages",
        prose(_depths(depth["model"], depth["rows"])),
        "## Early exit from reranking",
        prose(_early_exit(early_exit["rows"])),
        "## Answers",
        prose(
            "Median seconds from the question to the end of the answer, models in memory, and in brackets those of "
            "commit a5dee13, by turns (`python -m scripts.benchmarks ask --dataset`):"
        ),
        "\n".join(prose(_answers(row), "- ") for row in ask["rows"]),
        "## Indexing",
        "\n".join(prose(line, "- ") for line in indexing["lines"]),
        *size_sections(),
    ]
    return "\n\n".join(parts) + "\n"


def _cold_start(now: Measurement) -> str:
    """Say in sentences how long commands take from the shell."""
    before = now["against"]
    return (
        f"From the shell, on {now['machine']} (`python -m scripts.benchmarks ask`), `search` takes "
        f"{now['search_seconds']:.1f} s (before: {before['search_seconds']:.1f}), {now['search_cpu_seconds']:.1f} s of "
        f"processor time ({before['search_cpu_seconds']:.1f}) and {now['search_peak_mb']:.0f} MB "
        f"({before['search_peak_mb']:.0f}). The first words of `ask` come after {now['ask_first_words_seconds']:.1f} s "
        f"({before['ask_first_words_seconds']:.1f})."
    )


def _depths(model: str, rows: list[Measurement]) -> str:
    """Say in sentences what reading fewer passages changes over all sets."""
    most, kept, fewest = ({row["set"]: row for row in rows if row["reranked"] == depth} for depth in DEPTHS)

    def change(found: dict[str, Measurement]) -> str:
        changes = [row["ndcg@10"] - most[name]["ndcg@10"] for name, row in found.items()]
        least = min(row["p"] for row in found.values())
        return f"{min(changes):+.3f} to {max(changes):+.3f} (smallest p {least:.2f})"

    return (
        f"If {model}, whose rank is fused with that of the search, reads {DEPTHS[1]} passages instead of {DEPTHS[0]}, "
        f"nDCG@10 changes by {change(kept)} on {len(most)} sets; on `corpus/` it is {kept['corpus']['ndcg@10']:.3f} "
        f"instead of {most['corpus']['ndcg@10']:.3f} (p = {kept['corpus']['p']:.2f}). With {DEPTHS[2]}, it changes by "
        f"{change(fewest)} ([figures](measurements/speed-rerank-depth.json))."
    )


def _answers(row: Measurement) -> str:
    before = row["against"]
    return (
        f"{row['questions']} of {row['set']}: {row['median_seconds']:.1f} ({before['median_seconds']:.1f}); "
        f"{row['answered']} ({before['answered']}) were answered."
    )


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
