"""Let a model write one sentence for each chunk that can be confused with another or cannot stand alone.

The request names what only this document has, and no other document: not everybody who sees the sentence may see that
one. A small model sums up a whole document whatever it is asked, so it sees little: examples, what is said of the
document, and the chunk. The examples are the same for all documents and the rest of the prefix for all chunks of one,
so both are evaluated once. Code checks each sentence before it is stored.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from local_rag.index.keyword_index import keyword_tokens
from local_rag.indexing.contextualize import ContextJob, Window, quotable, shorten
from local_rag.indexing.distinction import DANGLING, Distinction
from local_rag.keys import key_of
from local_rag.llama.generator import Vocabulary
from local_rag.records import Chunk, heading_path
from local_rag.verification.facts import missing_facts
from local_rag.verification.sources import Source

TOGETHER = 16  # chunks of a document that are written together, those in the greatest need first
_UNAIDED = 0.5  # the need of a chunk that cannot stand alone: less than that of one that can be confused
_MAX_TOKENS = 40  # 15 to 25 words
_HEAD_TOKENS, _PASSAGE_TOKENS = 256, 256
_BEFORE_CHARACTERS = 160  # of the text before a chunk that cannot stand alone
_TERMS = 6  # of a document that the request names
_FEWEST_WORDS = 5
# In a row: so many words are copied from the chunk, or borrowed from an example, not written.
_COPIED_WORDS, _BORROWED_WORDS = 10, 5

_INSTRUCTION = (
    "You help people find passages. For the chunk of a document you write the one question of 15 to 25 words that a "
    "reader would ask to find it, in everyday words, naming what tells this document from similar ones."
)
_EXAMPLES = (
    (
        "Title: Lease of 4 Mill Lane\nOnly here: 4 Mill Lane, Anna Berg, 2019",
        "It is three months' rent and is paid before the keys are handed over. The landlord returns it within thirty "
        "days of the end of the lease, less the cost of repairs.",
        "What deposit does a tenant of 4 Mill Lane pay under the lease of 2019, and how soon is the money given back?",
    ),
    (
        "Title: X200 printer, user guide\nOnly here: X200, touch panel",
        "| P03 | no paper | fill the tray |\n| P07 | cover open | close it |",
        "Which error codes does the X200 show on its touch panel, and what must I do when one of them appears?",
    ),
)
_CUE = "Question:"
_SYSTEM = "\n\n".join(
    [
        _INSTRUCTION,
        *(
            f"<document>\n{head}\n<chunk>\n{passage}\n</chunk>\n</document>\n\n{_CUE} {question}"
            for head, passage, question in _EXAMPLES
        ),
    ]
)
_LIST_ITEM = re.compile(r"(?:[-*+\u2022]|\d+[.)]|\|)\s*")
# What a sentence depends on apart from its model, its document and its chunk. The number stands for the code below.
SENTENCES = key_of("sentence", 2, _SYSTEM, _CUE, _MAX_TOKENS, _TERMS)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a sentence is checked against: its document's title and text, and its chunk."""

    document_id: int
    title: str
    headings: tuple[str, ...]
    passage: str


def sentence_plan(model_identity: str) -> str:
    """Name everything that decides which sentences the chunks of a document get, apart from the document."""
    return json.dumps([model_identity, SENTENCES])


def needs(texts: Mapping[int, str], distinction: Distinction) -> dict[int, float]:
    """Return the positions of the chunks that need a sentence, each with how much; `texts` may have to stand alone."""
    unaided = (position for position, text in texts.items() if not stands_alone(text))
    return dict.fromkeys(unaided, _UNAIDED) | dict(distinction.needed)


