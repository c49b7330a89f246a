"""Write contexts: a sentence about every chunk of a document. Prompts, windows, and the repair of bad sentences.

After Anthropic, "Contextual Retrieval" (2024), with one difference: a chunk is not repeated after its document. Its
prompt is the document, or a window of a long one, cut off at the end of the chunk, so the chunk is the last text that
the model reads. All prompts of a window begin with the same tokens, which the engine evaluates once. A single chunk
costs only the evaluation of the request and the generation of the answer.
"""

import functools
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass

from local_rag.document_records import Chunk
from local_rag.keys import key_of
from local_rag.llama.generator import Generator, Request, Vocabulary
from local_rag.model_records import PLAIN_CONTEXT_FORM, ContextForm

# Measured from 1,024 to 4,096 tokens: passages were equally easy to find. Attention over longer windows costs more, and
# shorter ones repeat title and outline more often.
WINDOW_TOKENS = 1536
MAX_TOKENS = 64  # the model ends its sentence before
_OUTLINE_CHARACTERS = 800

_SYSTEM = "You write short notes that help a search engine find passages of documents."
_CHUNK_START, _CHUNK_END = "\n<chunk>\n", "\n</chunk>\n"
_SUFFIX_TOKENS = 128  # of the request after a chunk, with any model's chat template
_FULL_STOP = str.maketrans(",;:", "...")
# What a context depends on apart from its model, its window and the limits above. The number stands for the code that
# cuts windows, repairs contexts and checks them: raise it when that code makes another context of the same answer.
PROMPT = key_of("context", 6, _SYSTEM, _CHUNK_START, _CHUNK_END, _OUTLINE_CHARACTERS)


@dataclass(frozen=True, slots=True)
class Window:
    """The common prefix of chunks `first` to `last - 1` of a document: a head, and a text for each chunk."""

    head: str
    pieces: tuple[str, ...]
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class ContextJob:
    """A sentence to write: its key in the store, its chunk as the number of a piece in a window, and how to ask."""

    key: str
    window: Window
    piece: int
    form: ContextForm = PLAIN_CONTEXT_FORM


