"""A run of `extract` that is killed at any moment: no answer that a model gave is asked for again."""

import random
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from local_rag import Library
from local_rag.store.database import Store
from tests.extraction.test_extract import COLUMNS, generator, library, texts

__all__ = ["generator", "library"]  # fixtures
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("run", range(3))
def test_killed_anywhere_no_answer_is_lost_or_asked_twice(library: Library, tmp_path: Path, run: int) -> None:
    rng = random.Random()
    deaths = list[int]()
    while True:
        answers = rng.randint(1, len(COLUMNS)) if len(deaths) < 3 else 1000
        command = [sys.executable, "-m", "tests.extraction.killed_run", str(tmp_path), str(answers)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            break
        assert done.returncode < 0, done.stderr
        deaths.append(answers)
    asked = Counter((tmp_path / "asked.txt").read_text().splitlines())
    again = sum(asked.values()) - len(asked)
    assert done.stdout.split() == ["0"], (run, deaths)
    assert again == len(deaths), (deaths, "only the answer within which it died is asked for again")
    assert "Acme Ltd" in str(texts(library.extract(COLUMNS)))
    with closing(Store(tmp_path / "lib")) as store:
        assert store.value("SELECT count(*) FROM cells") == 2 * len(COLUMNS), "nothing is kept beside the cells"
