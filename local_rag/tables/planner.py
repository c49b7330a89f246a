"""Read a question about rows: a trained model chooses what is computed, of which columns, under which conditions."""

import itertools
import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np

from local_rag.errors import ModelError
from local_rag.model_records import probability_of
from local_rag.models.models_folder import shipped_models
from local_rag.models.onnx_session import OnnxSession
from local_rag.models.own_models import ONNX_FILE
from local_rag.reading.ruler import read_tokenizer
from local_rag.tables.checker import TOKENIZER, Checker, TrainedChecker
from local_rag.tables.encoding import Encoded, encode
from local_rag.tables.mentions import ROWS, Mention, mentions
from local_rag.tables.program import DIRECTIONS, FILLED, GROUPED, NONE, OPERATIONS, PAIRS, PARTS, RELATIONS, Program
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.views import View

CALIBRATION_FILE = "calibration.json"
SHIPPED = shipped_models() / "minilm-l6-rows"
ROLES = ("measure", "shown", "group", "left", "right")
# What of the vector of the whole question is what: whether the view fits, the operation, and the small choices.
SIZES = {
    "fits": 1,
    "operation": len(OPERATIONS),
    "part": len(PARTS),
    "direction": len(DIRECTIONS),
    "pair": len(PAIRS),
    "any_of": 2,
}
# The relations that a kind of mention can have, by their index.
ALLOWED: Mapping[str, tuple[int, ...]] = {
    "value": (0, 1, 2),
    "choice": (0, 1, 2),
    "number": (0, 1, 3, 4, 5, 6),
    "time": (0, 1, 3, 4, 5, 6),
    "limit": (0, 1),
}
_IMPOSSIBLE = -1e9
_MOST_PROGRAMS, _MOST_FLIPS, _PAIRED, _LEAST_FLIP = 30, 20, 8, -5.0


@dataclass(frozen=True, slots=True)
class Planned:
    """The most probable programs with the log probability of all their choices together, best first.

    `fits` is the log odds that the view is what the question asks.
    """

    programs: tuple[tuple[Program, float], ...]
    fits: float


Read: TypeAlias = tuple[Planned, Sequence[Mention]]


class Planner(Protocol):
    """The interface of a planner.

    `answer_from` is the least probability of an answer that is given. `common` are words that questions about any table
    have. `checker` reads a second time what the planner has found.
    """

    answer_from: float
    common: Collection[str]
    checker: Checker

    def plan(self, question: str, views: Sequence[View], held: RelationSet) -> Sequence[Read | None]:
        """Return the most probable program of a question for each view; None for a view that is too wide to be read."""

    def probability(self, features: Mapping[str, float]) -> float:
        """Return the probability that the most probable program gives the right answer."""


class TrainedPlanner:
    """Plan with the trained model in a folder, by default the shipped one; threads may share a planner."""

    def __init__(self, folder: Path = SHIPPED) -> None:
        path = folder / ONNX_FILE
        if not path.is_file():
            raise ModelError(f"The planner of rows is missing: {path}; reinstall local-rag, which comes with it.")
        self._tokenizer = read_tokenizer(TOKENIZER)
        self._session = OnnxSession(path, self._tokenizer)
        self.checker: Checker = TrainedChecker(folder)
        calibration = json.loads((folder / CALIBRATION_FILE).read_bytes())
        self._bias, self._weights = calibration["bias"], calibration["weights"]
        self.answer_from: float = calibration["answer_from"]
        self.common: Collection[str] = frozenset(calibration["common"])

    def probability(self, features: Mapping[str, float]) -> float:
        """Return the probability that the most probable program gives the right answer."""
        # The odds can be very high: a question may name a thousand things.
        return probability_of(self._bias + sum(self._weights[name] * value for name, value in features.items()))

    def plan(self, question: str, views: Sequence[View], held: RelationSet) -> Sequence[Read | None]:
        """Return the most probable program of a question for each view; None for a view that is too wide to be read."""
        mentioned = [mentions(question, view, held) for view in views]
        encoded = [encode(self._tokenizer, question, *one, held) for one in zip(views, mentioned, strict=True)]
        outputs = iter(self._session.run_all([(one.ids, one.types) for one in encoded if one]))

        def read(one: Encoded, view: View, said: Sequence[Mention]) -> Read:
            whole, tokens = next(outputs)
            return best(whole, tokens, one, [column.kind for column in view.columns], said), said

        given = zip(encoded, views, mentioned, strict=True)
        return [read(one, view, said) if one else None for one, view, said in given]


@cache
def shipped_planner() -> TrainedPlanner:
    """Return the planner that comes with the program, loaded once."""
    return TrainedPlanner()


def best(
    whole: np.ndarray, tokens: np.ndarray, encoded: Encoded, kinds: Sequence[str], mentioned: Sequence[Mention]
) -> Planned:
    """Return the most probable program by the logits of the model, for columns of these kinds and mentions.

    `whole` has the logits of `SIZES`; `tokens` has for each token those of roles, of being filled and of relations.
    """
    return _Choices(whole, tokens, encoded, kinds, mentioned).best()


