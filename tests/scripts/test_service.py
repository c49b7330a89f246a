"""The container file and the systemd unit name what is there, and systemd's own check accepts the unit."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "scripts" / "service"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="the unit is checked by systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "local-rag.service"
    text = (FOLDER / "local-rag.service").read_text()
    unit.write_text(re.sub(r"ExecStart=\S+", f"ExecStart={shutil.which('true')}", text))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert not [line for line in done.stderr.splitlines() if "local-rag.service" in line], done.stderr


def test_the_container_file_uses_scripts_that_exist_and_ends_as_another_user() -> None:
    lines = (FOLDER / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    instructions = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    known = {"FROM", "RUN", "WORKDIR", "COPY", "USER", "ENV", "VOLUME", "ENTRYPOINT", "CMD"}
    assert {one for one, _ in instructions} <= known
    for script in re.findall(r"scripts/\w+\.sh", " ".join(rest for _, rest in instructions)):
        assert (FOLDER.parents[1] / script).is_file()
    assert [rest for one, rest in instructions if one == "USER"][-1] != "root"
    assert all(":" in rest.split()[0] for one, rest in instructions if one == "FROM")
