"""scripts/benchmarks/fuzz_inputs.py: a row for each file, with the time that its reading took."""

import os
import signal
from pathlib import Path

from local_rag.model_records import InstalledModel
from local_rag.models.own_models import TOKENIZER_FILE
from local_rag.reading.isolate import IsolatedReader
from local_rag.reading.split import Splitting
from scripts.benchmarks.fuzz_inputs import clock, examine, whole


def test_the_messages_of_a_mailbox_are_one_row_with_the_worst_outcome() -> None:
    rows = [
        {"name": "a.mbox", "outcome": "indexed", "read_seconds": 1.25, "split_seconds": 0.5, "memory": 7},
        {"name": "a.mbox", "outcome": "stopped", "read_seconds": 2.0, "memory": 3},
        {"name": "a.mbox", "outcome": "refused", "read_seconds": 0.5, "memory": 9},
    ]
    row = {"name": "a.mbox", "outcome": "stopped", "read_seconds": 3.75, "split_seconds": 0.5, "memory": 9}
    assert whole(rows) == row | {"messages": 3}
    assert whole(rows[:1]) == rows[0]


def test_only_the_time_that_a_file_took_is_booked_when_the_reader_changes(
    tmp_path: Path, embed_model: InstalledModel
) -> None:
    (tmp_path / "a.md").write_text("# A\n\nThe boat leaves.\n")
    splitting = Splitting(embed_model.path / TOKENIZER_FILE, 100)
    with IsolatedReader(splitting) as reader:
        assert examine(tmp_path / "a.md", reader, splitting)["outcome"] == "indexed"
        before = clock(reader)
        os.kill(reader.pid, signal.SIGKILL)
        row = examine(tmp_path / "a.md", reader, splitting)
        assert row["outcome"] == "stopped"
        assert row["read_seconds"] < 1
        assert clock(reader) >= before
        assert examine(tmp_path / "a.md", reader, splitting)["read_seconds"] < 60
