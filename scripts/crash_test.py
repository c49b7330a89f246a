"""Interrupt `local-rag index` in many ways, hundreds of times, and write the figures to docs/measurements."""

import errno
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.whole.crash.harness import (  # noqa: E402  found only after the line above
    Run,
    Trial,
    build_faults,
    check_sentence,
    kill_at_every_rename,
    kill_repeatedly,
    small_disk,
    was_killed,
    write_documents,
    write_lists,
)

OUTPUT = ROOT / "docs" / "measurements" / "reliability-crash.json"
_FAULTS = (
    # the error of a call, and whether all later calls fail too
    (errno.ENOSPC, True),
    (errno.EIO, False),
    (errno.EIO, True),
    (errno.EACCES, False),
    (errno.EACCES, True),
)


@click.command()
@click.option("--kills", default=200, show_default=True)
@click.option("--faults", default=60, show_default=True)
@click.option("--disks", default=10, show_default=True)
@click.option("--real-kills", default=5, show_default=True, help="Kills of runs with the real tiny models.")
@click.option("--sentence-kills", default=50, show_default=True, help="Kills of runs that write sentences about lists.")
@click.option("--renames", default=3, show_default=True, help="Rounds of kills between every two renames.")
@click.option("--seed", default=1, show_default=True)
def main(kills: int, faults: int, disks: int, real_kills: int, sentence_kills: int, renames: int, seed: int) -> None:
    """Run all trials; stop with an error if anything is lost."""
    started, choose = time.monotonic(), random.Random(seed)  # noqa: S311  repeatable on purpose
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        layer = build_faults(folder)
        killed = _kill(Trial(folder / "kills", layer), choose, kills)
        in_auto = _kill_in_auto(Trial(folder / "auto", layer), choose, sentence_kills)
        renamed = _kill_at_renames(folder, layer, renames)
        failed = _fail(folder, layer, choose, faults)
        full = _fill(folder, layer, disks)
        real = _kill_real(Trial(folder / "real", layer, real_models=True), choose, real_kills)
    seconds = round(time.monotonic() - started)
    figures = {"seed": seed, "seconds": seconds, **killed, **in_auto, **renamed, **failed, **full, **real}
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps({"title": "Crashes", **_render(figures), "figures": figures}, indent=1) + "\n")
    click.echo(f"Nothing was lost. Figures: {OUTPUT.relative_to(ROOT)}")


def _kill(trial: Trial, choose: random.Random, kills: int) -> dict[str, object]:
    """Kill runs with quick models, and count the calls at which they were killed."""
    hits = Counter[str]()
    with click.progressbar(length=kills, label="kills", file=sys.stderr) as bar:
        for run in kill_repeatedly(trial, choose, kills):
            hits[_name(run)] += 1
            bar.update(1)
    counts = trial.check()
    return {
        "kills": sum(hits.values()),
        "kills_by_call": dict(hits.most_common()),
        "indexes_compared": trial.compared,
        "contexts_acknowledged": trial.acknowledged("contexts"),
        "vectors_acknowledged": trial.acknowledged("vectors"),
        "contexts_in_the_end": counts["contexts"],
        "vectors_in_the_end": counts["vectors"],
    }


def _kill_at_renames(folder: Path, layer: Path, rounds: int) -> dict[str, object]:
    """Kill runs between every two renames, while segments are merged."""
    kills = 0
    for number in range(rounds):
        trial = Trial(folder / f"renames-{number}", layer)
        write_documents(trial.documents)
        if (run := trial.index()).returncode:
            raise click.ClickException(run.stderr)
        kills += kill_at_every_rename(trial)
    return {"rename_kills": kills}


def _fail(folder: Path, layer: Path, choose: random.Random, faults: int) -> dict[str, object]:
    """Let writes fail: the command reports it in one sentence, or succeeds anyway."""
    outcomes = Counter[str]()
    with click.progressbar(range(faults), label="faults", file=sys.stderr) as numbers:
        for number in numbers:
            trial = Trial(folder / f"fault-{number}", layer)
            write_documents(trial.documents)
            code, sticky = _FAULTS[number % len(_FAULTS)]
            while not (run := _index_failing(trial, choose, code, sticky)).hit:
                pass
            name = f"{errno.errorcode[code]}, {'lasting' if sticky else 'once'}"
            if run.returncode:
                check_sentence(run)
                outcomes[f"{name}: reported in one sentence"] += 1
            else:
                outcomes[f"{name}: did no harm"] += 1
            trial.check()
            again = trial.index()
            if again.returncode:
                raise click.ClickException(f"After {name} at {run.hit}: {again.stderr}")
            trial.check()
            trial.compare_with_undisturbed_run()
    return {"faults": sum(outcomes.values()), "faults_by_kind": dict(sorted(outcomes.items()))}


def _index_failing(trial: Trial, choose: random.Random, code: int, sticky: bool) -> Run:
    return trial.index(at=choose.randrange(1, 700), action=code, sticky=int(sticky))


