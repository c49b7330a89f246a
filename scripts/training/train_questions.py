"""Train the reader of questions from MiniLM: what a question asks for, and where that stands in it.

One pass over a question gives its kind, the kind of answer, operation, match and negation from the mean of the tokens,
and a tag for each token, each with its loss where the label is known. Several runs with other seeds are averaged. The
first half of CHOOSE fits temperature and thresholds; its second half is reported once with --report. One core takes
some minutes a run.
"""

import json
import random
import shutil
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import AutoModel

from local_rag.models.own_models import ONNX_FILE, TOKENIZER_FILE
from local_rag.plan_records import ANSWER_TYPES, KINDS, MATCHES, OPERATIONS
from local_rag.understanding.question_reader import (
    CALIBRATION_FILE,
    LENGTH,
    SHIPPED,
    TAGS,
    Calibration,
    QuestionReader,
)
from scripts.training.export_reader import quantize
from scripts.training.question_examples import Example, all_examples, pool_of, varied
from scripts.training.reader_model import half_precision

HEADS: dict[str, Sequence[Any]] = {
    "kind": KINDS,
    "answer_type": ANSWER_TYPES,
    "operation": OPERATIONS,
    "match": MATCHES,
    "negated": (False, True),
    "tags": TAGS,
}
WEIGHTS = {"kind": 1.0, "answer_type": 0.3, "operation": 0.4, "match": 0.3, "negated": 0.3, "tags": 1.5}
BATCH, RATE, HEAD_RATE, WARM_UP, SMOOTHING, DROPOUT = 32, 1.5e-4, 1.5e-3, 0.08, 0.05, 0.1
FROZEN_LAYERS = 2
RIGHT = 0.96  # of what is said to be of a kind, where its threshold is chosen
# The lowest threshold: less sure ones are questions to passages that look like another kind, and who greets is sure.
LEAST = dict.fromkeys(KINDS, 0.6) | {"chat": 0.9}
OTHERS = 0.4  # the share of the other questions that an epoch draws
IGNORED = -100


