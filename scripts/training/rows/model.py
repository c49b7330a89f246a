"""The planner in torch: an encoder of a question with a view, and heads for each choice of a program."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from local_rag.tables.planner import ALLOWED, ROLES, SIZES
from local_rag.tables.program import DIRECTIONS, FILLED, GROUPED, NONE, OPERATIONS, PAIRS, PARTS, RELATIONS, Program

NAMES = tuple(OPERATIONS)


class TorchPlanner(nn.Module):
    """Return the logits of the whole, shape (batch, 27), and for each token those of roles, filled and relations."""

    def __init__(self, bert: Any) -> None:
        super().__init__()
        self.bert = bert
        width = bert.config.hidden_size
        self.whole = nn.Linear(width, sum(SIZES.values()))
        self.tokens = nn.Sequential(
            nn.Linear(width, width), nn.GELU(), nn.Linear(width, len(ROLES) + len(FILLED) + len(RELATIONS))
        )

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor) -> Any:
        """Run the encoder once."""
        out = self.bert(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        return self.whole(out[:, 0]), self.tokens(out)


def padded(some: Sequence[Any]) -> dict[str, torch.Tensor]:
    """Return what an encoder reads of several inputs, each with its tokens as `ids` and their `types`."""
    longest = max(len(one.ids) for one in some)
    ids = torch.zeros(len(some), longest, dtype=torch.long)
    types, mask = ids.clone(), ids.clone()
    for row, one in enumerate(some):
        length = len(one.ids)
        ids[row, :length] = torch.tensor(one.ids)
        types[row, :length] = torch.tensor(one.types)
        mask[row, :length] = 1
    return {"input_ids": ids, "token_type_ids": types, "attention_mask": mask}


def prepared(one: Any) -> dict[str, Any]:
    """Return the programs of an example as indexes."""
    some: Sequence[Program] = one.programs
    columns, width = len(one.kinds) + 1, len(one.kinds)

    def at(index: int) -> int:
        return index + 1  # the table stands for none

    return {
        "operation": torch.tensor([NAMES.index(p.operation) for p in some]),
        "pointers": torch.tensor([[at(getattr(p, role)) for role in ROLES] for p in some], dtype=torch.long).reshape(
            -1, len(ROLES)
        ),
        "uses": torch.tensor([uses(p) for p in some]).reshape(-1, len(ROLES)),
        "part": torch.tensor([PARTS.index(p.part) for p in some]),
        "of_part": torch.tensor([float(p.group != NONE and one.kinds[p.group] == "date") for p in some]),
        "direction": torch.tensor([DIRECTIONS.index(p.direction) for p in some]),
        "of_direction": torch.tensor([float(p.group != NONE or p.operation == "top") for p in some]),
        "pair": torch.tensor([PAIRS.index(p.pair) for p in some]),
        "any_of": torch.tensor([int(p.any_of) for p in some]),
        "of_any": torch.tensor([float(conditions(p, one) > 1) for p in some]),
        "relations": torch.tensor([[RELATIONS.index(r) for r in p.relations] for p in some], dtype=torch.long).reshape(
            len(some), len(one.of_mentions)
        ),
        "filled": torch.tensor([[FILLED.index(f) for f in p.filled] for p in some], dtype=torch.long).reshape(
            len(some), width
        ),
        "allowed": torch.tensor(
            [[r in ALLOWED[kind] for r in range(len(RELATIONS))] for _, kind in one.of_mentions], dtype=torch.bool
        ).reshape(-1, len(RELATIONS)),
        "numeric": torch.tensor([False, *(kind != "text" for kind in one.kinds)]),
        "columns": columns,
    }


def uses(p: Program) -> list[float]:
    needed = OPERATIONS[p.operation]
    return [
        float(
            role in needed
            or (role == "group" and p.operation in GROUPED)
            or (role in {"left", "right"} and bool(p.pair))
        )
        for role in ROLES
    ]


def conditions(p: Program, one: Any) -> int:
    return (
        len({one.of_mentions[i] for i, r in enumerate(p.relations) if r and one.of_mentions[i][1] != "limit"})
        + sum(map(bool, p.filled))
        + bool(p.pair)
    )


def parts_of(whole: torch.Tensor, tokens: torch.Tensor, one: Any, given: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Return the log probabilities of each choice for one example."""
    split = dict(zip(SIZES, whole.split(list(SIZES.values())), strict=True))
    found = {name: split[name].log_softmax(0) for name in SIZES if name != "fits"}
    at_columns = tokens[list(one.encoded.columns)]
    roles = at_columns[:, : len(ROLES)].clone()
    low = torch.finfo(roles.dtype).min / 4
    for number, role in enumerate(ROLES):
        if role != "group":
            roles[0, number] = low
        if role == "measure":
            roles[~given["numeric"], number] = low
    found["roles"] = roles.log_softmax(0)
    found["filled"] = at_columns[1:, len(ROLES) : len(ROLES) + len(FILLED)].log_softmax(1)
    relations = tokens[list(one.encoded.mentions)][:, len(ROLES) + len(FILLED) :]
    found["relations"] = relations.masked_fill(~given["allowed"], low).log_softmax(1)
    return found


def log_probabilities(found: dict[str, torch.Tensor], given: dict[str, Any]) -> torch.Tensor:
    """Return the log probability of each program of an example."""
    count = len(given["operation"])
    total = found["operation"][given["operation"]]
    rows = torch.arange(len(ROLES))
    pointers = given["pointers"].clamp(min=0)
    total = total + (found["roles"][pointers, rows] * given["uses"]).sum(1)
    total = total + found["part"][given["part"]] * given["of_part"]
    total = total + found["direction"][given["direction"]] * given["of_direction"]
    total = total + found["pair"][given["pair"]]
    total = total + found["any_of"][given["any_of"]] * given["of_any"]
    if found["filled"].shape[0]:
        total = total + found["filled"][torch.arange(found["filled"].shape[0]), given["filled"]].sum(1)
    if found["relations"].shape[0]:
        total = total + found["relations"][torch.arange(found["relations"].shape[0]), given["relations"]].sum(1)
    return total.reshape(count)
