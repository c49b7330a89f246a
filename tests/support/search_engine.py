"""Run the stand-in for Qdrant as a process of its own."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import urlopen

_IN_MEMORY = Path("/dev/shm")


class StandIn:
    """The stand-in as a process that can be killed and started again on the same port and folder."""

    def __init__(self) -> None:
        self.folder, self.port = Path(tempfile.mkdtemp(dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None)), 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.support.qdrant_stand_in", str(self.folder), str(self.port)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2])
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()

    def remove(self) -> None:
        """End the process and delete what it holds."""
        self.kill()
        shutil.rmtree(self.folder)

    def written(self) -> tuple[int, int]:
        """Return how many points were written so far, and how many bytes all requests had."""
        with urlopen(f"http://127.0.0.1:{self.port}/written") as answer:
            said = json.loads(answer.read())["result"]
        return said["points"], said["bytes"]

    @property
    def setting(self) -> str:
        return f"qdrant:http://127.0.0.1:{self.port}/handbook"
