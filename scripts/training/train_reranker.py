"""Train the cross-encoder of the profile `starter` from the MiniLM embedder, on the groups of mine_reranker_pairs.

Each group is a question, its passage and hard negatives; the loss is a softmax over the group. Training stops when the
time is up or the held-out part stops improving, and keeps the best weights. After a kill, run it again to continue.
Then `python -m scripts.training.export_reranker` makes an int8 ONNX model of the weights.
"""

import copy
import json
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import torch
from tokenizers import Tokenizer
from transformers import AutoModelForSequenceClassification

from local_rag.machine import physical_cores
from local_rag.models.registry import default_models_directory
from scripts.training.reader_model import half_precision

GROUPS = 16  # groups per step
NEGATIVES = 4
LENGTH = 176  # tokens of question and passage together
LEARNING_RATE = 1.2e-4
WARM_UP = 0.04
EVALUATE_SECONDS = 420.0
PATIENCE = 3
HELD_OUT = 150
NATURAL = {"xquad", "covid-qa", "pubmedqa", "clapnq", "scifact-train"}
NATURAL_WEIGHT = 2.0  # how much more likely such a group is early in an epoch

Group = dict[str, Any]


def read_groups(path: Path) -> tuple[list[Group], list[Group]]:
    """Return the groups to train on and the held-out groups, an equal share of every source."""
    groups = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    groups = [group for group in groups if len(group["negatives"]) >= NEGATIVES]
    by_source: dict[str, list[Group]] = defaultdict(list)
    for group in groups:
        if group["held_out"]:
            by_source[group["source"]].append(group)
    chance = random.Random(0)
    held_out = [
        group
        for source in by_source.values()
        for group in chance.sample(source, min(len(source), HELD_OUT // len(by_source)))
    ]
    return [group for group in groups if not group["held_out"]], held_out


def epoch_order(groups: Sequence[Group], epoch: int) -> list[int]:
    """Shuffle the groups of one epoch, natural questions towards its beginning."""
    chance = random.Random(epoch)
    keys = [chance.random() ** (1 / (NATURAL_WEIGHT if group["source"] in NATURAL else 1.0)) for group in groups]
    return sorted(range(len(groups)), key=lambda index: -keys[index])


def passage(title_and_text: Sequence[str], with_title: bool) -> str:
    """Return a passage as the search pipeline would show it to a reranker: title, if any, then text."""
    title, text = title_and_text
    return f"{title}\n{text}" if title and with_title else text


def batches(encodings: Sequence[Any], size: int) -> "list[tuple[list[int], dict[str, torch.Tensor]]]":
    """Return batches of tokenized pairs of similar length, each with the positions of its pairs."""
    order = sorted(range(len(encodings)), key=lambda index: len(encodings[index].ids))
    found = []
    for start in range(0, len(order), size):
        rows = order[start : start + size]
        longest = len(encodings[rows[-1]].ids)
        inputs = torch.zeros((3, len(rows), longest), dtype=torch.long)
        for row, index in enumerate(rows):
            encoding = encodings[index]
            inputs[:, row, : len(encoding.ids)] = torch.tensor(
                [encoding.ids, encoding.attention_mask, encoding.type_ids]
            )
        names = ("input_ids", "attention_mask", "token_type_ids")
        found.append((rows, dict(zip(names, inputs, strict=True))))
    return found


def logits_of(model: Any, pairs: Sequence[tuple[str, str]], tokenizer: Tokenizer, size: int) -> torch.Tensor:
    """Return one logit for each pair, in order."""
    positions: list[int] = []
    pieces = []
    for rows, inputs in batches(tokenizer.encode_batch(list(pairs)), size):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half_precision()):
            pieces.append(model(**inputs).logits[:, 0].float())
        positions += rows
    return torch.cat(pieces)[torch.argsort(torch.tensor(positions))]


def evaluate(
    model: Any, groups: Sequence[Group], tokenizer: Tokenizer, threads: ThreadPoolExecutor
) -> tuple[float, dict[str, float]]:
    """Return the mean reciprocal rank of the right passage, over all groups and by source."""

    def reciprocal_rank(group: Group) -> float:
        torch.set_num_threads(1)
        texts = [passage(text, True) for text in (group["positive"], *group["negatives"])]
        with torch.inference_mode():
            logits = logits_of(model, [(group["question"], text) for text in texts], tokenizer, 9)
        return 1 / (1 + int((logits[1:] >= logits[0]).sum()))

    ranks: dict[str, list[float]] = defaultdict(list)
    for group, rank in zip(groups, threads.map(reciprocal_rank, groups), strict=True):
        ranks[group["source"]].append(rank)
    means = {source: fmean(values) for source, values in ranks.items()}
    return fmean(rank for values in ranks.values() for rank in values), means


def replicas_of(model: Any, count: int) -> list[Any]:
    """Return models that share their weights but have their own gradients.

    One thread each computes half as much again as one model on all cores, whose threads wait for each other.
    """
    replicas = [model, *(copy.deepcopy(model) for _ in range(count - 1))]
    for replica in replicas[1:]:
        for shared, own in zip(model.parameters(), replica.parameters(), strict=True):
            own.data = shared.data
    return replicas


def backward(model: Any, pairs: Sequence[tuple[str, str]], tokenizer: Tokenizer) -> float:
    """Add the gradients of the loss of some groups, divided by the groups of a step; return the loss."""
    torch.set_num_threads(1)
    logits = logits_of(model, pairs, tokenizer, 20).view(-1, NEGATIVES + 1)
    loss = torch.nn.functional.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.long), reduction="sum")
    (loss / GROUPS).backward()  # type: ignore[no-untyped-call]
    return loss.item() / GROUPS


