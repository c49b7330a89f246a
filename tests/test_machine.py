import subprocess
import sys
from pathlib import Path

import pytest

from local_rag.machine import physical_cores


@pytest.mark.parametrize(
    ("files", "share"),
    [
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu.max": "50000 100000\n"}, 1),
        ({"cpu.max": "150000 100000\n"}, 2),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "100000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 1),
        ({"cpu.max": "what?"}, None),
    ],
)
def test_a_container_counts_the_cores_it_has_the_time_of(
    files: dict[str, str], share: int | None, tmp_path: Path
) -> None:
    unlimited = physical_cores(tmp_path)
    assert unlimited >= 1
    (tmp_path / "cpu").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert physical_cores(tmp_path) == min(unlimited, share or unlimited)


def test_a_process_that_gives_way_does_so_once() -> None:
    code = "import os; from local_rag.machine import give_way; give_way(19); give_way(3); print(os.nice(0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "19"