def _fill(folder: Path, layer: Path, disks: int) -> dict[str, object]:
    """Index onto file systems of several sizes that are too small, then enlarge them."""
    full = 0
    for number in range(disks):
        size = 120 + 70 * number
        try:
            with small_disk(folder / f"disk-{number}", f"{size}k") as disk:
                trial = Trial(folder / f"full-{number}", layer, library=disk.path / "library")
                write_documents(trial.documents, 12)
                run = trial.index()
                if run.returncode:
                    check_sentence(run)
                    full += 1
                trial.check()
                disk.resize("64m")
                again = trial.index()
                if again.returncode:
                    raise click.ClickException(f"After a full disk of {size} KB: {again.stderr}")
                trial.check()
                trial.compare_with_undisturbed_run()
        except pytest.skip.Exception as reason:
            return {"full_disks": 0, "full_disks_skipped": str(reason)}
    return {"full_disks": full}


def _kill_in_auto(trial: Trial, choose: random.Random, kills: int) -> dict[str, object]:
    """Kill runs over lists that can be confused with each other; let each next run end.

    What sets documents apart depends on the order in which they came, so indexes are not compared.
    """
    write_lists(trial.documents)
    done, calls = 0, 700
    while done < kills:
        run = trial.index(at=choose.randrange(1, calls), action="kill")
        done += was_killed(run)
        trial.check()
        if not was_killed(run):
            calls = max(run.calls, 2)
            shutil.rmtree(trial.documents)
            write_lists(trial.documents, choose.randrange(4, 12))
    run = trial.index()
    if run.returncode:
        raise click.ClickException(run.stderr)
    counts = trial.check()
    return {
        "kills_in_auto": done,
        "contexts_in_auto": counts["contexts"],
        "acknowledged_in_auto": trial.acknowledged("contexts"),
    }


def _kill_real(trial: Trial, choose: random.Random, kills: int) -> dict[str, object]:
    """Kill runs with the real tiny models. Contexts depend on what is decoded together, so they are not compared."""
    write_documents(trial.documents, 2)
    done = 0
    while done < kills:
        # From about call 150 on, contexts are written.
        run = trial.index(at=choose.randrange(20, 400), action="kill")
        if was_killed(run):
            done += 1
        trial.check()
        if not was_killed(run):
            trial.change_documents(choose)
    run = trial.index()
    if run.returncode:
        raise click.ClickException(run.stderr)
    counts = trial.check()
    return {"real_kills": done, "real_contexts": counts["contexts"]}


def _name(run: Run) -> str:
    """Return what a killed run was doing."""
    if not run.hit:
        return "at a random moment"
    operation, file = run.hit.split(" ", 1)
    names = {"pwrite64": "write", "pwrite": "write", "fwrite": "write", "open64": "open", "fdatasync": "fsync"}
    return f"{names.get(operation, operation)} {file.split('/keywords/')[0]}"


def _render(figures: dict[str, object]) -> dict[str, object]:
    lines = [
        f"`local-rag index` was killed {figures['kills']} times with SIGKILL (seed {figures['seed']}): before a random "
        "call that changes a file, in the middle of a write, before a random rename, or at a random moment. After each "
        "kill, SQLite's integrity check passed, every stored context and vector was there, and a search of the "
        "published index returned all of its passages.",
        f"{figures['contexts_acknowledged']} contexts and {figures['vectors_acknowledged']} vectors were stored "
        "between the kills; 0 were lost.",
        f"{figures['indexes_compared']} times the next run was left to finish. Keyword and dense search then ranked "
        "all chunks in the same order and with the same scores as after an undisturbed run over the same documents.",
        f"{figures['rename_kills']} more kills hit runs between two renames, each in turn, while segments were merged.",
        f"{figures['kills_in_auto']} more kills hit runs over look-alikes, in which "
        f"{figures['acknowledged_in_auto']} sentences were stored; 0 were lost.",
        f"{figures['real_kills']} more kills hit runs with the real tiny models; 0 contexts were lost.",
        f"{figures['faults']} times a write failed with ENOSPC, EIO or EACCES, once or permanently. Each time the "
        "command ended with exit code 1 and one sentence, or the fault did no harm. Nothing was lost, and the next run "
        "ended with the same index as an undisturbed one.",
    ]
    if "full_disks_skipped" in figures:
        lines.append(f"Full disks were not tried: {figures['full_disks_skipped']}.")
    else:
        lines.append(
            f"{figures['full_disks']} times the disk of the library was full (a small tmpfs). The command ended with "
            "one sentence, nothing was lost, and with more space the next run built the same index."
        )
    tables: list[list[object]] = []
    for name in ("kills_by_call", "faults_by_kind"):
        counts = figures[name]
        assert isinstance(counts, dict)
        kind = "killed" if name == "kills_by_call" else "failed"
        tables += [[kind, what, count] for what, count in counts.items()]
    return {"lines": lines, "table": {"header": ["what", "where", "times"], "rows": tables}}


if __name__ == "__main__":
    os.environ.pop("LOCAL_RAG_PROFILE", None)
    main()
