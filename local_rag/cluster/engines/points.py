"""The points of the rows of documents: what a search engine keeps of each, and the passage that comes of it.

A chunk has one of two ids, so that a new version of it can be written beside the one that readers see. Filters become
conditions that the engine itself checks. One with wildcards, or with a name that is also above a root, has no such
conditions; documents are then looked at one by one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from local_rag.asking import Filters
from local_rag.cluster.engines.sparse_vectors import chunk_vectors
from local_rag.document_records import UNKNOWN, Chunk, Provenance
from local_rag.index.protocol import DocumentRows
from local_rag.index.vector_index import blend_neighbours
from local_rag.keys import key_of
from local_rag.passage_records import DocumentFacts, StoredChunk
from local_rag.retrieval.filters import with_outer
from local_rag.text.tokens import document_tokens

_DIGITS = 8  # of a number in a vector: more than a float of 32 bits holds


def chunk_of(point: int) -> int:
    """Return the chunk that a point belongs to."""
    return int(point) >> 1


def points_of(chunks: Iterable[int]) -> list[int]:
    """Return the ids that the points of chunks, or of documents, may have."""
    return [2 * int(chunk) + slot for chunk in chunks for slot in (0, 1)]


def row_points(
    document: DocumentRows, stored: Mapping[int, StoredChunk], facts: DocumentFacts, models: Any
) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
    """Yield the chunk id, the vectors and the payload of each row of a document."""
    parts = [number for number, part in enumerate(document.parts) for _ in document.chunk_ids[part]]
    vectors = blend_neighbours(document.vectors, parts)
    tokens, said = document_tokens(document.texts), facts_payload(facts)
    words = [word for part in document.parts for word in chunk_vectors(tokens[part])]
    for row, (chunk, vector, word) in enumerate(zip(document.chunk_ids, vectors, words, strict=True)):
        named: dict[str, Any] = {"dense": np.round(vector.astype(float), _DIGITS).tolist()}
        if word.values:
            values = np.round(np.fromiter(word.values.values(), dtype=float), _DIGITS).tolist()
            named["words"] = models.SparseVector(indices=list(word.values), values=values)
        payload = {"document": document.document_id, "row": row, "is_first": word.is_first, **said}
        yield int(chunk), named, {**payload, **_passage_payload(stored[chunk])}


def document_payload(facts: DocumentFacts, version: int) -> dict[str, Any]:
    """Return what the facts of a document are, with the version of its rows."""
    return {
        "kind": "document",
        "id": facts.id,
        "version": int(version),
        "key": facts_key(facts),
        "path": facts.path,
        "modified_ns": facts.modified_ns,
        "date": facts.date,
        "tags": list(facts.tags),
    }


def facts_key(facts: DocumentFacts) -> int:
    """Return a key of what filters look at and passages show of a document's facts."""
    said = facts_payload(facts)
    return int(key_of(facts.path, said["day"], list(facts.tags))[:15], 16)


def _passage_payload(stored: StoredChunk) -> dict[str, Any]:
    chunk, origin = stored.chunk, stored.provenance
    place = chunk.page, chunk.line, chunk.end_line, chunk.table_header, chunk.ocr, chunk.page_label
    return {
        **{name: getattr(stored, name) for name in ("path", "title", "terms", "sentence", "kind", "sha256")},
        "chunk": [chunk.position, chunk.start, chunk.end, chunk.text, list(chunk.headings), *place],
        "provenance": [origin.url, origin.date, origin.author, list(origin.tags)] if origin else None,
    }


def passage_of(identifier: int, payload: Mapping[str, Any]) -> StoredChunk:
    """Return the passage that a payload holds."""
    position, start, end, text, headings, *place = payload["chunk"]
    chunk, origin = Chunk(position, start, end, text, tuple(headings), *place), UNKNOWN
    if payload["provenance"]:
        url, day, author, tags = payload["provenance"]
        origin = Provenance(url, day, author, tuple(tags))
    document, path, title, terms, sentence, kind, sha256 = (
        payload[name] for name in ("document", "path", "title", "terms", "sentence", "kind", "sha256")
    )
    return StoredChunk(identifier, document, path, title, chunk, terms, sentence, origin, kind, sha256)


INDEXED = {"day": "integer", "tags": "keyword", "types": "keyword", "places": "keyword", "names": "keyword"}
_SPECIAL = set("*?[]\\!#")
_PLACE = re.compile(r":\d|\bpage \d")


def facts_payload(facts: DocumentFacts) -> dict[str, Any]:
    """Return what conditions look at.

    `places` holds the path, and every folder above it with a slash at its end; `names` their names; `types` what
    follows each dot of the file's name.
    """
    path = PurePosixPath(facts.path)
    day = facts.date or date.fromtimestamp(facts.modified_ns / 1e9).isoformat()
    parts = path.name.lower().split(".")
    return {
        "day": int(day.replace("-", "")),
        "tags": sorted(set(with_outer(facts.tags))),
        "types": [".".join(parts[first:]) for first in range(1, len(parts))],
        "places": [facts.path, *(f"{str(folder).rstrip('/')}/" for folder in path.parents)],
        "names": sorted(set(path.parts[1:])),
    }


def conditions_of(filters: Filters, roots: Sequence[Path], models: Any) -> list[Any] | None:
    """Return conditions that exactly the documents fulfil that pass the filters, None if there are none."""
    found = [models.FieldCondition(key="tags", match=_one_of([tag.casefold()], models)) for tag in filters.tags]
    if filters.types:
        types = [kind.lower().removeprefix(".") for kind in filters.types]
        if not all(types) or any("/" in kind for kind in types):
            return None
        found.append(models.FieldCondition(key="types", match=_one_of(types, models)))
    if filters.since or filters.before:
        limits = {"gte": _number(filters.since), "lt": _number(filters.before)}
        found.append(models.FieldCondition(key="day", range=models.Range(**limits)))
    if filters.within:
        wanted: dict[str, list[str]] = {"places": [], "names": []}
        for pattern in filters.within:
            if (said := _within(pattern, roots)) is None:
                return None
            for key, values in said.items():
                wanted[key] += values
        either = [models.FieldCondition(key=key, match=_one_of(said, models)) for key, said in wanted.items() if said]
        found.append(models.Filter(should=either))
    return found


def _within(pattern: str, roots: Sequence[Path]) -> Mapping[str, list[str]] | None:
    """Return the places or names one of which a document has that a pattern names, None if that cannot be said."""
    below = pattern.endswith("/**")
    path = pattern.removesuffix("/**").removeprefix("./")
    parts = path.removeprefix("/").split("/")
    if _SPECIAL & set(path) or path != path.strip() or not all(parts) or {".", ".."} & set(parts):
        return None
    if not path.isascii() or _PLACE.search(path) or any(parts[0] == root.name for root in roots):
        return None  # names in other forms of letters, and paths as results show them
    if path.startswith("/"):
        places = [path]
    elif below or len(parts) > 1:
        places = [f"{str(root).rstrip('/')}/{path}" for root in roots]
    elif any(path in root.parts for root in roots):
        return None
    else:
        return {"names": [path]}
    return {"places": [one for place in places for one in ((f"{place}/",) if below else (place, f"{place}/"))]}


def _one_of(values: Sequence[str], models: Any) -> Any:
    return models.MatchAny(any=list(values))


def _number(day: date | None) -> int | None:
    return int(day.strftime("%Y%m%d")) if day else None
