"""Report what a library holds, how it was built, and what is stale and why."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local_rag.answering.probability import valid
from local_rag.document_records import Note
from local_rag.errors import DamagedLibraryError, ModelError
from local_rag.files import LOCAL_DISK, Disk, folder_bytes, is_locked
from local_rag.index.generations import SEGMENTS
from local_rag.index.protocol import Indexes
from local_rag.indexing.changes import Comparison, ScannedFile, compare_folders
from local_rag.indexing.compare import APART_PLAN
from local_rag.indexing.fingerprint import differences, make_fingerprint
from local_rag.indexing.sentence_writer import SENTENCE_SECONDS, plan_of
from local_rag.model_records import PLAIN_FORM, InstalledModel, Role
from local_rag.models.choice import calibration_of, chosen, find
from local_rag.passage_records import ContextMode
from local_rag.reading.formats import is_expected
from local_rag.settings import Settings
from local_rag.store.connect import remembered_settings
from local_rag.store.context_rows import count_unwritten
from local_rag.store.counts import count_contexts, count_missing_contexts, count_rows
from local_rag.store.database import Store, UnreadFile
from local_rag.store.erasing import erasing, ordered_erasures
from local_rag.store.history_file import Usage, usage_of
from local_rag.store.published import FOREIGN, made_from
from local_rag.store.schema import STORE_FILE

_NO_USE = Usage()
GAIN = "contexts_gain"  # the name under which a library remembers the result of the last `eval contexts`


@dataclass(frozen=True, slots=True)
class Stale:
    """A reason why the index is out of date, and the command that fixes it; examples are files or remarks."""

    reason: str
    command: str
    examples: tuple[Path | str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file or folder that could not be read or looked at, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A library at a glance; of a part of one, only its documents are known.

    `contexts` counts the chunks of which code says what distinguishes their document (`by_terms`), those about which a
    model wrote a sentence (`by_model`), sentences that were `dropped`, and those still `unwritten`, which make nothing
    stale; `missing` contexts do. `writing_seconds` is how long the unwritten ones will take at the pace of the last
    writing, None before any.
    `generations` maps each published index to its size in bytes. `models` are names by role, `fingerprint` is that of
    the live index, `disk` holds sizes in bytes. An answer is given if it is right with a probability of `answered_from`
    or more, None without a calibration. `contexts_gain` is what `eval contexts` has found last, empty before.
    `unreachable` are roots that held documents and cannot be reached. What is `unreadable` keeps its last good version,
    if it has one; `notes` say what of a document could not be read. `marks` is what marks of answers come to. `writing`
    is True while a command, such as `index`, changes the library: what is stale may be mended already.
    """

    library: str
    roots: tuple[str, ...]
    documents: int
    chunks: int
    contexts: Mapping[str, int]
    writing_seconds: float | None = None
    vectors: int
    cached: Mapping[str, int] = field(default_factory=dict)
    models: Mapping[Role, str]
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    generations: Mapping[str, int] = field(default_factory=dict)
    live_generation: str = ""
    answered_from: float | None = None
    contexts_gain: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = _NO_USE
    disk: Mapping[str, int] = field(default_factory=dict)
    unreachable: tuple[str, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    notes: tuple[Note, ...] = ()
    stale: tuple[Stale, ...] = ()
    marks: Mapping[str, Any] = field(default_factory=dict)
    writing: bool = False


def collect_status(store: Store, indexes: Indexes, settings: Settings, disk: Disk = LOCAL_DISK) -> Status:
    """Inspect the store, the live index, the models and the files on disk; nothing is changed."""
    names, rows = chosen(settings), count_rows(store)
    stale = list[Stale]()
    mode, embed_model = settings.context, _usable(settings, "embed")
    if embed_model is None:
        name = names.get("embed", "")
        stale.append(Stale(f"the model {name} is not usable", f"local-rag models pull {name}"))
    context_model = _usable(settings, "context") if mode == "auto" else None
    missing = count_missing_contexts(store, APART_PLAN) if mode == "auto" else 0
    unwritten = count_unwritten(store, plan_of(context_model)) if context_model else 0
    pace = store.remembered(SENTENCE_SECONDS)
    fingerprint: Mapping[str, Any] = {}
    try:
        live = indexes.live()
        damage = live.damage(hash_all=False) if live else []
    except DamagedLibraryError as error:
        live, damage = None, [str(error)]
    if damage:
        stale.append(Stale("the index is damaged", "local-rag repair", tuple(damage)))
    elif live is None:
        stale.append(Stale("no index is published", "local-rag index"))
    elif not made_from(store, live):
        stale.append(Stale(FOREIGN, "local-rag index"))
    if live:
        fingerprint = live.manifest["fingerprint"]
        if embed_model:
            now = make_fingerprint(settings, embed_model, context_model)
            stale += [Stale(f"changed: {change}", "local-rag index") for change in differences(fingerprint, now)]
    found, unread = compare_folders(store, store.roots(), split_key=None, disk=disk), store.unread()
    stale += _changed_files(found, unread)
    stale += [
        Stale(
            f"{root} is not reachable: its documents are kept until it is back or removed",
            f"local-rag remove {shlex.quote(str(root))}",
        )
        for root in sorted(found.roots.unreachable)
    ]
    if erasing(store) or ordered_erasures(store):
        stale.append(Stale("some documents are not fully erased yet", "local-rag index"))
    if missing:
        stale.append(Stale(f"{missing} contexts have yet to be written", "local-rag index"))
    answer_model, folder = _usable(settings, "answer"), store.folder
    reranker = _usable(settings, "rerank")
    calibration = calibration_of(answer_model, remembered_settings(folder)) if answer_model else None
    form = answer_model.form if answer_model else PLAIN_FORM
    calibration = valid(calibration, reranker.identity if reranker else "", form)
    return Status(
        library=str(folder),
        roots=tuple(map(str, store.roots())),
        documents=rows["documents"],
        chunks=rows["chunks"],
        contexts=_contexts(count_contexts(store), mode) | {"unwritten": unwritten, "missing": missing},
        writing_seconds=unwritten * pace if pace is not None else None,
        vectors=rows["chunks_with_vectors"],
        cached={name: rows[name] for name in ("cached_contexts", "cached_vectors", "superseded_documents")},
        models=names,
        fingerprint=fingerprint,
        generations=indexes.sizes(),
        live_generation=indexes.live_name(),
        answered_from=calibration.answer_from if calibration else None,
        contexts_gain=remembered_settings(folder).get(GAIN, {}),
        usage=usage_of(folder),
        disk={
            "store": sum(folder_bytes(path) for path in folder.glob(f"{STORE_FILE}*")),
            "generations": sum(folder_bytes(folder / name) for name in ("generations", SEGMENTS)),
            "library": folder_bytes(folder),
        },
        unreachable=tuple(map(str, sorted(found.roots.unreachable))),
        unreadable=_unreadable(found, unread),
        notes=tuple(store.notes()),
        stale=tuple(stale),
        writing=is_locked(folder / "lock"),
    )


def status_of_part(store: Store, settings: Settings) -> Status:
    """Return what a person with limits may know of a library: its documents, counted, and nothing of files or disks."""
    rows = count_rows(store)
    return Status(
        library=store.folder.name,
        roots=tuple(map(str, store.roots())),
        documents=rows["documents"],
        chunks=rows["chunks"],
        contexts=_contexts(count_contexts(store), settings.context) | {"unwritten": 0, "missing": 0},
        vectors=rows["chunks_with_vectors"],
        models=chosen(settings),
    )


def _contexts(kinds: Mapping[str, int], mode: ContextMode) -> dict[str, int]:
    """Return how many contexts an index of this mode uses, by who says them."""
    said = {"by_terms": "terms", "by_model": "model", "dropped": "dropped"}
    return {name: kinds.get(kind, 0) if mode == "auto" else 0 for name, kind in said.items()}


def _usable(settings: Settings, role: Role) -> InstalledModel | None:
    try:
        return find(settings, role)
    except ModelError:
        return None


def _changed_files(found: Comparison, unread: Mapping[str, UnreadFile]) -> list[Stale]:
    """Report which files have changed since they were read, except files already known to be unreadable."""
    changes = found.changes
    new = [Path(one.path) for one in (*changes.new, *changes.moved) if not _is_known(one, unread)]
    found_paths = {
        "new": sorted(new),
        "changed": [Path(one.path) for one in changes.changed if not _is_known(one, unread)],
        "gone": [Path(stored.path) for stored in changes.gone],
    }
    return [
        Stale(f"{len(paths)} {'file is' if len(paths) == 1 else 'files are'} {what}", "local-rag index", tuple(paths))
        for what, paths in found_paths.items()
        if paths
    ]


def _is_known(one: ScannedFile, unread: Mapping[str, UnreadFile]) -> bool:
    """Say whether a file could not be read, and has not been written since."""
    before = unread.get(one.path)
    return before is not None and before.stamp[:2] == one.stamp[:2]


def _unreadable(found: Comparison, unread: Mapping[str, UnreadFile]) -> tuple[Unreadable, ...]:
    """Return what `index` lists as not read: what it could not read and is still there, and what it passes over now."""
    held = {one.path for one in (*found.changes.changed, *found.changes.resplit)}
    unread = {path: one for path, one in unread.items() if path in held or not is_expected(one.reason)}
    reasons = {str(item.path): item.reason for item in found.skipped if item.kept or not is_expected(item.reason)}
    there = {one.path for one in found.changes.to_read if _is_known(one, unread)}
    for path, one in unread.items():
        if path in there or not found.is_looked_at(path):
            reasons.setdefault(path, one.reason)
    return tuple(Unreadable(Path(path), reason) for path, reason in sorted(reasons.items()))