class TorchQuestions(torch.nn.Module):
    """MiniLM with a head for each output; `HEADS` names them."""

    def __init__(self, start: Path) -> None:
        super().__init__()
        self.bert = AutoModel.from_pretrained(
            start, attn_implementation="sdpa", hidden_dropout_prob=DROPOUT, attention_probs_dropout_prob=DROPOUT
        )
        self.heads = torch.nn.ModuleDict({name: torch.nn.Linear(384, len(of)) for name, of in HEADS.items()})
        self.dropout = torch.nn.Dropout(DROPOUT)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the logits of all heads."""
        hidden = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        share = mask.unsqueeze(-1).to(hidden.dtype)
        pooled = self.dropout((hidden * share).sum(1) / share.sum(1))
        found = {name: head(pooled) for name, head in self.heads.items() if name != "tags"}
        return found | {"tags": self.heads["tags"](self.dropout(hidden))}


def tag_labels(example: Example, encoding: Any) -> list[int]:
    """Return the tag of each token; IGNORED for all if they are not known."""
    if example.spans is None:
        return [IGNORED] * len(encoding.ids)
    labels = list[int]()
    begun = set[int]()
    for start, end in encoding.offsets:
        at = next((n for n, (_, a, b) in enumerate(example.spans) if start < b and a < end), None)
        if at is None or start == end:
            labels.append(0)
            continue
        slot = example.spans[at][0]
        labels.append(TAGS.index(slot if slot == "cut" else f"{'I' if at in begun else 'B'}-{slot}"))
        begun.add(at)
    return labels


def labels_of(example: Example) -> dict[str, int]:
    """Return the label of each head but the tags; IGNORED where it is not known."""
    return {
        name: IGNORED if (value := getattr(example, name)) is None else list(of).index(value)
        for name, of in HEADS.items()
        if name != "tags"
    }


def batches(examples: Sequence[Example], tokenizer: Tokenizer) -> Iterator[tuple[Sequence[Example], Any]]:
    """Yield batches of questions of similar length, in order of chance."""
    encodings = tokenizer.encode_batch([one.question for one in examples])
    order = list(range(len(examples)))
    random.shuffle(order)
    blocks = [
        sorted(order[at : at + BATCH * 20], key=lambda n: len(encodings[n].ids))
        for at in range(0, len(order), BATCH * 20)
    ]
    rows = [block[at : at + BATCH] for block in blocks for at in range(0, len(block), BATCH)]
    random.shuffle(rows)
    for some in rows:
        longest = max(len(encodings[n].ids) for n in some)
        ids, mask = (torch.zeros((len(some), longest), dtype=torch.long) for _ in range(2))
        tags = torch.full((len(some), longest), IGNORED)
        for row, n in enumerate(some):
            size = len(encodings[n].ids)
            ids[row, :size], mask[row, :size] = torch.tensor(encodings[n].ids), 1
            tags[row, :size] = torch.tensor(tag_labels(examples[n], encodings[n]))
        yield [examples[n] for n in some], (ids, mask, tags)


def loss_of(outputs: dict[str, torch.Tensor], examples: Sequence[Example], tags: torch.Tensor) -> torch.Tensor:
    """Return the weighted sum of the losses of all heads."""
    share = torch.tensor([one.weight for one in examples])
    labels = [labels_of(one) for one in examples]
    total = torch.zeros(())
    for name, logits in outputs.items():
        if name == "tags":
            each = torch.nn.functional.cross_entropy(
                logits.float().transpose(1, 2), tags, reduction="none", ignore_index=IGNORED, label_smoothing=0.02
            )
            known = (tags != IGNORED).float() * share[:, None]
            total = total + WEIGHTS[name] * (each * known).sum() / known.sum().clamp(min=1)
            continue
        wanted = torch.tensor([one[name] for one in labels])
        each = torch.nn.functional.cross_entropy(
            logits.float(), wanted, reduction="none", ignore_index=IGNORED, label_smoothing=SMOOTHING
        )
        known = (wanted != IGNORED).float() * share
        total = total + WEIGHTS[name] * (each * known).sum() / len(examples)
    return total


def train(
    start: Path,
    plans: Sequence[Example],
    others: Sequence[Example],
    epochs: int,
    seed: int,
    output: Path,
    weights: Path | None,
) -> TorchQuestions:
    """Train one model; what each epoch has made of it is kept until the next one."""
    torch.manual_seed(seed)
    random.seed(seed)
    model, tokenizer, pool = TorchQuestions(start).train(), load_tokenizer(start), pool_of(plans)
    if weights:
        model.load_state_dict(torch.load(weights, weights_only=True))
    # The words, and the lowest layers: so few questions teach them nothing, and a step costs a third less.
    for part in (model.bert.embeddings, *model.bert.encoder.layer[:FROZEN_LAYERS]):
        part.requires_grad_(False)
    body = [weight for weight in model.bert.parameters() if weight.requires_grad]
    heads = list(model.heads.parameters())
    optimizer = torch.optim.AdamW([{"params": body}, {"params": heads}], weight_decay=0.01)
    chance, begun = random.Random(seed), time.monotonic()
    drawn = int(OTHERS * len(others))
    steps, done = epochs * ((len(plans) + drawn) // BATCH + 1), 0
    for epoch in range(epochs):
        examples = [*(varied(one, pool, chance) if epoch else one for one in plans), *chance.sample(others, drawn)]
        seen = list[float]()
        for some, (ids, mask, tags) in batches(examples, tokenizer):
            rate = min(1.0, done / (WARM_UP * steps), max(0.02, 1 - done / steps)) * (0.6 if weights else 1.0)
            for group, highest in zip(optimizer.param_groups, (RATE, HEAD_RATE), strict=True):
                group["lr"] = highest * rate
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half_precision()):
                outputs = model(ids, mask)
            loss = loss_of(outputs, some, tags)
            loss.backward()  # type: ignore[no-untyped-call]
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            seen.append(loss.item())
            done += 1
        torch.save(model.state_dict(), output / f"seed-{seed}.pt")
        click.echo(f"seed {seed}, epoch {epoch + 1}: loss {np.mean(seen):.3f}, {time.monotonic() - begun:.0f} s")
    return model.eval()


def averaged(models: Sequence[TorchQuestions]) -> TorchQuestions:
    """Return a model with the mean of the weights of several, which began alike."""
    first = models[0]
    states = [one.state_dict() for one in models]
    first.load_state_dict({name: torch.stack([one[name].float() for one in states]).mean(0) for name in states[0]})
    return first


def load_tokenizer(start: Path) -> Tokenizer:
    """Load the tokenizer, which reads the end of a text that is too long: there the question mostly stands."""
    tokenizer = Tokenizer.from_file(str(start / TOKENIZER_FILE))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LENGTH, direction="left")
    return tokenizer


class Outputs(torch.nn.Module):
    """Return what each head says of one question, whose tokens are all of the batch."""

    def __init__(self, model: TorchQuestions) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Run the encoder once."""
        found = self.model(input_ids, torch.ones_like(input_ids))
        return tuple(found[name] for name in HEADS)


