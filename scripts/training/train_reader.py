"""Train the reader, from the weights of the shipped one, on the examples of mine_reader_examples.

One pass over question and passage gives three logits, each with its loss: relevance (softmax over the passages of a
question), "answers the question" (each passage by itself), and "belongs to the answer" (each token, and softmax over
the sentences of a passage that answers). It runs on a GPU if there is one, else on one core. The length of training is
counted in tokens, so that the load of the machine changes nothing. After a kill, run it again to continue.
"""

import json
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import click
import torch
from tokenizers import Tokenizer

from scripts.training.mine_reader_examples import sentences
from scripts.training.reader_model import (
    TorchReader,
    half_precision,
    load_start,
    load_tokenizer,
    token_labels,
)

EXAMPLES = 16  # per step
CHARACTERS = 900  # of a passage, so that it fits
WARM_UP = 0.06
CHECKPOINT_SECONDS = 150.0
HELD_OUT, JUDGED = 320, 5  # examples, and passages of each
LOOKS = 8  # at the held-out examples
TITLED = 0.6
WEIGHTS = {"relevance": 1.0, "answers": 0.5, "tokens": 1.0, "sentences": 0.5}  # of the losses

Example = dict[str, Any]
Span = list[int]


def crop(text: str, spans: Sequence[Span], chance: random.Random, size: int = CHARACTERS) -> tuple[str, list[Span]]:
    """Return at most `size` characters of a text, from the beginning of a sentence, with its first span if possible."""
    if len(text) <= size:
        return text, list(spans)
    starts = [start for start, _ in sentences(text) if start <= max(0, len(text) - size // 2)]
    if spans:
        first, last = spans[0]
        starts = [start for start in starts if start <= first and last - start <= size] or [first]
    start = chance.choice(starts)
    inside = [[max(0, a - start), min(size, b - start)] for a, b in spans if a < start + size and b > start]
    return text[start : start + size], inside


def draw(example: Example, negatives: int, chance: random.Random) -> list[Example]:
    """Return the passages of an example to train on, cropped, all with their titles or all without."""
    right, others = example["passages"][0], example["passages"][1:]
    pool = others + others[:4]  # the first are the most likely to be retrieved
    drawn = {id(one): one for one in chance.sample(pool, min(len(pool), negatives + 2))}.values()
    titled, found = example["titled"] or chance.random() < TITLED, []
    for one in (right, *list(drawn)[:negatives]):
        text, spans = crop(one["text"], one["spans"] or [], chance)
        found.append(as_pair(example, one | {"text": text, "spans": None if one["spans"] is None else spans}, titled))
    return found


def as_pair(example: Example, one: Example, titled: bool) -> Example:
    """Return a passage as a reader sees it: its title, if any, then its text."""
    prefix = f"{one['title']}\n" if titled and one["title"] else ""
    spans = one["spans"] if one["spans"] is None else [[a + len(prefix), b + len(prefix)] for a, b in one["spans"]]
    return one | {"question": example["question"], "prefix": prefix, "text": prefix + one["text"], "spans": spans}


def batches(encodings: Sequence[Any], size: int) -> list[tuple[list[int], dict[str, torch.Tensor]]]:
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


def run_pairs(model: TorchReader, pairs: Sequence[Example], tokenizer: Tokenizer) -> list[Any]:
    """Return relevance, answers, logits of tokens, and encoding of each pair; run pairs of similar length together."""
    encodings = tokenizer.encode_batch([(one["question"], one["text"]) for one in pairs])
    found: list[Any] = [None] * len(pairs)
    device = model.classifier.weight.device.type
    half = device == "cuda" or half_precision()
    for rows, inputs in batches(encodings, 128 if device == "cuda" else 12):
        given = {name: values.to(device) for name, values in inputs.items()}
        with torch.autocast(device, dtype=torch.bfloat16, enabled=half):
            relevance, answers, tokens = (out.float().cpu() for out in model(**given))
        for row, index in enumerate(rows):
            found[index] = relevance[row], answers[row], tokens[row, : len(encodings[index])], encodings[index]
    return found


def sentence_tokens(text: str, offsets: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return for each sentence which tokens lie in it, at least in part; none does if it was cut off."""
    return [[at for at, (a, b) in enumerate(offsets) if a < end and b > start] for start, end in sentences(text)]


def sentence_logits(one: Example, tokens: torch.Tensor, encoding: Any) -> tuple[list[Span], torch.Tensor]:
    """Return the sentences below the title that were not cut off, and the mean logit of the tokens of each."""
    parts = zip(encoding.offsets, encoding.sequence_ids, strict=True)
    held = sentence_tokens(one["text"], [place if part == 1 else (0, 0) for place, part in parts])
    places = [
        ([start, end], inside)
        for (start, end), inside in zip(sentences(one["text"]), held, strict=True)
        if inside and start >= len(one["prefix"])
    ]
    logits = [tokens[inside].mean() for _, inside in places]
    return [place for place, _ in places], torch.stack(logits) if logits else torch.zeros(0)


def sentence_scores(text: str, offsets: Sequence[tuple[int, int]], tokens: Sequence[float]) -> list[float]:
    """Return the mean logit of the tokens of each sentence; one that was cut off scores lowest."""
    held = sentence_tokens(text, offsets)
    return [fmean(tokens[at] for at in inside) if inside else float("-inf") for inside in held]


def losses(drawn: Sequence[Sequence[Example]], outputs: Sequence[Any]) -> dict[str, torch.Tensor]:
    """Return the losses of a step: of passages, answers, tokens and sentences."""
    found: dict[str, list[torch.Tensor]] = defaultdict(list)
    binary = torch.nn.functional.binary_cross_entropy_with_logits
    position = 0
    for passages in drawn:
        outs = outputs[position : position + len(passages)]
        position += len(passages)
        scores = torch.stack([out[0] for out in outs])
        if passages[0]["relevant"] and len(passages) > 1:
            found["relevance"].append(torch.nn.functional.cross_entropy(scores[None], torch.zeros(1, dtype=torch.long)))
        for one, (_, answers, tokens, encoding) in zip(passages, outs, strict=True):
            labels = torch.tensor(token_labels(encoding.offsets, encoding.sequence_ids, one["spans"] or []))
            cut = bool(one["spans"]) and not (labels == 1).any()
            if one["answers"] is not None and not cut:
                found["answers"].append(binary(answers, torch.tensor(float(one["answers"]))))
            if one["spans"] is not None and not cut and (labels >= 0).any():
                share = 1.0 if one["spans"] else 0.3  # a passage without answer teaches less
                found["tokens"].append(share * binary(tokens[labels >= 0], labels[labels >= 0].float()))
            if cut or not one["relevant"]:
                continue
            places, logits = sentence_logits(one, tokens, encoding)
            right = torch.tensor([any(start < b and a < end for a, b in one["spans"] or []) for start, end in places])
            if right.any() and not right.all():
                found["sentences"].append(-logits.log_softmax(0)[right].logsumexp(0))
    return {name: torch.stack(values).mean() for name, values in found.items()}


def area(right: Sequence[float], wrong: Sequence[float]) -> float:
    """Return the probability that a right one scores higher than a wrong one (AUC)."""
    pairs = [(a > b) + 0.5 * (a == b) for a in right for b in wrong]
    return fmean(pairs) if pairs else 0.0


def evaluate(model: TorchReader, examples: Sequence[Example], tokenizer: Tokenizer) -> dict[str, Any]:
    """Return MRR of the right passage, share of right sentences first, and AUC of "answers", held-out examples only."""
    ranks: dict[str, list[float]] = defaultdict(list)
    first = list[bool]()
    right, wrong = list[float](), list[float]()
    for example in examples:
        chance = random.Random(example["question"])
        pairs = []
        for one in example["passages"][:JUDGED]:
            text, spans = crop(one["text"], one["spans"] or [], chance)
            pairs.append(as_pair(example, one | {"text": text, "spans": one["spans"] and spans}, False))
        with torch.inference_mode():
            outputs = run_pairs(model, pairs, tokenizer)
        scores = [float(out[0]) for out in outputs]
        if example["passages"][0]["relevant"]:
            ranks[example["source"]].append(1 / (1 + sum(other >= scores[0] for other in scores[1:])))
        for one, out in zip(pairs, outputs, strict=True):
            if one["answers"] is not None:
                (right if one["answers"] else wrong).append(float(out[1]))
        spans, text = pairs[0]["spans"], pairs[0]["text"]
        if spans and len(sentences(text)) > 1:
            places, logits = sentence_logits(pairs[0], outputs[0][2], outputs[0][3])
            start, end = places[int(logits.argmax())]
            first.append(any(start < b and a < end for a, b in spans))
    return {
        "mrr": round(fmean(value for values in ranks.values() for value in values), 4),
        "sentence_first": round(fmean(first), 4),
        "auc": round(area(right, wrong), 4),
        "mrr_of_sources": {source: round(fmean(values), 3) for source, values in ranks.items()},
    }


def learning_rate(done: float, highest: float) -> float:
    """Return the learning rate: it warms up, then falls linearly to zero."""
    return highest * min(1.0, done / WARM_UP, max(0.02, (1 - done) / (1 - WARM_UP)))


def read_examples(path: Path) -> tuple[list[Example], list[Example]]:
    """Return the examples to train on, and some of each source that are held out."""
    read = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    by_source: dict[str, list[Example]] = defaultdict(list)
    for example in (example for example in read if example["held_out"]):
        by_source[example["source"]].append(example)
    chance = random.Random(0)
    share = HELD_OUT // len(by_source)
    held_out = [one for found in by_source.values() for one in chance.sample(found, min(len(found), share))]
    return [example for example in read if not example["held_out"]], held_out


def optimizer_of(model: TorchReader) -> torch.optim.Optimizer:
    """Return an optimizer with two groups of weights: the outputs for answers and tokens learn faster than the rest."""
    heads = [*model.answers.parameters(), *model.tokens.parameters(), model.layers]
    new = {id(weight) for weight in heads}
    body = [weight for weight in model.parameters() if weight.requires_grad and id(weight) not in new]
    return torch.optim.AdamW([{"params": body}, {"params": heads}], weight_decay=0.01)


def take_step(
    model: TorchReader, optimizer: torch.optim.Optimizer, drawn: Sequence[Sequence[Example]], tokenizer: Tokenizer
) -> tuple[dict[str, float], int]:
    """Train on some examples; return their losses, and how many tokens they have."""
    outputs = run_pairs(model, [pair for passages in drawn for pair in passages], tokenizer)
    parts = losses(drawn, outputs)
    torch.stack([WEIGHTS[name] * part for name, part in parts.items()]).sum().backward()  # type: ignore[no-untyped-call]
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return {name: part.item() for name, part in parts.items()}, sum(len(out[3]) for out in outputs)


@click.command(help=__doc__)
@click.argument("examples_path", metavar="EXAMPLES", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.argument("output", type=click.Path(file_okay=False, path_type=Path))
@click.option("--tokens", "budget", type=int, default=27_700_000, show_default=True)
@click.option("--rate", type=float, default=1e-4, show_default=True)
@click.option("--head-rate", type=float, default=1e-3, show_default=True, help="Learning rate of answers and tokens.")
@click.option("--negatives", type=int, default=4, show_default=True)
def main(examples_path: Path, output: Path, budget: int, rate: float, head_rate: float, negatives: int) -> None:
    torch.set_num_threads(1)
    examples, held_out = read_examples(examples_path)
    click.echo(f"{len(examples)} examples, {len(held_out)} held out")
    tokenizer, model = load_tokenizer(), load_start()
    model.to("cuda" if torch.cuda.is_available() else "cpu").train()
    optimizer = optimizer_of(model)
    output.mkdir(parents=True, exist_ok=True)
    checkpoint = output / "checkpoint.pt"
    at: dict[str, Any] = {"step": 0, "tokens": 0, "curve": []}
    if checkpoint.exists():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        at = {name: saved[name] for name in at}
        click.echo(f"continuing at step {at['step']}")
    else:
        at["curve"].append({"tokens": 0, **evaluate(model, held_out, tokenizer)})
        click.echo(json.dumps(at["curve"][-1]))
    seen: dict[str, list[float]] = defaultdict(list)
    stored, order = time.monotonic(), list[int]()
    while at["tokens"] < budget:
        epoch, number = divmod(at["step"], max(1, len(examples) // EXAMPLES))
        if not order or not number:
            order = random.Random(epoch).sample(range(len(examples)), len(examples))
        chance = random.Random(at["step"])
        drawn = [draw(examples[row], negatives, chance) for row in order[number * EXAMPLES : (number + 1) * EXAMPLES]]
        for settings, highest in zip(optimizer.param_groups, (rate, head_rate), strict=True):
            settings["lr"] = learning_rate(at["tokens"] / budget, highest)
        parts, read = take_step(model, optimizer, drawn, tokenizer)
        looked = at["tokens"] * LOOKS // budget
        at["step"] += 1
        at["tokens"] += read
        for name, part in parts.items():
            seen[name].append(part)
        means = {name: round(fmean(values[-25:]), 3) for name, values in seen.items()}
        if at["step"] % 10 == 0:
            click.echo(f"step {at['step']}, {at['tokens']} tokens, {time.process_time():.0f} s, loss {means}")
        looks = at["tokens"] * LOOKS // budget > looked
        if looks:
            at["curve"].append({"tokens": at["tokens"], "loss": means, **evaluate(model, held_out, tokenizer)})
            click.echo(json.dumps(at["curve"][-1]))
        if looks or time.monotonic() - stored > CHECKPOINT_SECONDS:
            torch.save(at | {"model": model.state_dict(), "optimizer": optimizer.state_dict()}, output / "new.pt")
            (output / "new.pt").replace(checkpoint)
            stored = time.monotonic()
    torch.save(model.state_dict(), output / "model.pt")
    (output / "curve.json").write_text(json.dumps(at["curve"], indent=1) + "\n")


if __name__ == "__main__":
    main()
