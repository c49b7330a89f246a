"""Train the planner of rows on examples, and say how often its best program gives the answer on held-out files.

python -m scripts.training.rows.train OUTPUT --examples FILE... --epochs 4
"""

import argparse
import pickle
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from local_rag.tables.mentions import Mention
from local_rag.tables.planner import best
from local_rag.tables.program import NONE
from scripts.training.reader_model import half_precision, load_start
from scripts.training.rows.examples import Example
from scripts.training.rows.model import TorchPlanner, log_probabilities, padded, parts_of, prepared
from scripts.training.rows.search import OPERATIONS_OF

_PRIOR = 0.3
_MOST_HELD_OUT, _EVERY = 300, 1000  # questions that are asked after so many steps
_GROUPED = {"group": True, "max_min": False, "sum": False, "count": False, "average": False}
Made = tuple[dict[str, Any], list[Any]]  # a question and its examples


def load(files: list[Path]) -> list[Made]:
    found = []
    for file in files:
        found += pickle.loads(file.read_bytes())
    return found


def batches(items: list[Any], size: int, draw: random.Random) -> Any:
    """Yield batches of examples of about the same length, at random."""
    order = sorted(items, key=lambda one: len(one[0].encoded.ids) + draw.random() * 20)
    groups = [order[at : at + size] for at in range(0, len(order), size)]
    draw.shuffle(groups)
    return groups


def loss_of(model: TorchPlanner, batch: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half_precision()):
        whole, tokens = model(**padded([one.encoded for one, _, _ in batch]))
    whole, tokens = whole.float(), tokens.float()
    fits = torch.tensor([float(bool(one.programs)) for one, _, _ in batch])
    weights = torch.tensor([weight for _, _, weight in batch])
    fit_loss = (nn.functional.binary_cross_entropy_with_logits(whole[:, 0], fits, reduction="none") * weights).mean()
    losses = []
    for row, (one, given, _) in enumerate(batch):
        if one.programs:
            logs = log_probabilities(parts_of(whole[row], tokens[row], one, given), given)
            prior = -_PRIOR * torch.arange(len(logs)).float().clamp(max=12)
            losses.append(-torch.logsumexp(logs + prior, 0))
    programs = torch.stack(losses).mean() if losses else torch.zeros(())
    return programs, fit_loss


def meant(asked: dict[str, Any], one: Example) -> Example:
    """Return an example without the programs that compute something else than the kind of its question says."""
    kind = asked.get("kind", "")
    allowed, grouped = OPERATIONS_OF.get(kind), _GROUPED.get(kind)
    kept = [
        program
        for program in one.programs
        if (allowed is None or program.operation in allowed)
        and (grouped is None or (program.group != NONE) == grouped)
        and (kind != "compare_cols" or program.left != NONE)
    ]
    return replace(one, programs=tuple(kept)) if kept else one


def items_of(made: list[Made]) -> list[Any]:
    found = []
    for asked, examples in made:
        for each in examples:
            one = meant(asked, each)
            # A view without the right program may fit all the same: what it asks may only not be expressible.
            unsure = asked["answerable"] and not any(other.programs for other in examples)
            found.append((one, prepared(one), 0.3 if unsure else 1.0))
    return found