def make_windows(
    title: str, text: str, chunks: Sequence[Chunk], count_tokens: Callable[[str], int], limit: int = WINDOW_TOKENS
) -> list[Window]:
    """Cut a document into windows of at most `limit` tokens of text, on section boundaries where there are some.

    If a document needs several windows, each begins with its title and outline. A window holds at least one chunk, but
    only the beginning of a chunk that is longer than two windows. Text that overlapping chunks share is only in the
    first of them.
    """
    starts = [0, *(chunk.start for chunk in chunks[1:]), len(text)]
    texts = (quotable(text[start:end]).strip("\n") for start, end in itertools.pairwise(starts))
    pieces = [shorten(text, 2 * limit, count_tokens) for text in texts]
    sizes = [count_tokens(f"{_CHUNK_START}{piece}{_CHUNK_END}") for piece in pieces]
    head = shorten(quotable(title), limit // 4, count_tokens)
    if sum(sizes) <= limit:
        return [Window(head, tuple(pieces), 0, len(chunks))] if chunks else []
    head += f"\nOutline: {shorten(_outline(chunks), limit // 4, count_tokens)}\n[...]"
    windows, first = [], 0
    while first < len(chunks):
        last, total = first, 0
        while last < len(chunks) and (last == first or total + sizes[last] <= limit):
            total += sizes[last]
            last += 1
        if last < len(chunks):
            last = _section_boundary(chunks, first, last)
        windows.append(Window(head, tuple(pieces[first:last]), first, last))
        first = last
    return windows


def _section_boundary(chunks: Sequence[Chunk], first: int, last: int) -> int:
    """Move the end of a full window back to the outermost section boundary in its second half."""
    candidates = range(max(first + 1, (first + last) // 2), last + 1)

    def depth(index: int) -> int:
        before, after = chunks[index - 1].headings, chunks[index].headings
        shared = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), None)
        return min(len(before), len(after)) if shared is None else shared

    return min(candidates, key=lambda index: (depth(index), -index))


def _outline(chunks: Sequence[Chunk]) -> str:
    titles = dict.fromkeys(quotable(chunk.headings[-1]) for chunk in chunks if chunk.headings)
    return "; ".join(titles)[:_OUTLINE_CHARACTERS]


def shorten(text: str, limit: int, count_tokens: Callable[[str], int]) -> str:
    """Cut a text to at most `limit` tokens; in a loop, because a rare character can be several tokens."""
    while (size := count_tokens(text)) > limit:
        text = text[: len(text) * limit // size]
    return text


def quotable(text: str) -> str:
    """Keep a text from closing the tags that it is quoted in, and shorten blank space."""
    text = re.sub(r"<(/?)(?=document\b|chunk\b)", r"<\1 ", text, flags=re.IGNORECASE)
    text = re.sub(r"\n(?:[ \t]*\n)+", "\n\n", text)
    # The space between two chunks is not limited: a line may hold a million spaces.
    return re.sub(r"([^\S\n])[^\S\n]{15,}", lambda run: run[1] * 16, text)


def context_plan(model_identity: str, form: ContextForm = PLAIN_CONTEXT_FORM) -> str:
    """Name everything that decides which context a chunk gets, apart from the document."""
    asked = [part for part in astuple(form)[2:] if part]  # what came later changes no key without it
    return json.dumps([model_identity, form.request, form.opening, *asked, PROMPT, WINDOW_TOKENS, MAX_TOKENS])


def plan_contexts(
    title: str,
    text: str,
    chunks: Sequence[Chunk],
    *,
    vocabulary: Vocabulary,
    plan: str,
    form: ContextForm = PLAIN_CONTEXT_FORM,
) -> list[ContextJob]:
    """Return one job for each chunk of a document, under a key of everything that its sentence depends on."""
    limit = min(WINDOW_TOKENS, vocabulary.context_length // 2)
    jobs = []
    for window in make_windows(title, text, chunks, lambda part: len(vocabulary.tokenize(part)), limit):
        key = key_of(plan, window.head)
        for piece, content in enumerate(window.pieces):
            key = key_of(key, content)  # what the model has seen when it comes to this chunk
            jobs.append(ContextJob(key, window, piece, form))
    return jobs


def context_room(context_length: int, sequences: int) -> int:
    """Return the KV cells for two windows with their outlines, and for the contexts that are written at a time."""
    window = min(WINDOW_TOKENS, context_length // 2) + 512
    return 2 * window + sequences * (_SUFFIX_TOKENS + MAX_TOKENS)


def write_contexts(jobs: Iterable[ContextJob], generator: Generator) -> Iterator[tuple[str, str]]:
    """Yield key and sentence of each finished job; a sentence that cannot be repaired is empty."""
    begun: dict[str, str] = {}

    def noted() -> Iterator[ContextJob]:
        for job in jobs:
            begun[job.key] = job.form.opening
            yield job

    for key, tokens, whole in generator.complete(prompt_requests(noted(), generator.model)):
        yield key, repair_context(begun.pop(key), generator.model.detokenize(tokens), whole)


def prompt_requests(jobs: Iterable[ContextJob], model: Vocabulary) -> Iterator[Request]:
    """Yield the prompt of each job under its key; jobs of one window cut the same prefix at different positions."""

    @functools.cache
    def special(text: str) -> list[int]:
        return model.tokenize(text, special=True)

    @functools.cache
    def frame(form: ContextForm) -> tuple[list[int], list[int], list[int], list[int]]:
        """Return what stands before a document, before and after each chunk, and at the end of a prompt."""
        if form.separator:
            return [], special(form.separator), [], special(form.request)
        before, after = model.chat_frame(_SYSTEM)
        end = special(f"{_CHUNK_END}</document>\n\n{form.request}{after}")
        return special(f"{before}<document>\n"), model.tokenize(_CHUNK_START), model.tokenize(_CHUNK_END), end

    window, prefix, cuts = None, list[int](), list[int]()
    for job in jobs:
        before, start, end, request = frame(job.form)
        if job.window is not window:
            window = job.window
            prefix, cuts = [*before, *model.tokenize(window.head)], []
            for piece in window.pieces:
                prefix += [*start, *model.tokenize(piece)]
                cuts.append(len(prefix))
                prefix += end
        yield Request(job.key, prefix, [*request, *model.tokenize(job.form.opening)], MAX_TOKENS, cut=cuts[job.piece])


def repair_context(opening: str, text: str, whole: bool) -> str:
    """Return a usable context, empty if there is none; `text` follows the opening. Its lines stay apart.

    A sentence that reached the token limit is cut back to its last full sentence or else its last clause, one that
    repeats itself to the text before the repetition.
    """
    lines = f"{opening}{text}".lstrip().split("\n\n", maxsplit=1)[0].splitlines()
    text = "\n".join(" ".join(line.split()) for line in lines).strip(" \"'`")
    kept, least = _before_repetition(text), len(opening.split()) + 3
    if not whole or kept != text:
        for mark in (r"[.!?](?=\s|$)", r"[,;:](?=\s)"):
            last = max(re.finditer(mark, kept), key=re.Match.start, default=None)
            shortened = kept[: last.start()] + last[0].translate(_FULL_STOP) if last else ""
            if len(shortened.split()) >= least:
                return shortened
        return ""
    return kept if len(kept.split()) >= least else ""


def _before_repetition(text: str, length: int = 6) -> str:
    """Return the text up to the second occurrence of any run of `length` words."""
    words = text.split()
    seen = set()
    for index in range(len(words) - length + 1):
        run = tuple(word.lower() for word in words[index : index + length])
        if run in seen:
            return " ".join(words[:index])
        seen.add(run)
    return text
