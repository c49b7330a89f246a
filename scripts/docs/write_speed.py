"""Render docs/speed.md from docs/measurements/speed-*.json, which from_cold.py, under_load.py and others wrote."""

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"
NAMES = {
    "search_cpu_seconds": "`search`, processor time, s",
    "search_seconds": "`search`, wall time, s",
    "search_no_rerank_cpu_seconds": "`search --no-rerank`, processor time, s",
    "ask_first_words_seconds": "`ask`, first words after, s",
    "search_peak_mb": "`search`, memory, MB",
    "torch_imported": "torch imported by `search`",
}
HEAD = """# Speed

Written by `scripts/docs/write_speed.py` from `measurements/speed-*.json`; not edited by hand. Both versions ran in
turns on the same machine, which is 2 cores of an AMD EPYC with AVX2 and no AVX-512, no GPU, where nothing else is said;
before is commit 866d648. Only the ratios hold on another.
"""


def main() -> None:
    """Write the page."""
    cold, load, answers = (_read(name) for name in ("cold", "load", "answers"))
    lines = [
        HEAD,
        "## From cold\n",
        f"A process of its own each time, from the shell, on {cold['machine']}.\n",
    ]
    lines += ["| what | now | before | ratio |", "| --- | --- | --- | --- |"]
    for key, name in NAMES.items():
        now, before = cold[key], cold["against"][key]
        ratio = "" if isinstance(now, bool) else f"{now / before:.2f}"
        lines.append(f"| {name} | {now} | {before} | {ratio} |")
    lines += [
        "\n## Beside a busy program\n",
        "With one busy program on two cores, as a share of the idle rate. Where threads wait for each other after "
        "every operation, one thread is faster than two, of which one waits; the engine looks twice a second.\n",
        "| what | now | before |",
        "| --- | --- | --- |",
    ]
    for key, name in (("contexts_share", "contexts"), ("embedding_share", "embedding")):
        lines.append(f"| {name} | {load[key]} | {load['against'][key]} |")
    lines += [
        "\n## Embedding with int8 weights\n",
        "Against the weights as they are, over the same chunks; p by a paired test.\n",
    ]
    lines += ["| set | stage | recall@5 | recall@10 | recall@20 | nDCG@10 |", "| --- | --- | --- | --- | --- | --- |"]
    for row in _read("precision")["rows"]:
        cells = [f"{row[m]['difference']:+.2f} (p = {row[m]['p']:.2f})" for m in ("recall@5", "recall@10", "recall@20")]
        cells.append(f"{row['ndcg@10']['difference']:+.3f} (p = {row['ndcg@10']['p']:.2f})")
        lines.append(f"| {row['set']} | {row['stage']} | {' | '.join(cells)} |")
    lines += [
        "\n## Reranking until a round brings nothing good\n",
        "The share of the candidates that is scored, and what is found.\n",
        "| set | rule | share | recall@5 | recall@10 | recall@20 | nDCG@10 |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in _read("early-exit")["rows"]:
        figures = [f"{row[m]:.1f}" for m in ("recall@5", "recall@10", "recall@20")] + [f"{row['ndcg@10']:.3f}"]
        lines.append(f"| {row['set']} | {row['rule']} | {row['share']:.2f} | {' | '.join(figures)} |")
    lines += ["\n## Answers\n", *(f"- {line}" for line in answers["lines"])]
    (DOCS / "speed.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DOCS / "measurements" / f"speed-{name}.json").read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    main()
