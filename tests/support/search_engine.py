"""Run the stand-in for Qdrant as a process of its own."""

import subprocess
import sys
from pathlib import Path


class StandIn:
    """The stand-in as a process that can be killed and started again on the same port and folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, 0
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

    @property
    def setting(self) -> str:
        return f"qdrant:http://127.0.0.1:{self.port}/handbook"
