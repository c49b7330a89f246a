"""`python -m scripts.benchmarks`: each measurement is listed with a sentence, and runs by its name."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.benchmarks.__main__ import first_sentence, main, names

CHECKOUT = Path(__file__).parents[2]


def test_every_measurement_is_listed_with_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--list"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == names()
    assert {"ask", "contextualize", "grow", "prepare_eval"} <= set(names())
    assert all(first_sentence(name).endswith(".") for name in names())


@pytest.mark.parametrize("name", names())
def test_a_measurement_explains_its_arguments(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert importlib.import_module(f"scripts.benchmarks.{name}").__doc__
    monkeypatch.setattr(sys, "argv", sys.argv)
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: python -m scripts.benchmarks {name} ")


def test_an_unknown_name_is_refused() -> None:
    command = [sys.executable, "-m", "scripts.benchmarks", "nothing"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CHECKOUT)
    assert done.returncode == 1
    assert "There is no measurement 'nothing'" in done.stderr
