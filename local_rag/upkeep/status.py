"""Say what a library holds, what shaped it, and what is stale and why."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_rag.errors import LibraryError
from local_rag.indexing.contextualize import context_plan
from local_rag.indexing.fingerprint import differences, make_fingerprint
from local_rag.models.registry import file_sha256
from local_rag.reading.walk import walk
from local_rag.records import InstalledModel
from local_rag.settings import Settings
from local_rag.store.database import STORE_FILE, Store
from local_rag.store.generation import current_generation, live_name
from local_rag.store.maintenance import count_context_kinds, count_rows
from local_rag.upkeep.clean import folder_bytes


@dataclass(frozen=True, slots=True)
class Stale:
    """A reason why the index is not what it should be, with the command that mends it and examples."""

    reason: str
    command: str
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """A library at a glance.

    `contexts` counts those of the chunks by kind (llm, repaired, headings), and as `missing` those still to be written.
    `generations` maps each published index to its size in bytes. `models` are names by role, `fingerprint` is that of
    the live index, `disk` holds sizes in bytes.
    """

    library: str
    roots: tuple[str, ...]
    documents: int
    chunks: int
    contexts: Mapping[str, int]
    vectors: int
    cached: Mapping[str, int]
    models: Mapping[str, str]
    fingerprint: Mapping[str, Any]
    generations: Mapping[str, int]
    live_generation: str
    disk: Mapping[str, int]
    stale: tuple[Stale, ...]


def collect_status(
    library: Path,
    store: Store,
    settings: Settings,
    models: Mapping[str, str],
    embed_model: InstalledModel | None,
    context_model: InstalledModel | None,
) -> Status:
    """Look at the store, the live generation, the models and the files on disk; nothing is changed."""
    rows, stale = count_rows(store), list[Stale]()
    contexts = count_context_kinds(store)
    missing = store.count_missing_contexts(context_plan(context_model.identity)) if context_model else 0
    for role, model in (("embed", embed_model), ("context", context_model)):
        if model is None and (role == "embed" or settings.context == "llm"):
            stale.append(Stale(f"the model {models[role]} is not usable", f"local-rag models pull {models[role]}"))
    fingerprint: Mapping[str, Any] = {}
    try:
        generation = current_generation(library)
        damage = generation.damage() if generation else []
    except LibraryError as error:
        generation, damage = None, [str(error)]
    if damage:
        stale.append(Stale("the index is damaged", "local-rag repair", tuple(damage)))
    elif generation is None:
        stale.append(Stale("no index is published", "local-rag index"))
    if generation:
        fingerprint = generation.manifest["fingerprint"]
        if embed_model:
            wanted = make_fingerprint(settings, embed_model, context_model)
            stale += [Stale(f"changed: {change}", "local-rag index") for change in differences(fingerprint, wanted)]
    stale += _changed_files(library, store)
    if missing:
        stale.append(Stale(f"{missing} contexts are still to be written", "local-rag index"))
    return Status(
        library=str(library),
        roots=tuple(map(str, store.roots())),
        documents=rows["documents"],
        chunks=rows["chunks"],
        contexts={**contexts, "missing": missing},
        vectors=rows["chunks_with_vectors"],
        cached={name: rows[name] for name in ("cached_contexts", "cached_vectors", "superseded_documents")},
        models={role: name for role, name in models.items() if name},
        fingerprint=fingerprint,
        generations={path.name: folder_bytes(path) for path in sorted((library / "generations").glob("*"))},
        live_generation=live_name(library),
        disk={
            "store": sum(folder_bytes(path) for path in library.glob(f"{STORE_FILE}*")),
            "generations": folder_bytes(library / "generations") if (library / "generations").is_dir() else 0,
            "library": folder_bytes(library),
        },
        stale=tuple(stale),
    )


def _changed_files(library: Path, store: Store) -> list[Stale]:
    """Compare the files below the roots with what was read; a file is hashed only where its time has changed."""
    roots = store.roots()
    files = walk([root for root in roots if root.exists()], exclude=[library, *store.excluded()])
    present = {str(path): path for path in files if isinstance(path, Path)}
    known = {document.path: document for document in store.documents()}
    skipped = store.skipped()
    new, changed = [], []
    for name, path in present.items():
        try:
            status = path.stat()
            looks = (status.st_size, status.st_mtime_ns)
            if name not in known:
                if skipped.get(name) != looks:
                    new.append(name)
            elif looks != (known[name].size, known[name].modified_ns) and file_sha256(path) != known[name].sha256:
                changed.append(name)
        except OSError:  # vanished, or made unreadable: `index` will say so
            changed.append(name)
    removed = [name for name in known if name not in present and any(Path(name).is_relative_to(root) for root in roots)]
    return [
        Stale(f"{len(names)} {'file is' if len(names) == 1 else 'files are'} {what}", "local-rag index", tuple(names))
        for what, names in (("new", new), ("changed", changed), ("gone", removed))
        if names
    ]
