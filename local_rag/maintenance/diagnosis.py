"""Gather the facts about llama.cpp, the machine, the models and the library, and check them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from local_rag.errors import LibraryError, ModelError
from local_rag.index.generations import Generations
from local_rag.indexing.fingerprint import differences, make_fingerprint, obstacles
from local_rag.llama.external import ExternalEngine
from local_rag.llama.probe import run_probe
from local_rag.machine import file_system, free_bytes, is_network, memory, physical_cores, processor, processor_flags
from local_rag.maintenance import checks
from local_rag.maintenance.checks import CheckResult, memory_needed
from local_rag.model_names import parts_of
from local_rag.model_records import InstalledModel, Role
from local_rag.models.choice import chosen
from local_rag.models.engine_address import is_engine, parse_engine, permitted_engine
from local_rag.models.models_folder import default_models_directory
from local_rag.models.own_models import MODEL_FORMATS
from local_rag.models.registry import Registry, load_registry, resolve, verify
from local_rag.offline import left_open
from local_rag.settings import Settings, resolve_settings
from local_rag.store.connect import remembered_settings
from local_rag.store.database import Store
from local_rag.store.housekeeping import check_pages, find_damage
from local_rag.store.schema import STORE_FILE
from local_rag.store.storage_errors import storage_errors

_LIBRARY_BYTES = 1000**3


def diagnose_installation(folder: Path, open_ways: Sequence[str], **given: str | None) -> Iterator[CheckResult]:
    """Check a complete installation: llama.cpp, the closed network, the machine, the models, the library."""
    printed, problem = run_probe()
    yield checks.check_llama(version("llama-cpp-python"), printed, processor(), processor_flags(), problem)
    yield checks.check_offline(open_ways, left_open())
    folder = folder.resolve()
    try:
        settings = resolve_settings(folder, remembered_settings(folder), **given)
        names = chosen(settings)
    except LibraryError as error:
        yield CheckResult("settings", "failed", str(error), f"local-rag index --library {folder} --profile starter")
        return
    if machines := [one for one in (settings.cluster.address, settings.search_engine.address) if one]:
        yield checks.check_cluster(machines)
    known = load_registry()
    yield checks.check_cores(physical_cores())
    needed = memory_needed({role: _weight(name, known) for role, name in names.items()})
    yield checks.check_memory(settings.profile, needed, *memory())
    installed: dict[Role, InstalledModel] = {}
    if is_engine(names.get("answer", "")):
        yield _check_engine(settings, names.pop("answer"))
    for name in dict.fromkeys(names.values()):
        yield from _check_model(
            name, [role for role in MODEL_FORMATS if names.get(role) == name], installed, settings.gpu_layers
        )
    absent = sum(_weight(name, known) for name in set(names.values()) - {model.name for model in installed.values()})
    for location, room in ((default_models_directory(), absent), (folder, _LIBRARY_BYTES)):
        yield checks.check_disk(location, free_bytes(location), room)
    yield from _check_library(folder, settings, installed)


def _check_model(
    name: str, roles: Sequence[Role], installed: dict[Role, InstalledModel], gpu_layers: int
) -> Iterator[CheckResult]:
    """Check one model for all its roles; add it to `installed` if it is whole."""
    registry, models_directory = load_registry(), default_models_directory()
    entries = registry.parts(name) if name in registry.models else ()
    try:
        model = resolve(name, roles[0], registry=registry)
    except ModelError as error:
        yield checks.check_model(name, roles, str(error), f"local-rag models pull {name}")
        return
    damage = [one for entry in entries for one in verify(entry, models_directory=models_directory)]
    remedy = entries[-1].pull_command(models_directory) if entries else "local-rag models list"
    yield checks.check_model(name, roles, "; ".join(damage), remedy, hashed=bool(entries))
    if not damage:
        installed |= dict.fromkeys(roles, model)
        if model.path.is_file():
            printed, problem = run_probe(model.path, gpu_layers=gpu_layers, task="speed")
            yield checks.check_decoding(name, problem, printed.splitlines()[-1] if printed else "")


def _check_engine(settings: Settings, name: str) -> CheckResult:
    try:
        permitted_engine(settings)
        engine = ExternalEngine(parse_engine(name), context_tokens=lambda length, _sequences: length)
        head, tail = engine.model.chat_frame("You answer with Yes or No.")
        engine.log_probabilities(
            engine.model.tokenize(f"{head}Is water wet?", special=True), engine.model.tokenize(tail, special=True)
        )
    except ModelError as error:
        return checks.check_engine(name, str(error))
    return checks.check_engine(name, "", tells_odds=bool(engine.tells_odds))


def _check_library(folder: Path, settings: Settings, installed: Mapping[Role, InstalledModel]) -> Iterator[CheckResult]:
    if not (folder / STORE_FILE).exists():
        yield CheckResult("library", "ok", f"none in {folder} yet; `local-rag index FOLDER` makes one")
        return
    yield checks.check_privacy(folder, folder.stat().st_mode)
    yield checks.check_file_system(folder, kind := file_system(folder), is_network(kind))
    complaints, live = list[str](), None
    try:
        with storage_errors(folder):
            with closing(Store(folder)) as store:
                complaints += check_pages(store) or [
                    f"{len(keys):,} damaged {name}" for name, keys in find_damage(store).items() if keys
                ]
            # With a search engine nothing reads the folder's index; `local-rag cluster check` looks at the engine's.
            live = None if settings.search_engine.address else Generations(folder).live()
            complaints += live.damage() if live else []
    except LibraryError as error:
        complaints.append(str(error))
    yield checks.check_integrity(folder, complaints)
    if live is not None and "embed" in installed:
        wanted = make_fingerprint(settings, installed["embed"], installed.get("context"))
        made = live.manifest["fingerprint"]
        yield checks.check_fingerprint(differences(made, wanted), searchable=not obstacles(made, wanted))


def _weight(name: str, registry: Registry) -> int:
    if name in registry.models:
        return sum(entry.bytes for entry in registry.parts(name))
    model, *adapter = parts_of(name)
    if adapter:  # which is small
        return _weight(model, registry)
    path = Path(name).expanduser()
    files = [path] if path.is_file() else [*path.glob("**/*.safetensors")] or path.glob("**/*.onnx")
    return sum(file.stat().st_size for file in files)
