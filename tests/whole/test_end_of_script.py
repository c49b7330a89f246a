"""A script that closes no library ends as quietly as one that does."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
from local_rag import Library
library = Library(sys.argv[1], profile="tiny", context="headings")
library.index([sys.argv[2]])
library.ask("When does the boat leave?")
print("answered")
"""


@pytest.mark.slow
def test_the_models_of_a_library_that_nobody_closes_are_freed_in_time(documents: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "library"), str(documents)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "answered\n"), done.stderr
    assert "Traceback" not in done.stderr
    assert "ignored" not in done.stderr
