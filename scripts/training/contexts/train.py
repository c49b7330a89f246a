"""Train all weights of a small Llama on the windows of `build`, on a CPU; an hour or two on two cores.

A window is read once, and every question branches off after its chunk, as the engine of the program does it. Several
windows are read side by side, none of which sees another. With --minutes, the learning rate follows the clock. Prints
the held-out log loss of questions and sentences, before and after.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import numpy as np
import torch
from torch.nn import functional

from scripts.training.answers.gguf_weights import Weights
from scripts.training.answers.train import WARM_UP, by_clock, fallen
from scripts.training.contexts.llama import COMPUTED, Llama, View, save_model
from scripts.training.contexts.windows import Windows, load_windows

PACK = 1_000  # tokens that are read side by side
VIEW = 256  # tokens that look at the same others at a time
_SENTENCES = 0.5  # the weight of a token of a sentence


def _of_prefix(begin: int, length: int) -> Iterator[View]:
    """Yield the views of a window on itself, in which no token sees a later one."""
    for start in range(0, length, VIEW):
        end = min(start + VIEW, length)
        later = torch.arange(end)[None] > torch.arange(start, end)[:, None]
        yield View(begin + start, begin + end, begin, begin + end, _mask(later))


def _of_branches(begin: int, length: int, limits: torch.Tensor, owners: torch.Tensor) -> Iterator[View]:
    """Yield the views of branches on the window up to where each begins, and on themselves."""
    total = length + len(limits)
    unread = torch.arange(length)[None] >= limits[:, None]
    order = torch.arange(len(owners))
    others = (owners[None] != owners[:, None]) | (order[None] > order[:, None])
    hidden = torch.cat([unread, others], 1)
    for start in range(0, len(limits), VIEW):
        end = min(start + VIEW, len(limits))
        first = begin + length + start
        yield View(first, first + end - start, begin, begin + total, _mask(hidden[start:end]))


def _mask(hidden: torch.Tensor) -> torch.Tensor:
    return torch.zeros(hidden.shape, dtype=COMPUTED).masked_fill(hidden, float("-inf"))


class Trainer:
    """A model and windows in its tokens."""

    def __init__(self, model: Llama, windows: Windows) -> None:
        self.model, self.windows = model, windows
        self._sizes = [windows.size(number) for number in range(len(windows.prefix_ends))]

    def packs(self, numbers: Sequence[int]) -> Iterator[list[int]]:
        """Yield windows that are read side by side."""
        pack, size = list[int](), 0
        for number in numbers:
            if pack and size + self._sizes[number] > PACK:
                yield pack
                pack, size = [], 0
            pack.append(number)
            size += self._sizes[number]
        if pack:
            yield pack

    def losses(self, pack: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the loss of each token to be written, and whether it is part of a question."""
        tokens, places, views = list[int](), list[int](), list[View]()
        at, wanted, asked = list[int](), list[int](), list[bool]()
        for number in pack:
            begin, prefix = len(tokens), self.windows.window(number)
            tokens += prefix.tolist()
            places += range(len(prefix))
            limits, owners = list[int](), list[int]()
            for one in self.windows.of_window(number):
                branch, cut = self.windows.branch(one).tolist(), int(self.windows.cuts[one])
                first = int(self.windows.requests[one])
                at += range(len(tokens) + first - 1, len(tokens) + len(branch) - 1)
                wanted += branch[first:]
                asked += [bool(self.windows.questions[one])] * (len(branch) - first)
                tokens += branch
                places += range(cut, cut + len(branch))
                limits += [cut] * len(branch)
                owners += [one] * len(branch)
            views += _of_prefix(begin, len(prefix))
            views += _of_branches(begin, len(prefix), torch.tensor(limits), torch.tensor(owners))
        # Products of matrices with a round number of rows take half the time.
        spare = -len(tokens) % 128
        if spare:
            views.append(View(len(tokens), len(tokens) + spare, 0, 1, _mask(torch.zeros(spare, 1, dtype=torch.bool))))
            tokens += [0] * spare
            places += [0] * spare
        hidden = self.model(torch.tensor(tokens), torch.tensor(places), views)[torch.tensor(at)]
        odds = self.model.logits(hidden)
        return functional.cross_entropy(odds, torch.tensor(wanted), reduction="none"), torch.tensor(asked)

    @torch.no_grad()
    def evaluate(self, numbers: Sequence[int]) -> tuple[float, float]:
        """Return the log loss of a token of questions, and of sentences; not a number if there is none."""
        if not numbers:
            return float("nan"), float("nan")
        found = [self.losses(pack) for pack in self.packs(numbers)]
        losses, asked = (torch.cat(parts) for parts in zip(*found, strict=True))
        return float(losses[asked].mean()), float(losses[~asked].mean())

    def train(self, numbers: np.ndarray, rate: float, minutes: float, step_tokens: int) -> None:
        """Train until the time is up."""
        weights = list(self.model.parameters())
        optimizer = torch.optim.AdamW(weights, lr=rate, betas=(0.9, 0.95), weight_decay=0.01, fused=True)
        chance, done, started = np.random.default_rng(1), by_clock(60 * minutes), time.monotonic()
        step, seen, in_step, sums = 0, 0, 0, list[float]()
        while True:
            for pack in self.packs(chance.permutation(numbers).tolist()):
                losses, asked = self.losses(pack)
                weight = torch.where(asked, 1.0, _SENTENCES)
                # A fixed divisor: a pack with few questions counts for few.
                ((losses * weight).sum() / 500).backward()  # type: ignore[no-untyped-call]
                sums.append(float(losses[asked].detach().mean()) if asked.any() else float("nan"))
                size = sum(self._sizes[number] for number in pack)
                seen, in_step = seen + size, in_step + size
                if in_step < step_tokens:
                    continue
                part, in_step = done(0), 0
                if part >= 1:
                    return
                self.model.collect()
                optimizer.param_groups[0]["lr"] = rate * min(1, (step + 1) / WARM_UP) * fallen(part)
                torch.nn.utils.clip_grad_norm_(weights, 1.0)
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
                self.model.round()
                step += 1
                if step % 10 == 1:
                    speed, loss = seen / (time.monotonic() - started), float(np.nanmean(sums))
                    sums.clear()
                    click.echo(f"step {step}, {100 * part:.0f} %, loss {loss:.3f}, {seen} tokens, {speed:.0f} a second")


@click.command(help=__doc__)
@click.argument("windows_path", metavar="WINDOWS", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("model_path", metavar="MODEL", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("output", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--minutes", type=float, required=True, help="How long to train.")
@click.option("--rate", default=3e-4, show_default=True, help="The highest learning rate.")
@click.option("--step-tokens", default=6_000, show_default=True, help="Tokens of a step.")
def main(windows_path: Path, model_path: Path, output: Path, minutes: float, rate: float, step_tokens: int) -> None:
    torch.manual_seed(1)
    windows = load_windows(windows_path)
    model = Llama(Weights(model_path, "llama"))
    model.round()
    trainer = Trainer(model, windows)
    train, held_out = np.flatnonzero(~windows.held_out), np.flatnonzero(windows.held_out).tolist()
    click.echo("before: {:.3f} of questions, {:.3f} of sentences".format(*trainer.evaluate(held_out)))
    trainer.train(train, rate, minutes, step_tokens)
    save_model(model, model_path, output)  # first, so that nothing is lost if the time is up
    click.echo("after: {:.3f} of questions, {:.3f} of sentences".format(*trainer.evaluate(held_out)))
    click.echo(f"{output}: {output.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
