"""`local-rag index --watch`: what changes is found soon, until Ctrl-C."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Run

CODE = (
    "from local_rag.cli.main import main\n"
    "from tests.fakes import EMBEDS_QUICKLY\n"
    "import sys; sys.argv[0] = 'local-rag'; main(EMBEDS_QUICKLY)"
)


@pytest.mark.slow
def test_changes_are_indexed_until_it_is_stopped(documents: Path, run: Run) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(root)!r})\n{CODE}"]
    arguments = ["index", "documents", "--profile", "tiny", "--context", "headings", "--watch", "--json"]
    process = subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        assert json.loads(process.stdout.readline())["added"] == 3
        while "Watching" not in process.stderr.readline():
            pass
        (documents / "zeppelin.txt").write_text("The zeppelin leaves at noon.")
        report = json.loads(process.stdout.readline())
        assert (report["added"], report["unchanged"], report["published"]) == (1, 3, True)
        (found, *_) = json.loads(run("search", "zeppelin noon", "--json").stdout)["passages"]
        assert found["path"] == "documents/zeppelin.txt"
        (documents / "boat.txt").unlink()
        assert json.loads(process.stdout.readline())["removed"] == 1
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "Traceback" not in errors
