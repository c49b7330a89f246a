"""Build windows to train a writer of contexts on: prompts in tokens, in the words of the program itself.

FOLDER/contexts.jsonl has a document on each line: its title and text, and its chunks, each with start, end, headings,
and what is to be learned: `questions` that the chunk answers, which the model learns to write one below the other, a
`context`, which is a sentence about it, or both. The sets that `scripts.training.sets` reads add passages with
questions, if FOLDER has them; those that copy the words of their passage are left out, because a copied word helps no
search. MODEL is the GGUF file whose tokens are used. Writes OUTPUT, which `scripts.training.contexts.train` reads, or
with --adapter what `scripts.training.answers.train` reads.
"""

import hashlib
import itertools
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import numpy as np

from local_rag.document_records import Chunk
from local_rag.indexing.situating_prompts import plan_contexts, prompt_requests
from local_rag.llama.generator import Vocabulary
from local_rag.llama.models_in_use import open_vocabulary
from local_rag.model_records import ContextForm
from local_rag.models.registry import load_registry
from local_rag.text.tokens import keyword_tokens
from scripts.training.answers.gguf_weights import end_token
from scripts.training.contexts.windows import Windows
from scripts.training.sets import Entry, read_sets

# What SmolLM2 is asked: its own special tokens, which no document can contain.
QUESTION, SENTENCE = (ContextForm(request, separator="<file_sep>") for request in ("<repo_name>", "<reponame>"))
SITUATE = ContextForm("Situate the last chunk for a search engine.")  # to an adapter
HELD_OUT = 20  # one document of so many
_COPIED = 0.6  # share of the words of a question that its passage has, from which it is left out
_LONGEST = 2_500  # characters of a passage of a set
_WITHOUT = ("faq", "fetaqa", "multihop")  # whose titles hold the question, which are tables, or need two passages
_SENTENCES = 2  # a Llama learns one sentence of so many: they are twice as long as questions, which matter more
_PASSAGES = 600  # of the sets, drawn by chance


@dataclass(frozen=True, slots=True)
class Situated:
    """A document, and the questions and sentences for each of its chunks."""

    title: str
    text: str
    chunks: tuple[Chunk, ...]
    questions: tuple[tuple[str, ...], ...]
    sentences: tuple[tuple[str, ...], ...]

    @property
    def is_held_out(self) -> bool:
        """Return whether the document is kept for evaluation."""
        return int(hashlib.sha256(self.title.encode()).hexdigest(), 16) % HELD_OUT == 0


def read_documents(path: Path) -> Iterator[Situated]:
    """Yield the documents of a file with one on each line."""
    for line in path.read_text(encoding="utf-8").splitlines():
        fields: dict[str, Any] = json.loads(line)
        text, found = fields["text"], fields["chunks"]
        spans = [(one["start"], one["end"], tuple(one.get("headings", ()))) for one in found]
        chunks = [
            Chunk(position, start, end, text[start:end], headings)
            for position, (start, end, headings) in enumerate(spans)
        ]
        questions = tuple(tuple(one.get("questions", ())) for one in found)
        sentences = tuple((one["context"],) if one.get("context") else () for one in found)
        yield Situated(fields["title"], text, tuple(chunks), questions, sentences)


def read_passages(folder: Path) -> Iterator[Situated]:
    """Yield passages of public sets, each as a document of one chunk, with the questions that do not copy it."""
    asked: dict[tuple[str, str], set[str]] = defaultdict(set)
    for entry in read_sets(folder, lambda text: click.echo(text, err=True)):
        if not entry.source.startswith(_WITHOUT) and len(entry.gold) == 1 and not entry.before and _asks_anew(entry):
            asked[entry.gold[0].title, entry.gold[0].text].add(entry.question)
    found = sorted(asked)
    random.Random(3).shuffle(found)
    for title, text in found[:_PASSAGES]:
        questions = sorted(asked[title, text])[:2]
        yield Situated(title, text, (Chunk(0, 0, len(text), text, ()),), (tuple(questions),), ((),))