def learning_rate(done: float) -> float:
    """Return the learning rate: it warms up, then falls linearly to zero."""
    return LEARNING_RATE * min(done / WARM_UP, max(0.02, (1 - done) / (1 - WARM_UP)))


def draw(group: Group, chance: random.Random) -> list[tuple[str, str]]:
    """Pair a question with its passage and fresh negatives, all with their titles or all without."""
    with_title = chance.random() < 0.5
    # The first negatives are the most likely to be retrieved, so they are drawn twice as often.
    pool = group["negatives"] + group["negatives"][:6]
    drawn = {id(text): text for text in chance.sample(pool, min(len(pool), NEGATIVES + 3))}.values()
    texts = [group["positive"], *list(drawn)[:NEGATIVES]]
    return [(group["question"], passage(text, with_title)) for text in texts]


def take_step(
    replicas: Sequence[Any], optimizer: Any, pairs: Sequence[tuple[str, str]], threads: ThreadPoolExecutor, **run: Any
) -> float:
    """Distribute pairs over the replicas, add up their gradients, update the shared weights; return the loss."""
    share = -(-GROUPS // len(replicas)) * (NEGATIVES + 1)
    shares = [pairs[start : start + share] for start in range(0, len(pairs), share)]
    losses = list(threads.map(backward, replicas, shares, [run["tokenizer"]] * len(shares)))
    for replica in replicas[1:]:
        for weight, other in zip(replicas[0].parameters(), replica.parameters(), strict=True):
            if weight.grad is not None and other.grad is not None:
                weight.grad += other.grad
                other.grad = None
    torch.nn.utils.clip_grad_norm_(replicas[0].parameters(), 1.0)
    for settings in optimizer.param_groups:
        settings["lr"] = learning_rate(run["done"])
    optimizer.step()
    optimizer.zero_grad()
    return sum(losses)


def load_start() -> tuple[Any, Tokenizer]:
    """Load the embedder as a cross-encoder with one new logit and frozen embeddings, and its tokenizer."""
    folder = default_models_directory() / "all-minilm-l6-v2"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LENGTH)
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(
        folder,
        num_labels=1,
        attn_implementation="eager",  # twice as fast as the fused kernel in bfloat16 on a CPU
        hidden_dropout_prob=0.0,  # one pass over so much data does not overfit
        attention_probs_dropout_prob=0.0,
    )
    model.bert.embeddings.requires_grad_(False)
    model.train()
    return model, tokenizer


@click.command()
@click.option("--groups", "groups_path", type=click.Path(path_type=Path), required=True)
@click.option("--output", type=click.Path(path_type=Path), required=True, help="Folder of checkpoint and model.")
@click.option("--minutes", type=float, default=38.0, show_default=True)
def main(groups_path: Path, output: Path, minutes: float) -> None:
    groups, held_out = read_groups(groups_path)
    click.echo(f"{len(groups)} groups, {len(held_out)} held out")
    model, tokenizer = load_start()
    replicas = replicas_of(model, physical_cores())
    threads = ThreadPoolExecutor(len(replicas))
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=LEARNING_RATE, weight_decay=0.01)
    output.mkdir(parents=True, exist_ok=True)
    checkpoint = output / "checkpoint.pt"
    at = {"step": 0, "active": 0.0, "best": 0.0, "unimproved": 0}
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        at = {name: saved[name] for name in at}
        click.echo(f"continuing at step {at['step']}, {at['active'] / 60:.1f} minutes")
    limit, evaluated, before, losses = minutes * 60, at["active"], time.monotonic(), []
    while at["active"] < limit and at["unimproved"] < PATIENCE:
        epoch, number = divmod(int(at["step"]), len(groups) // GROUPS)
        order = epoch_order(groups, epoch)[number * GROUPS : (number + 1) * GROUPS]
        chance = random.Random(int(at["step"]))
        pairs = [pair for index in order for pair in draw(groups[index], chance)]
        losses.append(take_step(replicas, optimizer, pairs, threads, tokenizer=tokenizer, done=at["active"] / limit))
        at["step"] += 1
        now = time.monotonic()
        at["active"] += min(now - before, 30.0)  # time in which the process was paused does not count
        before = now
        if at["step"] % 20 == 0:
            click.echo(f"step {at['step']}, {at['active'] / 60:.1f} min, loss {fmean(losses[-20:]):.4f}")
        if at["active"] - evaluated > EVALUATE_SECONDS or at["active"] >= limit:
            quality, by_source = evaluate(model, held_out, tokenizer, threads)
            click.echo(f"held out: MRR {quality:.4f} {json.dumps({k: round(v, 3) for k, v in by_source.items()})}")
            at["unimproved"] = 0 if quality > at["best"] else at["unimproved"] + 1
            if quality > at["best"]:
                at["best"] = quality
                model.save_pretrained(output / "model")
            torch.save(at | {"model": model.state_dict(), "optimizer": optimizer.state_dict()}, output / "new.pt")
            (output / "new.pt").replace(checkpoint)
            before, evaluated = time.monotonic(), at["active"]
    click.echo(
        f"best held-out MRR {at['best']:.4f}; now run python -m scripts.training.export_reranker {output / 'model'}"
    )


if __name__ == "__main__":
    main()
