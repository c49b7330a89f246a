"""The reading process: whatever a document holds, it costs one file at most, and the run little."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from local_rag.errors import ReadError
from local_rag.offline import can_filter
from local_rag.reading.isolate import IsolatedReader
from local_rag.reading.split import Splitting

pytestmark = pytest.mark.slow
SLIDES = "---\n" + "".join(f"# Slide {i}\n\ntext {i}\n\n---\n\n" for i in range(200))
HEADINGS = "---\n" + "# A\n\n" * 200
RULES = "---\n# Holidays\n\n30 days.\n\n## Requests\n\nNote: exceptions.\n\n---\n\n# Travel\n\nSecond class.\n"


@pytest.mark.parametrize("text", [SLIDES, HEADINGS, RULES])
def test_rules_and_headings_are_read_whole_and_at_once(text: str, tmp_path: Path, splitting: Splitting) -> None:
    (tmp_path / "slides.md").write_text(text)
    with IsolatedReader(splitting, seconds=30) as reader:
        read = reader.read(tmp_path / "slides.md")
    assert read.document.text == text
    assert " ".join(chunk.text for chunk in read.chunks).split() == text.split()


def python(code: str, splitting: Splitting, *arguments: str | Path) -> str:
    """Run code with a `reader` and the paths `files` in a process of its own; return what it prints."""
    start = (
        "import os, resource, signal, sys\nfrom pathlib import Path\n"
        "from local_rag.reading.isolate import IsolatedReader\nfrom local_rag.reading.split import Splitting\n"
        f"reader = IsolatedReader(Splitting(Path({str(splitting.tokenizer)!r}), {splitting.max_tokens}))\n"
        "files = list(map(Path, sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", start + code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


LARGEST = """
def largest(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) // 1024
def measured(file):
    chunks = len(reader.read(file).chunks)
    print(chunks, largest("self"), largest(reader.pid))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("list.py", "x = [" + "12345678, " * 60_000 + "]\n"),
        pytest.param("list.py", "x = [" + "12345678, " * 300_000 + "]\n", marks=pytest.mark.rest),
        ("headings.md", "# a\n" * 50_000),
    ],
)
def test_an_expensive_file_is_cheap_for_the_run(name: str, content: str, tmp_path: Path, splitting: Splitting) -> None:
    (tmp_path / "small.md").write_text("text")
    (tmp_path / name).write_text(content)
    splitting = replace(splitting, max_tokens=2000)
    printed = python(f"{LARGEST}for file in files: measured(file)", splitting, tmp_path / "small.md", tmp_path / name)
    (_, run_before, reader_before), (chunks, run, reader) = (map(int, line.split()) for line in printed.splitlines())
    assert chunks > 10
    assert reader - reader_before > 50
    assert run - run_before < 12


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_memory_of_one_file_is_available_to_the_next(tmp_path: Path, splitting: Splitting) -> None:
    (tmp_path / "markup.html").write_text("<b><p>" * 20_000)
    (tmp_path / "good.html").write_text("<p>" + "some text here. " * 50)
    with IsolatedReader(splitting, memory=500 * 1024**2) as reader:
        for name in ("good", "markup"):
            with contextlib.suppress(ReadError):
                assert len(reader.read(tmp_path / f"{name}.html").chunks) == 2
                assert name == "good"
        assert len(reader.read(tmp_path / "good.html").chunks) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="needs prlimit")
def test_the_system_itself_ends_a_reader_that_computes_too_long(tmp_path: Path, splitting: Splitting) -> None:
    (tmp_path / "good.txt").write_text("text")
    with IsolatedReader(splitting, seconds=7) as reader:
        for _ in range(2):
            reader.read(tmp_path / "good.txt")
            soft, _hard = resource.prlimit(reader.pid, resource.RLIMIT_CPU)
            assert 7 < soft <= 12


def test_splitting_is_under_the_limit_of_time(tmp_path: Path, splitting: Splitting) -> None:
    (tmp_path / "words.txt").write_text("word " * 4_000_000)
    (tmp_path / "good.txt").write_text("text")
    with IsolatedReader(splitting, seconds=4) as reader:
        with pytest.raises(ReadError, match="takes longer than 4 seconds to read"):
            reader.read(tmp_path / "words.txt")
        assert len(reader.read(tmp_path / "good.txt").chunks) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_reader_that_stops_without_computing_is_ended_and_the_next_file_is_read(
    tmp_path: Path, splitting: Splitting
) -> None:
    (tmp_path / "good.txt").write_text("text")
    with IsolatedReader(splitting, still_seconds=5) as reader:
        reader.read(tmp_path / "good.txt")
        os.kill(reader.pid, signal.SIGSTOP)
        with pytest.raises(ReadError, match="stops for 5 seconds while it is read"):
            reader.read(tmp_path / "good.txt")
        assert len(reader.read(tmp_path / "good.txt").chunks) == 1


@pytest.mark.skipif(not can_filter(), reason="needs Linux's filter of system calls")
def test_the_reader_has_no_network_and_no_keys(
    tmp_path: Path, splitting: Splitting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RAG_QDRANT_KEY", "secret")
    (tmp_path / "good.txt").write_text("text")
    with IsolatedReader(splitting) as reader:
        reader.read(tmp_path / "good.txt")
        assert "Seccomp:\t2" in Path(f"/proc/{reader.pid}/status").read_text()
        assert b"secret" not in Path(f"/proc/{reader.pid}/environ").read_bytes()


def test_a_reader_that_was_killed_between_two_files_costs_one_of_them(tmp_path: Path, splitting: Splitting) -> None:
    (tmp_path / "a.md").write_text("# A\n\nThe boat leaves.\n")
    with IsolatedReader(splitting) as reader:
        reader.read(tmp_path / "a.md")
        os.kill(reader.pid, signal.SIGKILL)
        os.waitid(os.P_PID, reader.pid, os.WEXITED | os.WNOWAIT)  # then nothing can be written to it
        with pytest.raises(ReadError, match="crashes the reader"):
            reader.read(tmp_path / "a.md")
        assert reader.read(tmp_path / "a.md").document.title == "A"


def test_a_process_that_the_system_limits_further_is_confined_too() -> None:
    code = (
        "import resource\nfrom local_rag.reading.isolate import confine\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (7, 9))\n"
        "confine(20, 2**34)\n"
        "print(resource.getrlimit(resource.RLIMIT_CPU), resource.getrlimit(resource.RLIMIT_CORE))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "(9, 9) (0, 0)\n", done.stderr
