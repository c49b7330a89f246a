"""Record the figures of every evaluation of a library, and draw them; nothing else needs matplotlib."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from local_rag.errors import DatasetError


def new_figure(size: tuple[float, float]) -> Any:
    """Return an empty figure of this size in inches; raise DatasetError if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise DatasetError("--plot needs matplotlib; install it with `pip install matplotlib`.") from None
    return Figure(figsize=size, layout="constrained")


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure in the format of the file's suffix; raise DatasetError if that fails."""
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise DatasetError(f"The plot cannot be written to {path} ({error}); name a .png, .svg or .pdf file.") from None


HISTORY_FILE = "evaluations.jsonl"


def figures(report: Mapping[str, Any]) -> dict[str, float]:
    """Return the main figures of a report: those of the last stage, and the shares of answers in percent."""
    stage = list(report["stages"])[-1]
    found = {name: float(value) for name, value in report["stages"][stage].items()}
    if answers := report.get("answers"):
        wanted = {"right": "answerable", "wrong": "answerable", "refused": "unanswerable"}
        found |= {name: 100 * answers[name] / answers[of] for name, of in wanted.items() if answers[of]}
    return found


def append(library: Path, report: Mapping[str, Any]) -> bool:
    """Add a run to the history of a library; return whether that was possible."""
    line = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        **{name: report[name] for name in ("dataset", "part", "questions", "chunks", "profile", "context", "models")},
        "figures": figures(report),
    }
    try:
        with (library / HISTORY_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    except OSError:  # a read-only disk or another owner: the run itself is still valid
        return False
    return True


def load(library: Path) -> list[dict[str, Any]]:
    """Return the runs of a library, oldest first; a line truncated by a crash is skipped."""
    path = library / HISTORY_FILE
    runs = list[dict[str, Any]]()
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} cannot be read ({error}); delete it to start a new history.") from None
    for line in lines:
        try:
            run = json.loads(line)
            runs.append({**run, "figures": {str(name): float(value) for name, value in run["figures"].items()}})
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return runs


def plot_history(runs: Sequence[Mapping[str, Any]], names: Sequence[str], path: Path) -> None:
    """Draw figures over time, one line per dataset and figure."""
    figure = new_figure((8, 4.5))
    axes = figure.add_subplot(ylabel="%", title="Evaluations of this library")
    for dataset in dict.fromkeys(run["dataset"] for run in runs):
        for name in names:
            points = [
                (datetime.fromisoformat(run["time"]), run["figures"][name])
                for run in runs
                if run["dataset"] == dataset and name in run["figures"]
            ]
            if points:
                axes.plot(*zip(*points, strict=True), marker="o", label=f"{dataset}, {name}")
    axes.grid(alpha=0.3)
    axes.legend(fontsize="small")
    figure.autofmt_xdate()
    save_figure(figure, path)


def require_at_least(found: Mapping[str, float], wanted: Mapping[str, float]) -> list[str]:
    """Describe each figure that is lower than wanted; raise DatasetError for one that was not measured."""
    for name in wanted:
        if name not in found:
            raise DatasetError(f"The figure {name} was not measured; name one of {', '.join(found)}.")
    return [f"{name} is {found[name]:.3g}, below {least:g}" for name, least in wanted.items() if found[name] < least]
