"""Train the checker of rows: of the queries that the planner thinks of, those whose result is the known answer.

    python -m scripts.training.rows.train_checker OUTPUT EXAMPLES... --start PLANNER.pt --minutes 15

EXAMPLES are what `queries` writes; PLANNER is a trained planner, whose encoder is the start, or a checker to go on
with. OUTPUT becomes a folder with the int8 model, and its weights as `checker.pt`, to go on with.
"""

import argparse
import pickle
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import nn

from local_rag.tables.checker import CHECKER_FILE, TOKENIZER, Encoded, encode
from scripts.training.reader_model import half_precision, load_start
from scripts.training.rows.export import write_onnx
from scripts.training.rows.model import TorchPlanner, padded

RATE, HEAD_RATE, TOKENS = 6e-5, 5e-4, 4_000  # and tokens of a step
_OTHERS = 0.5  # share of the questions without a right query, or with no other, that an epoch has


class TorchChecker(nn.Module):
    """Return the log odds of each token, shape (batch, length); a query has the mean of its own."""

    def __init__(self, bert: Any) -> None:
        super().__init__()
        self.bert, self.head = bert, nn.Linear(bert.config.hidden_size, 1)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor) -> Any:
        """Run the encoder once."""
        out = self.bert(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        return self.head(out).squeeze(-1)


Read = tuple[Encoded, list[bool]]  # a question with its queries, and which of them are right


def read(tokenizer: Any, one: dict[str, Any], draw: random.Random) -> Read:
    """Return a question with its queries in any order."""
    queries = draw.sample(one["queries"], len(one["queries"]))
    return encode(tokenizer, one["question"], [each["said"] for each in queries]), [each["right"] for each in queries]


def is_choice(one: dict[str, Any]) -> bool:
    """Return whether a question has right and wrong queries."""
    return len({each["right"] for each in one["queries"]}) > 1


def steps_of(made: list[dict[str, Any]], tokenizer: Any, draw: random.Random) -> Iterator[list[Read]]:
    """Yield questions of about the same length, at random, without end."""
    while True:
        some = [read(tokenizer, one, draw) for one in made if is_choice(one) or draw.random() < _OTHERS]
        some.sort(key=lambda one: len(one[0].ids) + 30 * draw.random())
        groups, group = list[list[Read]](), list[Read]()
        for one in some:
            if group and len(one[0].ids) * (len(group) + 1) > TOKENS:
                groups.append(group)
                group = []
            group.append(one)
        draw.shuffle(groups)
        print(f"an epoch has {len(groups)} steps", flush=True)
        yield from groups


def loss_of(odds: torch.Tensor, some: list[Read]) -> torch.Tensor:
    """Return the loss of each query, and of the choice among the queries of each question."""
    losses = list[torch.Tensor]()
    for of_tokens, (encoded, right) in zip(odds, some, strict=True):
        logits = torch.stack([of_tokens[start:end].mean() for start, end in encoded.spans])
        known = torch.tensor(right)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, known.float())
        if known.any() and not known.all():
            loss = loss + torch.logsumexp(logits, 0) - torch.logsumexp(logits[known], 0)
        losses.append(loss)
    return torch.stack(losses).mean()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("examples", type=Path, nargs="+")
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    draw = random.Random(options.seed)
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    planner, start = TorchPlanner(load_start().bert), torch.load(options.start, weights_only=True)
    model = TorchChecker(planner.bert).train()
    (model if "head.weight" in start else planner).load_state_dict(start)
    optimizer = torch.optim.AdamW(
        [{"params": model.bert.parameters()}, {"params": model.head.parameters()}], weight_decay=0.01
    )
    made = [one for path in options.examples for one in pickle.loads(path.read_bytes()) if one["queries"]]
    started, seen, step = time.time(), [0.0, 0], 0
    for some in steps_of(made, tokenizer, draw):
        if (done := (time.time() - started) / 60 / options.minutes) >= 1:
            break
        scale = min(1.0, (step + 1) / 60) * max(0.02, 1 - done)
        for group, rate in zip(optimizer.param_groups, (RATE, HEAD_RATE), strict=True):
            group["lr"] = rate * scale
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half_precision()):
            odds = model(**padded([one for one, _ in some]))
        loss = loss_of(odds.float(), some)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step, seen = step + 1, [seen[0] + loss.item(), seen[1] + 1]
        if step % 100 == 0:
            print(f"{step} steps, {done:.0%}, loss {seen[0] / seen[1]:.3f}", flush=True)
            seen = [0.0, 0]
    options.output.mkdir(parents=True, exist_ok=True)
    torch.save(model.state_dict(), options.output / "checker.pt")
    write_onnx(model, options.output / CHECKER_FILE, ["odds"], of_tokens=["odds"])


if __name__ == "__main__":
    main()
