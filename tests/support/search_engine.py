"""Run the stand-in for Qdrant as a process of its own."""

import json
import shutil
import ssl
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.request import urlopen

from tests.support.certificates import Authority

_IN_MEMORY = Path("/dev/shm")


class StandIn:
    """The stand-in as a process that can be killed and started again on the same port and folder.

    It is reached over TLS if a site's own authority is to give it a certificate, else over http.
    """

    def __init__(self, authority: Authority | None = None) -> None:
        self.folder, self.port = Path(tempfile.mkdtemp(dir=_IN_MEMORY if _IN_MEMORY.is_dir() else None)), 0
        self._scheme, self._certificate, self._trusts = "http", list[str](), None
        if authority:
            self._scheme, self._certificate = "https", list(map(str, authority.issue("engine")))
            self._trusts = ssl.create_default_context(cafile=authority.ca)
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.support.qdrant_stand_in", str(self.folder), str(self.port)]
        self.process = subprocess.Popen(
            [*command, *self._certificate], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
        )
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
        with urlopen(f"{self._scheme}://127.0.0.1:{self.port}/written", context=self._trusts) as answer:
            said = json.loads(answer.read())["result"]
        return said["points"], said["bytes"]

    @property
    def setting(self) -> str:
        return self.setting_at(self.port)

    def setting_at(self, port: int) -> str:
        """Return the setting for a port that leads to this one."""
        return f"qdrant:{self._scheme}://127.0.0.1:{port}/handbook"