def export(model: TorchQuestions, start: Path, output: Path) -> None:
    """Write the model in int8, with its tokenizer, into a folder."""
    output.mkdir(parents=True, exist_ok=True)
    lengths = {name: {1: "length"} for name in ("input_ids", "tags")}
    with tempfile.TemporaryDirectory() as temporary:
        full, example = Path(temporary) / "full.onnx", (torch.ones((1, 24), dtype=torch.long),)
        torch.onnx.export(
            Outputs(model).eval(), example, full, dynamo=False, opset_version=20, dynamic_axes=lengths,
            input_names=["input_ids"], output_names=list(HEADS),
        )  # fmt: skip
        quantize(full, output / ONNX_FILE)
    shutil.copy(start / TOKENIZER_FILE, output / TOKENIZER_FILE)
    click.echo(f"{output / ONNX_FILE}: {(output / ONNX_FILE).stat().st_size:,} bytes")


def calibrate(reader: QuestionReader, plans: Sequence[dict[str, Any]]) -> Calibration:
    """Return the temperature with the least loss on plans, and per kind the least probability that is mostly right."""
    logits = np.array([reader.logits(one["question"])[1]["kind"] for one in plans])
    wanted = np.array([KINDS.index(one["kind"]) for one in plans])

    def chances(temperature: float) -> np.ndarray:
        raised = np.exp((logits - logits.max(1, keepdims=True)) / temperature)
        return np.asarray(raised / raised.sum(1, keepdims=True))

    def loss(temperature: float) -> float:
        return float(-np.log(chances(temperature)[np.arange(len(wanted)), wanted]).mean())

    temperature = min((round(0.5 + 0.05 * step, 2) for step in range(40)), key=loss)
    found, thresholds = chances(temperature), dict[str, float]()
    for number, kind in enumerate(KINDS[1:], start=1):
        said = found.argmax(1) == number
        for least in np.arange(LEAST[kind], 0.96, 0.05):
            counted = said & (found[:, number] >= least)
            if not counted.any() or (wanted[counted] == number).mean() >= RIGHT:
                break
        thresholds[kind] = round(float(least), 2)
    rows = found[:, KINDS.index("rows")]
    return Calibration(temperature, thresholds, round(float(np.quantile(rows[wanted == KINDS.index("rows")], 0.06)), 3))