def stands_alone(text: str) -> bool:
    """Say whether a chunk neither begins with a reference to what precedes it nor is a bare table or list."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return not DANGLING.match(text) and not all(map(_LIST_ITEM.match, lines))


def sentence_jobs(
    title: str,
    chunks: Sequence[Chunk],
    wanted: Mapping[int, float],
    distinction: Distinction,
    *,
    vocabulary: Vocabulary,
    plan: str,
) -> list[tuple[int, ContextJob]]:
    """Return the jobs for the chunks at the wanted positions, those in the greatest need first, with the positions."""

    def tokens(text: str) -> int:
        return len(vocabulary.tokenize(text))

    lines = [
        f"Title: {title}",
        f"Only here: {', '.join(distinction.terms[:_TERMS])}" if distinction.terms else "",
        f"Beginning: {distinction.opening}" if distinction.opening else "",
    ]
    head = shorten(quotable("\n".join(filter(None, lines))), _HEAD_TOKENS, tokens)
    order = sorted(wanted, key=lambda position: (-wanted[position], position))
    by_position = {chunk.position: number for number, chunk in enumerate(chunks)}
    jobs = []
    for number, position in enumerate(order):
        if number % TOGETHER == 0:
            window = Window(head, (), 0, len(chunks), _SYSTEM)
        passage = shorten(quotable(_passage(chunks, by_position[position])), _PASSAGE_TOKENS, tokens)
        key = key_of(plan, head, passage)
        job = ContextJob(key, window, 0, passage=passage, instruction="", cue=_CUE, opening="", max_tokens=_MAX_TOKENS)
        jobs.append((position, job))
    return jobs


def _passage(chunks: Sequence[Chunk], number: int) -> str:
    """Return a chunk as the model is shown it: below its headings, if needed after the end of the text before it."""
    chunk = chunks[number]
    above = "" if chunk.text.startswith("#") else heading_path("", chunk.headings)
    before = ""
    if number and not stands_alone(chunk.text):
        end = " ".join(chunks[number - 1].text.split())[-_BEFORE_CHARACTERS:]
        before = f"... {end.partition(' ')[2]}"
    return "\n".join(part for part in (above, before, chunk.full_text.strip()) if part)


def most_needed_first(
    documents: Iterable[tuple[int, float]], jobs_of: Callable[[int], Sequence[tuple[float, ContextJob]]]
) -> Iterator[ContextJob]:
    """Yield the jobs of documents in groups of chunks that share a window, the group in the greatest need first.

    `documents` are the numbers of documents with their greatest need, highest first; `jobs_of` plans one of them.
    """
    waiting = iter(documents)
    following = next(waiting, None)
    groups = list[tuple[float, list[ContextJob]]]()
    while groups or following:
        while following and (not groups or following[1] > groups[0][0]):
            grouped: dict[int, tuple[float, list[ContextJob]]] = {}
            for need, job in jobs_of(following[0]):
                grouped.setdefault(id(job.window), (need, []))[1].append(job)
            groups = sorted([*groups, *grouped.values()], key=lambda group: -group[0])
            following = next(waiting, None)
        if groups:
            yield from groups.pop(0)[1]


def usable_sentence(sentence: str, subject: Subject, document: Source) -> bool:
    """Say whether every number and name of a sentence is in the document, and it repeats neither chunk nor title."""
    words = _words(sentence)
    if len(words) < _FEWEST_WORDS or missing_facts("", sentence, [document, Source(subject.title)]):
        return False
    if _runs(words, _COPIED_WORDS) & _runs(_words(subject.passage), _COPIED_WORDS):
        return False
    if any(_runs(words, _BORROWED_WORDS) & _runs(_words(question), _BORROWED_WORDS) for _, _, question in _EXAMPLES):
        return False
    said = set(keyword_tokens(heading_path(subject.title, subject.headings)))
    return bool(set(keyword_tokens(sentence)) - said)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _runs(words: Sequence[str], length: int) -> set[tuple[str, ...]]:
    return set(zip(*(words[start:] for start in range(length)), strict=False))


class Checker:
    """Check sentences against documents whose texts are read when needed; the facts of a few are kept."""

    def __init__(self, document_text: Callable[[int], str]) -> None:
        self._source = lru_cache(maxsize=8)(lambda document: Source(document_text(document)))

    def usable(self, sentence: str, subject: Subject) -> bool:
        """Say whether a sentence may be stored."""
        return bool(sentence) and usable_sentence(sentence, subject, self._source(subject.document_id))