def _asks_anew(entry: Entry) -> bool:
    gold = entry.gold[0]
    asked, said = set(keyword_tokens(entry.question)), set(keyword_tokens(gold.text))
    return bool(asked) and len(gold.text) <= _LONGEST and len(asked & said) < _COPIED * len(asked)


def _with_fewer_sentences(document: Situated) -> Situated:
    kept = (said if number % _SENTENCES == 0 else () for number, said in enumerate(document.sentences))
    return replace(document, sentences=tuple(kept))


def build(documents: Iterable[Situated], model: Path, form: ContextForm, sentence_form: ContextForm) -> Windows:
    """Return the windows of documents, each with a branch for each question and each sentence."""
    prefixes, branches = list[np.ndarray](), list[np.ndarray]()
    owners, cuts, requests, questions, held = list[int](), list[int](), list[int](), list[bool](), list[bool]()
    end = end_token(model)
    with open_vocabulary(model) as vocabulary:
        for document in documents:
            for window in _windows(document, vocabulary, form, sentence_form):
                last = max((cut for cut, _, _, _ in window.branches), default=0)
                if not last:
                    continue
                for cut, request, text, is_question in window.branches:
                    owners.append(len(prefixes))
                    cuts.append(cut)
                    requests.append(len(request))
                    questions.append(is_question)
                    branches.append(np.array([*request, *vocabulary.tokenize(text), end], dtype=np.int32))
                prefixes.append(np.array(window.prefix[:last], dtype=np.int32))
                held.append(document.is_held_out)
    return Windows(
        prefixes=np.concatenate(prefixes),
        prefix_ends=np.cumsum([len(one) for one in prefixes]),
        branches=np.concatenate(branches),
        branch_ends=np.cumsum([len(one) for one in branches]),
        owners=np.array(owners),
        cuts=np.array(cuts),
        requests=np.array(requests),
        questions=np.array(questions),
        held_out=np.array(held),
    )


@dataclass(frozen=True, slots=True)
class _Window:
    prefix: Sequence[int]
    branches: Sequence[tuple[int, Sequence[int], str, bool]]  # cut, request, text, whether it is a question


def _windows(
    document: Situated, vocabulary: Vocabulary, form: ContextForm, sentence_form: ContextForm
) -> Iterator[_Window]:
    """Yield the windows of a document as the program makes them, with what is to be written after each chunk."""
    jobs, others = (
        plan_contexts(document.title, document.text, document.chunks, vocabulary=vocabulary, plan="", form=one)
        for one in (form, sentence_form)
    )
    requests = prompt_requests(jobs, vocabulary), prompt_requests(others, vocabulary)
    asked = zip(jobs, *requests, document.questions, document.sentences, strict=True)
    for _, group in itertools.groupby(asked, lambda one: one[0].window.first):
        branches = list[tuple[int, Sequence[int], str, bool]]()
        prefix: Sequence[int] = ()
        for _, request, other, questions, sentences in group:
            prefix = request.prefix
            if questions:
                branches.append((request.start, request.suffix, "\n".join(questions), True))
            branches += [(request.start, other.suffix, text, False) for text in sentences]
        yield _Window(prefix, branches)


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--adapter", help="A model of the registry: build examples for its adapter, asked as it is asked.")
def main(folder: Path, model: Path, output: Path, adapter: str | None) -> None:
    documents = itertools.chain(read_documents(folder / "contexts.jsonl"), read_passages(folder))
    if adapter:
        windows = build(documents, model, load_registry().models[adapter].context_form, SITUATE)
        windows.examples().save(output)
    else:
        windows = build(map(_with_fewer_sentences, documents), model, QUESTION, SENTENCE)
        windows.save(output)
    click.echo(
        f"{len(windows.prefix_ends)} windows, {windows.held_out.sum()} held out, {len(windows.prefixes)} tokens; "
        f"{windows.questions.sum()} questions, {(~windows.questions).sum()} sentences, {len(windows.branches)} tokens"
    )


if __name__ == "__main__":
    main()
