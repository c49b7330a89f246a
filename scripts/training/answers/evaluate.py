"""Let a model answer the held-out examples of `build` through llama.cpp, with an adapter or without.

Counts right answers, refusals and wrong ones (by evaluation/answer_figures.py, which is rough), and answers to what
cannot be answered, for each source. The AUC is that of the log-probability of the refusal's first token at the first
place.
"""

import json
import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from local_rag.evaluation.answer_figures import is_right
from local_rag.evaluation.dataset import Question
from local_rag.llama.generator import Generator, Request
from local_rag.llama.models_in_use import open_engine
from local_rag.models.registry import load_registry
from scripts.training.answers.build import FORM_OF, LONGEST
from scripts.training.train_reader import area

MOST_TOKENS = 90  # of an answer
_CELLS = LONGEST + 512


def answer(generator: Generator, prompt: Sequence[int], refusal: int) -> tuple[str, float]:
    """Return the answer to a prompt, and the log-probability that it begins with the refusal's first token."""
    prefix, suffix = prompt[:-1], prompt[-1:]
    odds = generator.log_probabilities(prefix, suffix)
    assert odds is not None, "an engine in this process tells them"
    _, tokens, _ = next(iter(generator.complete([Request("", prefix, suffix, MOST_TOKENS)])))
    return generator.model.detokenize(tokens).strip(), float(odds[refusal])


def outcome(record: Mapping[str, Any], text: str, refusal: str) -> str:
    """Return what became of an example."""
    refused = text.startswith(refusal.rstrip("."))
    if not record["answer"]:
        return "rightly refused" if refused else "answered without support"
    if refused:
        return "refused"
    return "right" if is_right(Question(record["question"], answer=record["answer"]), text) else "wrong"


@click.command(help=__doc__)
@click.argument("held_out", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("model", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("adapter", type=click.Path(exists=True, dir_okay=False, path_type=Path), required=False)
@click.option("--most", default=160, show_default=True, help="Examples, drawn by chance.")
def main(held_out: Path, model: Path, adapter: Path | None, most: int) -> None:
    refusal = load_registry().models[FORM_OF].form.refusal
    records = [json.loads(line) for line in held_out.read_text(encoding="utf-8").splitlines()]
    records = random.Random(4).sample(records, min(most, len(records)))
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    odds: dict[bool, list[float]] = {True: [], False: []}
    with open_engine(model, context_tokens=lambda _length, _sequences: _CELLS) as engine:
        first = engine.model.tokenize(refusal)[0]
        with engine.adapted(adapter) if adapter else nullcontext():
            for record in records:
                text, odd = answer(engine, record["prompt"], first)
                odds[bool(record["answer"])].append(odd)
                for name in (record["source"], "all"):
                    counts[name][outcome(record, text, refusal)] += 1
    click.echo(json.dumps(counts, indent=1))
    click.echo(f"AUC of the refusal's first token: {area(odds[False], odds[True]):.3f}")


if __name__ == "__main__":
    main()
