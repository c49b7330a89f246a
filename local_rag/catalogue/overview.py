"""What a library holds at a glance: how many documents, in which folders, of which kinds and years, and the newest.

Questions that it may answer are drafted from titles and headings; whether it does is for others to check.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from local_rag.display import Name, one_line
from local_rag.document_records import Chunk
from local_rag.passage_records import DocumentFacts
from local_rag.store.database import Store
from local_rag.text.languages import language_of

_NEWEST, _MOST_FOLDERS, _MOST_KINDS, _LONGEST_SUFFIX = 4, 8, 20, 6


@dataclass(frozen=True, slots=True)
class Overview:
    """The number of documents and of files that could not be read, and the documents by folder, suffix and year.

    The largest folders come first, `others` is the number of documents outside them, and years begin with the latest.
    """

    documents: int
    unread: int
    folders: tuple[tuple[str, int], ...]
    others: int
    newest: tuple[Mapping[str, Any], ...]
    types: tuple[tuple[str, int], ...]
    years: tuple[tuple[int, int], ...]


def overview(facts: Sequence[DocumentFacts], ids: Mapping[str, int], name: Name, *, unread: int) -> Overview:
    """Return what documents are at a glance; `ids` are those that are told, by path, and `name` names a place."""
    known = [one for one in facts if one.path in ids]
    latest = sorted(known, key=lambda one: (_day_of(one), one.path), reverse=True)[:_NEWEST]
    folders = _folders([name(one.path) for one in known])
    suffixes = Counter(PurePosixPath(one.path).suffix.lower().removeprefix(".") for one in known)
    years = Counter(int(_day_of(one)[:4]) for one in known)
    return Overview(
        documents=len(known),
        unread=unread,
        folders=tuple(folders[:_MOST_FOLDERS]),
        others=len(known) - sum(count for _, count in folders[:_MOST_FOLDERS]),
        newest=tuple({"id": ids[one.path], "path": name(one.path), "day": _day_of(one)} for one in latest),
        types=tuple(
            (suffix, count)
            for suffix, count in suffixes.most_common(_MOST_KINDS)
            if suffix.isalnum() and len(suffix) <= _LONGEST_SUFFIX
        ),
        years=tuple(sorted(years.items(), reverse=True)[:_MOST_KINDS]),
    )


def _day_of(facts: DocumentFacts) -> str:
    try:
        return date.fromisoformat(facts.date[:10]).isoformat() if facts.date else _day_of_file(facts)
    except ValueError:
        return _day_of_file(facts)


def _day_of_file(facts: DocumentFacts) -> str:
    try:
        return date.fromtimestamp(facts.modified_ns // 10**9).isoformat()
    except (OverflowError, OSError, ValueError):
        return date.min.isoformat()


def _folders(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return the folders in which documents part, with their numbers, the largest first."""
    parts = [name.strip("/").split("/")[:-1] for name in names]
    depth = 0
    while parts and all(len(one) > depth for one in parts) and len({one[depth] for one in parts}) == 1:
        depth += 1
    counts = Counter("/".join(one[: depth + 1]) for one in parts if len(one) > depth)
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))


_MOST_DOCUMENTS, _LOOKED_AT = 24, 40  # documents, and chunks of each
_WORDS, _LONGEST = range(1, 9), 80  # of a heading or title
# What is asked about a heading of a document, by language.
_ASKED: Mapping[str, str] = {
    "english": "What does \u201c{title}\u201d say about {heading}?",
    "german": "Was sagt \u201e{title}\u201c zum Thema {heading}?",
    "french": "Que dit \u00ab {title} \u00bb au sujet de {heading} ?",
    "spanish": "¿Qué dice \u00ab{title}\u00bb sobre {heading}?",
    "italian": "Che cosa dice \u00ab{title}\u00bb su {heading}?",
}
_HOW = "how to "
_NUMBER = re.compile(r"\A(?:\d{1,3}(?:\.\d{1,3}){0,3}[.)]?|[A-Z][.)]|\([a-z]\)|\u00a7\s?\d{1,3})\s+")  # of a section
_LETTERS = 0.8  # of a heading that is words, and not a number or a path


def draft_questions(store: Store, *, most: int) -> list[str]:
    """Return questions about different documents, from all over the library; the same ones until it changes."""
    documents = store.documents()
    step, drafts = max(1, len(documents) // _MOST_DOCUMENTS), list[str]()
    for document in documents[::step]:
        chunks = list(islice(store.chunks(document.id), _LOOKED_AT))
        language = language_of(" ".join(one.chunk.text for one in chunks))
        headings = [one_line(heading) for one in chunks for heading in _headings(one.chunk)]
        draft = draft_question(one_line(document.title), headings, language)
        if draft and draft not in drafts:
            drafts.append(draft)
            if len(drafts) == most:
                break
    return drafts


def _headings(chunk: Chunk) -> list[str]:
    """Return the heading above a chunk, and those within it where they are marked."""
    within = [line.strip("# ") for line in chunk.text.splitlines() if line.startswith("#")]
    return [*chunk.headings[-1:], *within]


def draft_question(title: str, headings: Sequence[str], language: str) -> str:
    """Return a question about a document: a heading that is one, else about one of its headings; empty if none will do.

    Titles that are no words, such as names of files, and headings that are a sentence or a number are none.
    """
    fit = [_NUMBER.sub("", heading).strip(" .:") for heading in headings]
    fit = [heading for heading in fit if _is_subject(heading) and heading.casefold() != title.casefold()]
    for heading in fit:
        if heading.endswith("?"):
            return heading
        if heading.lower().startswith(_HOW):
            return f"How do I {heading[len(_HOW) :]}?"
    if not fit or not _is_subject(title) or language not in _ASKED:
        return ""
    heading = fit[len(fit) // 2]
    return _ASKED[language].format(title=title, heading=_in_sentence(heading, language))


def _is_subject(text: str) -> bool:
    words = text.split()
    letters = sum(sign.isalpha() or sign.isspace() for sign in text)
    return len(words) in _WORDS and len(text) <= _LONGEST and letters >= _LETTERS * len(text)


def _in_sentence(heading: str, language: str) -> str:
    """Return a heading as it is written within a sentence: its first word keeps its capital if another one has one."""
    first, *rest = heading.split()
    named = any(word[:1].isupper() for word in rest) or not first[1:].islower() or language == "german"
    return heading if named else f"{first[0].lower()}{heading[1:]}"
