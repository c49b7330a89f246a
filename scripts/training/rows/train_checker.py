"""Train the checker of rows: of the queries that the planner thinks of, those whose result is the known answer.

    python -m scripts.training.rows.train_checker OUTPUT EXAMPLES... --start PLANNER.pt --minutes 15

EXAMPLES are what `queries` writes; PLANNER is a trained planner, whose encoder is the start. OUTPUT becomes a folder
with the int8 model.
"""

import argparse
import pickle
import random
import time
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import nn

from local_rag.tables.checker import CHECKER_FILE, LENGTH, TOKENIZER
from scripts.training.reader_model import half_precision, load_start
from scripts.training.rows.export import write_onnx
from scripts.training.rows.model import TorchPlanner

RATE, HEAD_RATE, QUESTIONS = 6e-5, 5e-4, 6  # questions of a step
_MOST_RIGHT, _MOST_WRONG = 2, 5  # queries of a question


class TorchChecker(nn.Module):
    """Return the log odds of each pair, shape (batch,)."""

    def __init__(self, bert: Any) -> None:
        super().__init__()
        self.bert, self.head = bert, nn.Linear(bert.config.hidden_size, 1)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor) -> Any:
        """Run the encoder once."""
        out = self.bert(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        return self.head(out[:, 0]).squeeze(-1)


def chosen(one: dict[str, Any], draw: random.Random) -> list[tuple[str, bool]]:
    """Return some queries of a question as text, each with whether it is right."""
    right = [each for each in one["queries"] if each["right"]][:_MOST_RIGHT]
    wrong = [each for each in one["queries"] if not each["right"]][:_MOST_WRONG]
    if not right:
        wrong = wrong[:3]
    some = [(each["text"], each["right"]) for each in (*right, *wrong)]
    draw.shuffle(some)
    return some


def loss_of(logits: torch.Tensor, labels: torch.Tensor, groups: list[int]) -> torch.Tensor:
    """Return the loss of each pair, and of the choice among the queries of each question."""
    total = nn.functional.binary_cross_entropy_with_logits(logits, labels)
    choices = [
        torch.logsumexp(some, 0) - torch.logsumexp(some[known > 0], 0)
        for some, known in zip(logits.split(groups), labels.split(groups), strict=True)
        if known.any() and not known.all()
    ]
    return total + 0.5 * torch.stack(choices).mean() if choices else total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("examples", type=Path, nargs="+")
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    draw = random.Random(0)
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    tokenizer.enable_truncation(LENGTH)
    planner = TorchPlanner(load_start().bert)
    planner.load_state_dict(torch.load(options.start, weights_only=True))
    for part in planner.bert.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.1
    model = TorchChecker(planner.bert).train()
    optimizer = torch.optim.AdamW(
        [{"params": model.bert.parameters()}, {"params": model.head.parameters()}], weight_decay=0.01
    )
    made = [one for path in options.examples for one in pickle.loads(path.read_bytes()) if one["queries"]]
    started, seen, step, at = time.time(), [0.0, 0], 0, len(made)
    while (done := (time.time() - started) / 60 / options.minutes) < 1:
        if at + QUESTIONS > len(made):
            draw.shuffle(made)
            at = 0
        groups = [chosen(one, draw) for one in made[at : at + QUESTIONS]]
        asked = [one["question"] for one in made[at : at + QUESTIONS]]
        at += QUESTIONS
        pairs = [(question, text) for question, some in zip(asked, groups, strict=True) for text, _ in some]
        encodings = tokenizer.encode_batch(pairs)
        longest = max(len(one.ids) for one in encodings)
        padded = [
            torch.tensor([[*values, *[0] * (longest - len(values))] for values in every])
            for every in zip(*((one.ids, one.attention_mask, one.type_ids) for one in encodings), strict=True)
        ]
        labels = torch.tensor([float(right) for some in groups for _, right in some])
        scale = min(1.0, (step + 1) / 60) * max(0.02, 1 - done)
        for group, rate in zip(optimizer.param_groups, (RATE, HEAD_RATE), strict=True):
            group["lr"] = rate * scale
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half_precision()):
            logits = model(*padded)
        loss = loss_of(logits.float(), labels, [len(some) for some in groups])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step, seen = step + 1, [seen[0] + loss.item(), seen[1] + 1]
        if step % 100 == 0:
            epoch = step * QUESTIONS / len(made)
            print(f"{step} steps, {done:.0%}, loss {seen[0] / seen[1]:.3f}, epoch {epoch:.2f}", flush=True)
            seen = [0.0, 0]
    write_onnx(model, options.output / CHECKER_FILE, ["odds"])


if __name__ == "__main__":
    main()
