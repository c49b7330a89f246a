"""Draft questions that documents may answer, from their titles and headings; whether they do is for others to check."""

import re
from collections.abc import Mapping, Sequence
from itertools import islice

from local_rag.display import one_line
from local_rag.records import Chunk
from local_rag.store.database import Store
from local_rag.text.languages import language_of

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
