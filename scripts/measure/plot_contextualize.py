"""Draw the figures that scripts/measure/bench_contextualize.py left as JSON.

.venv/bin/python scripts/measure/plot_contextualize.py docs/measurements/contexts-*.json --output docs/context-speed.png
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

VARIANTS: tuple[tuple[str, Callable[[dict[str, Any]], float]], ...] = (
    ("no reuse", lambda run: run["seconds_per_chunk"]["no_reuse"]),
    ("prefix matching", lambda run: run["seconds_per_chunk"]["prefix_matching"]),
    ("this engine, same prompt", lambda run: run["seconds_per_chunk"]["engine"]),
    ("this engine, prompt cut at the chunk", lambda run: run["cut"]["seconds_per_chunk"]["engine"]),
    ("the same, optimized copy", lambda run: run["optimized"]["cut"]["seconds_per_chunk"]["engine"]),
)


def main() -> None:
    """Draw chunks a second by variant, and the engine's growth with chunks and length."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    arguments = parser.parse_args()
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    runs = [json.loads(path.read_text()) for path in arguments.runs]
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
    height = 0.8 / len(runs)
    for number, run in enumerate(runs):
        shown = [variant for variant in VARIANTS if "optimized" in run or "optimized" not in variant[0]]
        speeds = [1 / seconds(run) for _, seconds in shown]
        places = [row + number * height for row in range(len(shown))]
        bars = left.barh(places, speeds, height, label=run["label"])
        left.bar_label(bars, fmt="%.2f", padding=3)
        for tokens in sorted({point["document_tokens"] for point in run.get("growth", [])}):
            points = [point for point in run["growth"] if point["document_tokens"] == tokens]
            right.plot(
                [point["chunks"] for point in points],
                [point["chunks_per_second"] for point in points],
                marker="o",
                linestyle=("-", "--")[number % 2],
                label=f"{run['label']}, documents of {tokens:,} tokens" if len(runs) > 1 else f"{tokens:,} tokens each",
            )
    left.set_yticks(
        [row + height * (len(runs) - 1) / 2 for row in range(len(VARIANTS))], [name for name, _ in VARIANTS]
    )
    left.invert_yaxis()
    left.margins(x=0.15)
    left.set_xlabel(
        f"chunks a second ({runs[0]['chunks']} chunks, a document of {runs[0]['document_tokens']:,} tokens)"
    )
    if len(runs) > 1:
        left.legend(fontsize="small", loc="upper right")
    right.set_xlabel("chunks")
    right.set_xscale("log")
    counts = sorted({point["chunks"] for run in runs for point in run.get("growth", [])})
    right.set_xticks(counts, [str(count) for count in counts])
    right.minorticks_off()
    right.set_ylabel("chunks a second, fastest variant")
    right.set_ylim(bottom=0)
    right.legend(fontsize="x-small", title="documents" if len(runs) == 1 else None)
    names = ", ".join(run["label"] for run in runs)
    figure.suptitle(f"Writing contexts with {names} on {runs[0]['cores']} cores of an {runs[0]['processor']}")
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=110)


if __name__ == "__main__":
    main()
