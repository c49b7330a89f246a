"""What is in a library, document by document: state, dates, size, and what each is about."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Literal

from local_rag.asking.filters import document_filter
from local_rag.indexing.changes import size_and_time
from local_rag.indexing.roots import Roots
from local_rag.records import Filters
from local_rag.store.database import Store, StoredDocument
from local_rag.store.index import Indexes
from local_rag.store.selection import beginning_of, document_facts

# `waiting`: read, and not in the live index yet; `changed`: the file is another one than the one that was read.
State = Literal["indexed", "waiting", "changed", "missing", "unreachable"]

_SENTENCES, _LONGEST = 2, 240
_MOST_PARTS, _LONGEST_PARTS = 6, 160
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[^\sa-z])")
_NO_PROSE = re.compile(r"\s*(?:#{1,6}\s|[=\-*_]{3,}\s*$|\||```|~~~|!\[|<)")
_MARKS = re.compile(r"^\s*(?:[-*+>]\s+|\d+[.)]\s+)|\*\*|__|`")


@dataclass(frozen=True, slots=True)
class ListedDocument:
    """A document; `modified` is the time of its file as it was read, `date` its own date, None where it has none."""

    path: str
    title: str
    about: str
    state: State
    size: int
    modified: str
    date: str | None
    url: str | None
    author: str | None
    tags: tuple[str, ...] | None
    chunks: int


def list_documents(store: Store, indexes: Indexes, filters: Filters) -> list[ListedDocument]:
    """Return the live documents that pass the filters, by path."""
    known = {document.path: document for document in store.documents()}
    passes, live = document_filter(filters, store.roots()), indexes.live()
    chosen = {facts.id for facts in document_facts(store) if passes(facts)}
    states = _states(known, Roots(store, store.roots(), known))
    indexed = set(live.chunk_ids()) if live else set()
    listed = []
    for document in known.values():
        if document.id not in chosen:
            continue
        chunks = list(store.chunks(document.id))
        said = chunks[0].provenance if chunks else None
        state = states.get(document.path) or ("indexed" if {one.id for one in chunks} <= indexed else "waiting")
        parts = (heading for one in chunks for heading in one.chunk.headings[:2])
        listed.append(
            ListedDocument(
                path=document.path,
                title=document.title,
                about=describe(document.title, beginning_of(store, document.id), parts),
                state=state,
                size=document.size,
                modified=datetime.fromtimestamp(document.modified_ns // 10**9).isoformat(sep=" "),
                date=(said and said.date) or None,
                url=(said and said.url) or None,
                author=(said and said.author) or None,
                tags=(said and said.tags) or None,
                chunks=len(chunks),
            )
        )
    return listed


def _states(documents: Mapping[str, StoredDocument], roots: Roots) -> dict[str, State]:
    """Say which files are not as they were read; of the others nothing is said."""
    states: dict[str, State] = {}
    for path, document in documents.items():
        if roots.is_out_of_reach(document):
            states[path] = "unreachable"
        elif not Path(path).is_file():
            states[path] = "missing"
        elif size_and_time(Path(path)) != (document.size, document.modified_ns):
            states[path] = "changed"
    return states


def describe(title: str, beginning: str, headings: Iterable[str]) -> str:
    """Say what a document is about in its own words: its first sentences, and its parts where it has several."""
    sentences = islice(_sentences(beginning), _SENTENCES)
    about = _cut(" ".join(sentences), _LONGEST)
    parts = [heading for heading in dict.fromkeys(headings) if heading != title]
    if len(parts) > 1:
        outline = _cut("; ".join(parts[:_MOST_PARTS]), _LONGEST_PARTS)
        about = f"{about} Parts: {outline}{'; ...' if len(parts) > _MOST_PARTS else ''}".strip()
    return about


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences of the prose in a text, without headings, tables, code fences and marks of Markdown."""
    for paragraph in re.split(r"\n\s*\n", text):
        lines = [_MARKS.sub("", line) for line in paragraph.splitlines() if not _NO_PROSE.match(line)]
        prose = " ".join(" ".join(lines).split())
        yield from filter(None, _SENTENCE_END.split(prose))


def _cut(text: str, length: int) -> str:
    """Cut a text between words."""
    return text if len(text) <= length else f"{text[: length - 1].rpartition(' ')[0] or text[: length - 1]}…"
