"""A short form of scripts/soak.sh, with a fixed seed."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.rest
SCRIPT = Path(__file__).parents[2] / "scripts" / "soak.py"


def test_random_commands_leave_what_the_model_says() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "25", "7"], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No difference in 25 commands" in done.stdout