def judged(reader: QuestionReader, plans: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return how many plans are right, by kind and by slot, and what a question costs."""
    kinds, slots = defaultdict[str, Counter[str]](Counter), defaultdict[str, Counter[str]](Counter)
    begun = time.process_time()
    found = [reader.read(one["question"]) for one in plans]
    each = (time.process_time() - begun) / max(1, len(plans))
    for wanted, plan in zip(plans, found, strict=True):
        kinds[wanted["kind"]]["all"] += 1
        kinds[plan.kind]["said"] += 1
        kinds[plan.kind]["right"] += plan.kind == wanted["kind"]
        if wanted["kind"] == "documents":
            for slot in ("operation", "subject", "match", "sort"):
                slots[slot]["all"] += 1
                slots[slot]["right"] += getattr(plan, slot) == wanted.get(slot, "")
            slots["negated"]["all"] += 1
            slots["negated"]["right"] += plan.negated == bool(wanted.get("negated"))
            slots["limits"]["all"] += 1
            slots["limits"]["right"] += set(plan.limits) == set(wanted.get("limits", []))
        if wanted["kind"] in {"changes", "brief"}:
            slots["documents"]["all"] += 1
            slots["documents"]["right"] += list(plan.documents) == wanted.get("documents", [])
            for slot in ("aspect", "length"):
                slots[slot]["all"] += 1
                slots[slot]["right"] += getattr(plan, slot) == wanted.get(slot, "")
        if wanted["kind"] == "passages":
            slots["parts"]["all"] += 1
            slots["parts"]["right"] += len(plan.parts) == len(wanted.get("parts", []))
            slots["compound"]["all"] += bool(wanted.get("parts"))
            slots["compound"]["right"] += len(plan.parts) == len(wanted.get("parts", [])) > 0
        if wanted.get("answer_type") is not None:
            slots["answer_type"]["all"] += 1
            slots["answer_type"]["right"] += plan.answer_type == wanted["answer_type"]
    right = sum(one["right"] for one in kinds.values())
    special = ("documents", "changes", "brief")
    said = sum(kinds[one]["said"] for one in special)
    return {
        "questions": len(plans),
        "kind_right": round(right / len(plans), 4),
        "special_said": said,
        "special_right": sum(kinds[one]["right"] for one in special),
        "special_all": sum(kinds[one]["all"] for one in special),
        "false_alarms_on_passages": sum(
            plan.kind != "passages" for wanted, plan in zip(plans, found, strict=True) if wanted["kind"] == "passages"
        ),
        "kinds": {name: dict(one) for name, one in sorted(kinds.items())},
        "slots": {name: f"{one['right']}/{one['all']}" for name, one in slots.items()},
        "milliseconds_of_processor": round(1000 * each, 2),
    }


@click.command(help=__doc__)
@click.argument("plans", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--sets", type=click.Path(exists=True, path_type=Path), required=True, help="Folder of other questions.")
@click.option("--sheets", multiple=True, type=click.Path(exists=True, path_type=Path), help="Questions about rows.")
@click.option(
    "--start", type=click.Path(exists=True, path_type=Path), required=True, help="Folder of all-MiniLM-L6-v2."
)
@click.option("--choose", type=click.Path(exists=True, path_type=Path), required=True, help="Plans to choose on.")
@click.option("--output", type=click.Path(path_type=Path), default=SHIPPED, show_default=False)
@click.option("--kept", type=click.Path(path_type=Path), required=True, help="Folder for the weights of each seed.")
@click.option(
    "--weights", type=click.Path(exists=True, path_type=Path), help="Weights of an earlier run to go on from."
)
@click.option("--epochs", default=6, show_default=True)
@click.option("--seeds", default=3, show_default=True)
@click.option("--report", is_flag=True, help="Also report on the second half of --choose, once.")
def main(
    plans: Sequence[Path],
    sets: Path,
    sheets: Sequence[Path],
    start: Path,
    choose: Path,
    output: Path,
    kept: Path,
    weights: Path | None,
    epochs: int,
    seeds: int,
    report: bool,
) -> None:
    torch.set_num_threads(1)
    kept.mkdir(parents=True, exist_ok=True)
    written, others = all_examples(plans, sets, sheets)
    click.echo(
        f"{len(written)} plans, {len(others)} other questions; {Counter(one.kind for one in [*written, *others])}"
    )
    model = averaged([train(start, written, others, epochs, seed, kept, weights) for seed in range(seeds)])
    export(model, start, output)
    lines = [json.loads(line) for line in choose.read_text(encoding="utf-8").splitlines()]
    half = len(lines) // 2
    made = calibrate(QuestionReader(output), lines[:half])
    (output / CALIBRATION_FILE).write_text(json.dumps(asdict(made), indent=1) + "\n")
    for name, some in (("choose", lines[:half]), *((("report", lines[half:]),) if report else ())):
        click.echo(f"{name}: {json.dumps(judged(QuestionReader(output), some))}")


if __name__ == "__main__":
    main()
