"""Build examples to train a writer of contexts on: prompts in tokens, in the words of the program itself.

FOLDER/contexts.jsonl has a document on each line: its title and text, and its chunks, each with start, end, headings,
and what is to be learned: a `question` that the chunk answers, for the request of the program, a `context`, which is a
sentence about it, for a request of its own, or both. A writer of questions learns from sentences, too. Writes
OUTPUT/examples.npz, which `scripts.training.answers.train` reads.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
from scripts.training.answers.examples import Examples
from scripts.training.answers.gguf_weights import end_token

FORM_OF = "qwen2.5-coder-0.5b-contexts"
HELD_OUT = 20  # one document of so many
SENTENCE = ContextForm("Situate the last chunk for a search engine.")


@dataclass(frozen=True, slots=True)
class Situated:
    """A document, and a question and a sentence for each of its chunks, empty where one is missing."""

    title: str
    text: str
    chunks: tuple[Chunk, ...]
    questions: tuple[str, ...]
    sentences: tuple[str, ...]

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
        questions, sentences = (tuple(one.get(name, "").strip() for one in found) for name in ("question", "context"))
        yield Situated(fields["title"], text, tuple(chunks), questions, sentences)


def prompts_of(document: Situated, form: ContextForm, vocabulary: Vocabulary) -> list[list[int]]:
    """Return the prompt of each chunk as the program writes it, in tokens."""
    jobs = plan_contexts(document.title, document.text, document.chunks, vocabulary=vocabulary, plan="", form=form)
    return [[*request.prefix[: request.start], *request.suffix] for request in prompt_requests(jobs, vocabulary)]


def build(documents: Iterable[Situated], model: Path, form: ContextForm) -> Examples:
    """Return an example for each question and each sentence."""
    tokens, prompts, answers, held = list[int](), list[int](), list[int](), list[bool]()
    end = end_token(model)
    with open_vocabulary(model) as vocabulary:
        for document in documents:
            for asked, texts in ((form, document.questions), (SENTENCE, document.sentences)):
                for prompt, text in zip(prompts_of(document, asked, vocabulary), texts, strict=True):
                    if text:
                        answer = [*vocabulary.tokenize(text), end]
                        tokens += prompt + answer
                        prompts.append(len(prompt))
                        answers.append(len(answer))
                        held.append(document.is_held_out)
    return Examples(
        tokens=np.array(tokens, dtype=np.int32),
        prompts=np.array(prompts, dtype=np.int32),
        answers=np.array(answers, dtype=np.int32),
        answerable=np.ones(len(prompts), dtype=bool),
        held_out=np.array(held),
        refusal=end,  # none is refused
    )


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("output", type=click.Path(file_okay=False, path_type=Path))
def main(folder: Path, model: Path, output: Path) -> None:
    form = load_registry().models[FORM_OF].context_form
    examples = build(read_documents(folder / "contexts.jsonl"), model, form)
    output.mkdir(parents=True, exist_ok=True)
    examples.save(output / "examples.npz")
    click.echo(
        f"{len(examples.prompts)} examples, {examples.held_out.sum()} held out, {len(examples.tokens)} tokens, "
        f"{examples.prompts.mean():.0f} in a prompt, {examples.answers.mean():.0f} in a context"
    )


if __name__ == "__main__":
    main()