class _Choices:
    """The log probabilities of all choices for one question and view.

    A choice has a key: a name of `SIZES`, a role, or the number of a mention ("relation", 3) or column ("filled", 2).
    """

    def __init__(
        self,
        whole: np.ndarray,
        tokens: np.ndarray,
        encoded: Encoded,
        kinds: Sequence[str],
        mentioned: Sequence[Mention],
    ) -> None:
        ends = np.cumsum(list(SIZES.values()))
        parts = dict(zip(SIZES, np.split(whole, ends[:-1]), strict=True))
        self.fits = float(parts.pop("fits")[0])
        self.kinds, self.mentioned = kinds, mentioned
        self.known: dict[object, np.ndarray] = {name: _log_softmax(logits) for name, logits in parts.items()}
        at_columns = tokens[list(encoded.columns)]
        roles = at_columns[:, : len(ROLES)].copy()
        # The table stands for no column, which only a group can be; only numbers and dates are measured.
        roles[0, [number for number, role in enumerate(ROLES) if role != "group"]] = _IMPOSSIBLE
        roles[[False, *(kind == "text" for kind in kinds)], ROLES.index("measure")] = _IMPOSSIBLE
        self.known |= zip(ROLES, _log_softmax(roles.T), strict=True)
        filled = _log_softmax(at_columns[1:, len(ROLES) : len(ROLES) + len(FILLED)])
        self.known |= {("filled", at): row for at, row in enumerate(filled)}
        relations = tokens[list(encoded.mentions)][:, len(ROLES) + len(FILLED) :].copy()
        for row, one in zip(relations, mentioned, strict=True):
            row[[at for at in range(len(RELATIONS)) if at not in ALLOWED[one.kind]]] = _IMPOSSIBLE
        self.known |= {("relation", at): row for at, row in enumerate(_log_softmax(relations))}

    def best(self) -> Planned:
        """Return the program of the best choices, and those that differ from it in one or two others."""
        first = self._made({})
        flips = sorted(self._flips(first[2]), key=lambda one: -one[0])[:_MOST_FLIPS]
        found = {first[0]: first[1]}
        for some in (*((one,) for one in flips), *itertools.combinations(flips[:_PAIRED], 2)):
            if len({key for _, key, _ in some}) == len(some):
                program, total, _ = self._made({key: value for _, key, value in some})
                found.setdefault(program, total)
        ranked = sorted(found.items(), key=lambda one: -one[1])[:_MOST_PROGRAMS]
        return Planned(tuple(ranked), self.fits)

    def _flips(self, taken: Mapping[object, int]) -> Iterator[tuple[float, object, int]]:
        """Yield what else each choice of a program could have been, with how much less probable that is."""
        for key, at in taken.items():
            row = self.known[key]
            for other in np.argsort(-row)[:3]:
                if other != at and row[other] - row[at] > _LEAST_FLIP:
                    yield float(row[other] - row[at]), key, int(other)

    def _made(self, given: Mapping[object, int]) -> tuple[Program, float, Mapping[object, int]]:
        """Return the best program with some choices given, its log probability, and all choices that it takes."""
        taken = dict[object, int]()

        def take(key: object) -> int:
            taken[key] = given[key] if key in given else int(self.known[key].argmax())
            return taken[key]

        relations = tuple(RELATIONS[take(("relation", at))] for at in range(len(self.mentioned)))
        filled = tuple(FILLED[take(("filled", at))] for at in range(len(self.kinds)))
        pair = PAIRS[take("pair")]
        columns = {role: take(role) - 1 for role in ("left", "right")} if pair else {}
        any_of = _conditions(relations, filled, pair, self.mentioned) > 1 and bool(take("any_of"))
        name = self._operation() if "operation" not in given else tuple(OPERATIONS)[given["operation"]]
        taken["operation"] = tuple(OPERATIONS).index(name)
        columns |= {role: take(role) - 1 for role in OPERATIONS[name]}
        part = direction = ""
        if name in GROUPED:
            columns["group"] = take("group") - 1
        group = columns.get("group", NONE)
        if group != NONE and self.kinds[group] == "date":
            part = PARTS[take("part")]
        if group != NONE or name == "top":
            direction = DIRECTIONS[take("direction")]
        program = Program(name, relations, filled, pair=pair, any_of=any_of, part=part, direction=direction, **columns)
        return program, float(sum(self.known[key][at] for key, at in taken.items())), taken

    def _operation(self) -> str:
        """Return the operation that is most probable together with what it is of."""

        def score(name: str) -> float:
            roles = [*OPERATIONS[name], *(["group"] if name in GROUPED else [])]
            return float(
                self.known["operation"][tuple(OPERATIONS).index(name)] + sum(self.known[r].max() for r in roles)
            )

        return max(OPERATIONS, key=score)


def _conditions(relations: Sequence[str], filled: Sequence[str], pair: str, mentioned: Sequence[Mention]) -> int:
    of_mentions = {(one.column, one.kind) for one, said in zip(mentioned, relations, strict=True) if said}
    of_mentions = {one for one in of_mentions if one[0] != ROWS}
    return len(of_mentions) + sum(map(bool, filled)) + bool(pair)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True, initial=_IMPOSSIBLE)
    found: np.ndarray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return found
