"""Train an adapter (LoRA) for a Qwen2 model on the examples of `build`, on a GPU if there is one.

The weights are those of the quantized GGUF file that will answer, dequantized. Only the tokens that occur in the
examples exist while training, which saves memory. The loss is that of the answers; half of the way by examples, so that
short answers count. With --minutes, the learning rate follows the clock, so that a machine lent for a time is used
well; with --steps, a run can be repeated. Prints the held-out log loss, how many answers would be literally right, and
the AUC of a refusal's first token, before and after.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from torch.nn import functional

from scripts.training.answers.examples import Examples, load_examples
from scripts.training.answers.gguf_weights import Weights
from scripts.training.answers.qwen import Qwen, load_adapter, save_adapter

WARM_UP = 15  # steps
LEAST = 0.03  # of the learning rate, at the end
BY_EXAMPLES = 0.6  # of the loss; the rest is by tokens
_SORTED = 4096  # examples among which those of one length are put together


class Trainer:
    """A model, examples in its tokens, and how many tokens fit into one step."""

    def __init__(self, model: Qwen, examples: Examples, step_tokens: int) -> None:
        self.model, self.examples, self.step_tokens = model, examples, step_tokens
        self._starts, self._lengths = examples.starts, examples.prompts + examples.answers
        self._device = model.embed.device

    def batches(self, numbers: np.ndarray, chance: np.random.Generator | None = None) -> Iterator[list[int]]:
        """Yield batches of examples of similar length, in an order by chance if there is one."""
        order = chance.permutation(numbers) if chance else numbers
        found = list[list[int]]()
        for start in range(0, len(order), _SORTED):
            batch, longest = list[int](), 0
            for number in sorted(map(int, order[start : start + _SORTED]), key=lambda number: self._lengths[number]):
                longest = max(longest, int(self._lengths[number]))
                if batch and longest * (len(batch) + 1) > self.step_tokens:
                    found.append(batch)
                    batch, longest = [], int(self._lengths[number])
                batch.append(number)
            found += [batch] if batch else []
        if chance:
            chance.shuffle(found)
        yield from found

    def run(self, batch: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the log-probabilities before each token of the answers, these tokens, and whose each is."""
        tokens = np.zeros((len(batch), max(self._lengths[number] for number in batch)), dtype=np.int64)
        owners, places = list[int](), list[int]()
        for row, number in enumerate(batch):
            length, prompt = self._lengths[number], self.examples.prompts[number]
            tokens[row, :length] = self.examples.tokens[self._starts[number] : self._starts[number + 1]]
            owners += [row] * int(length - prompt)
            places += range(prompt, length)
        rows, columns = (torch.tensor(values, device=self._device) for values in (owners, places))
        given = torch.from_numpy(tokens).to(self._device)
        hidden = self.model(given)[rows, columns - 1]
        return self.model.logits(hidden).log_softmax(-1), given[rows, columns], rows

    def loss(self, batch: Sequence[int]) -> torch.Tensor:
        """Return the loss of some examples."""
        odds, wanted, owners = self.run(batch)
        tokens = functional.nll_loss(odds, wanted, reduction="none")
        sums = torch.zeros(len(batch), device=self._device).index_add(0, owners, tokens)
        means = sums / torch.bincount(owners, minlength=len(batch))
        return BY_EXAMPLES * means.mean() + (1 - BY_EXAMPLES) * tokens.mean()

    @torch.no_grad()
    def evaluate(self, numbers: np.ndarray) -> dict[str, float]:
        """Return log loss, share of answers literally right, and AUC of the refusal's first token, if any."""
        if not len(numbers):
            return {}
        losses, exact, refused = list[float](), list[bool](), dict[int, float]()
        for batch in self.batches(numbers):
            odds, wanted, owners = self.run(batch)
            tokens, hits = -odds.gather(1, wanted[:, None])[:, 0], odds.argmax(-1) == wanted
            for row, number in enumerate(batch):
                mine = owners == row
                losses.append(float(tokens[mine].mean()))
                exact.append(bool(hits[mine].all()))
                refused[number] = float(odds[mine][0, self.examples.refusal])
        answerable = [odd for number, odd in refused.items() if self.examples.answerable[number]]
        others = [odd for number, odd in refused.items() if not self.examples.answerable[number]]
        wins = np.array(others)[:, None] > np.array(answerable)[None]
        found = {"log_loss": np.mean(losses), "exact": np.mean(exact), "auc": wins.mean() if wins.size else 0.0}
        return {name: round(float(value), 4) for name, value in found.items()}

    def train(self, numbers: np.ndarray, rate: float, done: Callable[[int], float], say: Callable[[str], None]) -> None:
        """Train until `done` says 1 after a number of steps."""
        weights = [weight for weight in self.model.parameters() if weight.requires_grad]
        optimizer = torch.optim.AdamW(weights, lr=rate, betas=(0.9, 0.95), weight_decay=0.0)
        chance, started, step, seen = np.random.default_rng(1), time.monotonic(), 0, 0
        while True:
            for batch in self.batches(numbers, chance):
                part = done(step)
                if part >= 1:
                    return
                optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / WARM_UP) * fallen(part)
                loss = self.loss(batch)
                optimizer.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                torch.nn.utils.clip_grad_norm_(weights, 1.0)
                optimizer.step()
                step += 1
                seen += int(self._lengths[batch].sum())
                if step % 20 == 1:
                    speed = seen / (time.monotonic() - started)
                    say(f"step {step}, {100 * part:.0f} %, loss {loss.item():.4f}, {seen} tokens, {speed:.0f} a second")