@torch.no_grad()
def evaluate(model: TorchPlanner, made: list[Made]) -> dict[str, Any]:
    """Count the questions whose most probable known program is the most probable of all choices."""
    model.eval()
    right = wrong = 0
    scored = []
    for asked, examples in made:
        surest = None
        for one in examples:
            whole, tokens = model(**padded([one.encoded]))
            mentioned = [Mention(column, kind, "") for column, kind in one.of_mentions]
            planned = best(whole[0].float().numpy(), tokens[0].float().numpy(), one.encoded, one.kinds, mentioned)
            program, logp = planned.programs[0]
            score = nn.functional.logsigmoid(whole[0, 0]).item() + logp
            if surest is None or score > surest[0]:
                surest = (score, program, one)
        if surest is None:
            continue
        is_right = surest[1] in set(surest[2].programs)
        scored.append((surest[0], is_right, bool(asked["answerable"])))
        if asked["answerable"]:
            right, wrong = right + is_right, wrong + (not is_right)
    scored.sort(key=lambda one: -one[0])
    curve = []
    for share in (0.2, 0.3, 0.4, 0.5, 0.6):
        answerable = sum(one[2] for one in scored)
        good = said = bad = 0
        for _, is_right, is_answerable in scored:
            if said >= share * answerable:
                break
            said += is_answerable
            good += is_right
            bad += not is_answerable
        curve.append(f"{share:.0%}: {good}/{said}+{bad}")
    model.train()
    return {"right": right, "of": right + wrong, "curve": " ".join(curve)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--examples", type=Path, nargs="+")
    parser.add_argument("--start", type=Path, default=None)
    parser.add_argument("--held-out", type=Path, required=True, help="the names of the files that are not trained with")
    parser.add_argument("--epochs", type=float, default=4)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--made-up", type=float, default=1.0, help="share of the made-up questions to use")
    parser.add_argument("--unfit", type=float, default=0.5, help="share of the views to use that do not fit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minilm", type=Path, default=None)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    draw = random.Random(options.seed)
    made = load(options.examples)
    kept = set(options.held_out.read_text().splitlines())
    held = [one for one in made if one[0]["file"] in kept and not one[0].get("elsewhere")]
    held = draw.sample(held, min(len(held), _MOST_HELD_OUT))
    items = items_of([one for one in made if one[0]["file"] not in kept])
    # Most views of a workbook are not what is asked, and made-up questions teach less each.
    items = [one for one in items if one[0].programs or draw.random() < options.unfit]
    items = [one for one in items if one[0].source != "made up" or draw.random() < options.made_up]
    if options.minilm:
        from transformers import AutoModel

        bert = AutoModel.from_pretrained(options.minilm, attn_implementation="eager")
        bert.config.hidden_dropout_prob = 0.0
    else:
        bert = load_start().bert
    for part in bert.modules():  # the reader was trained without
        if isinstance(part, nn.Dropout):
            part.p = options.dropout
    model = TorchPlanner(bert)
    if options.start:
        model.load_state_dict(torch.load(options.start, weights_only=True))
    heads = [*model.whole.parameters(), *model.tokens.parameters()]
    optimizer = torch.optim.AdamW(
        [{"params": model.bert.parameters(), "lr": options.rate}, {"params": heads, "lr": 8 * options.rate}],
        weight_decay=0.01,
    )
    per_epoch = len(items) // options.batch + 1
    steps, step, started = int(options.epochs * per_epoch), 0, time.time()
    fitting = sum(bool(one.programs) for one, _, _ in items)
    print(f"{len(items)} items, {fitting} with programs, {steps} steps, {len(held)} questions held out", flush=True)
    model.train()
    totals = [0.0, 0.0, 0]
    while step < steps:
        for batch in batches(items, options.batch, draw):
            if step >= steps:
                break
            scale = min(1, (step + 1) / 60) * max(0.02, 1 - step / steps)
            for group, rate in zip(optimizer.param_groups, (options.rate, 8 * options.rate), strict=True):
                group["lr"] = rate * scale
            programs, fits = loss_of(model, batch)
            optimizer.zero_grad()
            (programs + 2 * fits).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            step += 1
            totals = [totals[0] + programs.item(), totals[1] + fits.item(), totals[2] + 1]
            if step % 100 == 0:
                of_programs, of_fits, count = totals
                said = f"programs {of_programs / count:.3f} fits {of_fits / count:.3f} {time.time() - started:.0f} s"
                print(f"{step}/{steps} {said}", flush=True)
                totals = [0.0, 0.0, 0]
            if step % _EVERY == 0:
                print(evaluate(model, held), flush=True)
                torch.save(model.state_dict(), options.output)
    print(evaluate(model, held), flush=True)
    torch.save(model.state_dict(), options.output)


if __name__ == "__main__":
    main()