def fallen(part: float) -> float:
    """Return the share of the learning rate after a part of the training: a half cosine."""
    return LEAST + (1 - LEAST) * 0.5 * (1 + math.cos(math.pi * part))


def by_steps(steps: int) -> Callable[[int], float]:
    """Return what says which part of some steps is done."""
    return lambda step: step / steps


def by_clock(seconds: float) -> Callable[[int], float]:
    """Return what says which part of a time is over."""
    started = time.monotonic()
    return lambda _step: (time.monotonic() - started) / seconds


def in_own_tokens(examples: Examples) -> tuple[Examples, np.ndarray]:
    """Return the examples with their tokens numbered without gaps, and the rows of the vocabulary that these are."""
    rows = np.unique(np.append(examples.tokens, examples.refusal))
    own = np.searchsorted(rows, examples.tokens).astype(np.int32)
    return replace(examples, tokens=own, refusal=int(np.searchsorted(rows, examples.refusal))), rows


def default_step_tokens() -> int:
    """Return how many tokens of a step fit into the memory, which 26,000 fill to 76 GiB with a model of 1.5B."""
    if not torch.cuda.is_available():
        return 1500
    return 26_000 if torch.cuda.get_device_properties(0).total_memory > 100 * 2**30 else 15_000


@click.command(help=__doc__)
@click.argument("examples_path", metavar="EXAMPLES", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("model_path", metavar="MODEL", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--minutes", type=float, help="How long to train.")
@click.option("--steps", type=int, help="How long to train, in steps instead.")
@click.option("--rank", default=16, show_default=True)
@click.option("--rate", default=2e-4, show_default=True, help="The highest learning rate; 3e-4 for the 0.5B model.")
@click.option(
    "--start",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An adapter of llama.cpp to go on from.",
)
@click.option("--step-tokens", type=int, help="Tokens of a step; by default as many as fit into the memory.")
def main(
    examples_path: Path,
    model_path: Path,
    output: Path,
    minutes: float | None,
    steps: int | None,
    rank: int,
    rate: float,
    start: Path | None,
    step_tokens: int | None,
) -> None:
    if (minutes is None) == (steps is None):
        raise click.UsageError("Say how long to train, with either --minutes or --steps.")
    torch.manual_seed(1)
    examples, rows = in_own_tokens(load_examples(examples_path))
    alpha = 2.0 * rank
    on_gpu: dict[str, Any] = {"device": "cuda", "dtype": torch.bfloat16} if torch.cuda.is_available() else {}
    model = Qwen(Weights(model_path), rank=rank, alpha=alpha, rows=rows, **on_gpu)
    if start:
        load_adapter(model, start, alpha)
    trainer = Trainer(model, examples, step_tokens or default_step_tokens())
    train, held_out = np.flatnonzero(~examples.held_out), np.flatnonzero(examples.held_out)
    click.echo(f"{len(train)} examples, {len(held_out)} held out, {len(rows)} tokens of the vocabulary")
    click.echo(f"before {json.dumps(trainer.evaluate(held_out))}")
    trainer.train(train, rate, by_steps(steps) if steps else by_clock(60 * (minutes or 0)), click.echo)
    save_adapter(model, output, alpha)  # first, so that nothing is lost if the time is up
    click.echo(f"after {json.dumps(trainer.evaluate(held_out))}\n{output}: {output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
