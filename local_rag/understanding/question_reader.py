"""Read a question once: a small trained encoder says its kind, and tags in it what is looked for and where.

Joint intent classification and slot filling: one pass of MiniLM over the question, heads on the mean of its tokens, and
one on each token. A kind other than passages counts only from a probability on that was chosen for it; below, the
question is answered from passages.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from unicodedata import category

import numpy as np

from local_rag.errors import ModelError
from local_rag.models.models_folder import shipped_models
from local_rag.models.onnx_session import OnnxSession
from local_rag.models.own_models import ONNX_FILE, TOKENIZER_FILE
from local_rag.plan_records import ANSWER_TYPES, KINDS, MATCHES, OPERATIONS, Kind, Plan
from local_rag.reading.ruler import read_tokenizer
from local_rag.text.languages import language_of

SHIPPED = shipped_models() / "minilm-l6-questions"
CALIBRATION_FILE = "calibration.json"
LENGTH = 128  # tokens of a question that are read: the last ones, where it mostly stands
MOST_PARTS = 3
SLOTS = ("subject", "sort", "limits", "documents", "aspect", "length", "as_of")
# A token is outside, begins or continues a slot, or stands between two parts of a question.
TAGS = ("", *(f"{how}-{slot}" for slot in SLOTS for how in "BI"), "cut")
_KEPT = 256  # plans of the last questions and their parts
_FEWEST_WORDS = 2  # of a part that counts as a question
_SLOTS_OF: Mapping[Kind, frozenset[str]] = {
    "passages": frozenset({"cut", "as_of"}),
    "rows": frozenset({"as_of"}),
    "documents": frozenset({"subject", "sort", "limits", "as_of"}),
    "changes": frozenset({"documents", "aspect", "as_of"}),
    "brief": frozenset({"documents", "aspect", "length", "as_of"}),
    "chat": frozenset(),
}
# A tag goes on with another if that begins, or if it continues the same slot.
_FOLLOWS = np.array([[not b.startswith("I-") or a[2:] == b[2:] for b in TAGS] for a in TAGS])
_CODES = {
    "english": "en",
    "german": "de",
    "french": "fr",
    "spanish": "es",
    "italian": "it",
    "portuguese": "pt",
    "dutch": "nl",
    "swedish": "sv",
    "norwegian": "no",
    "danish": "da",
    "finnish": "fi",
    "polish": "pl",
    "czech": "cs",
    "hungarian": "hu",
    "turkish": "tr",
    "romanian": "ro",
}
_WORD = re.compile(r"\w+")
_MARKS_OF_LETTERS = {"Mn", "Mc", "Me", "Cf"}  # the last of what joins letters or parts them
_MARKS = " \t\n\r\"'`\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb,;:?!"


@dataclass(frozen=True, slots=True)
class Calibration:
    """How sure the model is in truth: its logits are divided by `temperature`, and a kind counts from its threshold on.

    From `rows_from` on, the rows of tables are looked at although another kind is more probable, and from
    `documents_from` on, what stands for whole documents is searched too. A word is outside of all slots if that is more
    probable by the logit `outside`, and documents are looked for by a meaning if that is by the logit `about`.
    """

    temperature: float = 1.0
    thresholds: Mapping[str, float] = field(default_factory=dict)
    rows_from: float = 0.1
    documents_from: float = 0.3
    outside: float = 1.0
    about: float = 0.5


@dataclass(frozen=True, slots=True)
class Span:
    """What a question says for a slot, with the mean log-probability of its tags."""

    slot: str
    start: int
    end: int
    score: float


class QuestionReader:
    """Read questions with the model in a folder, by default the shipped one; threads may share a reader."""

    def __init__(self, folder: Path = SHIPPED) -> None:
        path = folder / ONNX_FILE
        if not path.is_file():
            raise ModelError(f"The reader of questions is missing: {path}; reinstall local-rag, which comes with it.")
        tokenizer = read_tokenizer(folder / TOKENIZER_FILE)
        tokenizer.no_padding()
        tokenizer.enable_truncation(LENGTH, direction="left")
        self._session = OnnxSession(path, tokenizer)
        self.calibration = _read_calibration(folder / CALIBRATION_FILE)

    def logits(self, question: str) -> tuple[Any, dict[str, np.ndarray]]:
        """Return the tokens of a question, and the logits of each output of the model."""
        [(encoding, outputs)] = self._session.run([question])
        return encoding, dict(zip(self._session.outputs, outputs, strict=True))

    def read(self, question: str, kind: Kind | None = None) -> Plan:
        """Return what a question asks for; with a `kind`, what it asks for if it is of that kind."""
        encoding, logits = self.logits(question)
        kinds = dict(zip(KINDS, _softmax(logits["kind"] / self.calibration.temperature).tolist(), strict=True))
        if kind:  # nothing else is probable
            kinds = dict.fromkeys(KINDS, 0.0) | {kind: 1.0}
        kind = self._kind(kinds)
        tags = logits["tags"] - np.eye(1, len(TAGS)) * self.calibration.outside
        spans = _joined(question, _spans(question, encoding.offsets, tags, kind))
        first = {span.slot: question[span.start : span.end] for span in sorted(spans, key=lambda one: one.score)}
        each = {
            slot: tuple(question[span.start : span.end] for span in spans if span.slot == slot)
            for slot in ("limits", "documents")
        }
        documents = kind == "documents"
        subject = first.get("subject", "")
        return Plan(
            kind,
            round(kinds[kind], 4),
            parts=tuple(_parts(question, [span for span in spans if span.slot == "cut"])),
            operation=_best(OPERATIONS, logits["operation"]) if documents else "",
            subject=subject,
            match=_best(MATCHES, logits["match"] - np.array([0, self.calibration.about])) if subject else "",
            sort=first.get("sort", ""),
            negated=documents and _best((False, True), logits["negated"]),
            limits=each["limits"],
            as_of=first.get("as_of", ""),
            documents=each["documents"],
            aspect=first.get("aspect", ""),
            length=first.get("length", ""),
            answer_type=_best(ANSWER_TYPES, logits["answer_type"]) if kind in {"passages", "rows"} else "",
            language=_CODES.get(language_of(question), ""),
            may_ask_rows=kind == "rows" or kinds["rows"] >= self.calibration.rows_from,
            about_documents=1 - sum(kinds[one] for one in ("passages", "rows", "chat"))
            >= self.calibration.documents_from,
        )

    def _kind(self, kinds: Mapping[Kind, float]) -> Kind:
        """Return the most probable kind, or passages if it is not probable enough."""
        best = max(kinds, key=kinds.__getitem__)
        return best if kinds[best] >= self.calibration.thresholds.get(best, 0.0) else "passages"


@cache
def shipped_reader() -> QuestionReader:
    """Return the reader that comes with the program, opened once."""
    return QuestionReader()


@lru_cache(_KEPT)
def read_plan(question: str, kind: Kind | None = None) -> Plan:
    """Return what a question asks for, as the shipped model reads it; see `QuestionReader.read`."""
    return shipped_reader().read(question, kind)


def _read_calibration(path: Path) -> Calibration:
    try:
        return Calibration(**json.loads(path.read_bytes())) if path.is_file() else Calibration()
    except (ValueError, TypeError):
        raise ModelError(f"{path} is damaged; reinstall local-rag, which comes with it.") from None


def _spans(text: str, offsets: Sequence[tuple[int, int]], logits: np.ndarray, kind: Kind) -> Iterator[Span]:
    """Yield what the tags say that stands in a text for the slots of its kind, at whole words."""
    allowed = np.array([not tag or tag.removeprefix("B-").removeprefix("I-") in _SLOTS_OF[kind] for tag in TAGS])
    scores = np.where(allowed, logits - _logsumexp(logits), -np.inf)
    tags = _most_probable(scores)
    begun: tuple[str, int, int, list[float]] | None = None
    for at, (tag, (start, end)) in enumerate([*zip(tags, offsets, strict=True), (0, (0, 0))]):
        name = TAGS[tag] if end > start else ""
        slot = name.removeprefix("B-").removeprefix("I-")
        goes_on = begun is not None and slot == begun[0] and (name.startswith("I-") or name == "cut")
        if begun is not None and not goes_on:
            yield _whole(text, begun)
            begun = None
        if name and not goes_on:
            begun = slot, start, end, []
        if begun is not None:
            begun = begun[0], begun[1], end, [*begun[3], float(scores[at, tag])]


def _joined(text: str, spans: Iterator[Span]) -> list[Span]:
    """Return spans with those of one slot joined between which nothing stands; several limits may follow each other."""
    found = list[Span]()
    for span in spans:
        last = found[-1] if found else None
        if last and last.slot == span.slot != "limits" and not text[last.end : span.start].strip():
            found[-1] = Span(last.slot, last.start, span.end, min(last.score, span.score))
        else:
            found.append(span)
    return found


def _most_probable(scores: np.ndarray) -> list[int]:
    """Return the most probable sequence of tags in which each that continues follows its beginning (Viterbi)."""
    best, origin = np.where(_FOLLOWS[0], scores[0], -np.inf), np.zeros(scores.shape, int)
    for at in range(1, len(scores)):
        reached = np.where(_FOLLOWS, best[:, None], -np.inf)
        origin[at] = reached.argmax(0)
        best = reached.max(0) + scores[at]
    path = [int(best.argmax())]
    for at in range(len(scores) - 1, 0, -1):
        path.append(int(origin[at, path[-1]]))
    return path[::-1]


def _whole(text: str, begun: tuple[str, int, int, list[float]]) -> Span:
    slot, start, end, scores = begun
    if slot != "cut":
        while start > 0 and _is_of_word(text[start - 1]) and _is_of_word(text[start]):
            start -= 1
        while end < len(text) and _is_of_word(text[end - 1]) and _is_of_word(text[end]):
            end += 1
        while start < end and text[start] in _MARKS:
            start += 1
        while end > start and text[end - 1] in _MARKS:
            end -= 1
    return Span(slot, start, end, float(np.mean(scores)))


def _is_of_word(character: str) -> bool:
    """Return whether a character is one of a word: a letter, a digit, or a vowel sign and the like on a letter."""
    return character.isalnum() or category(character) in _MARKS_OF_LETTERS


def _parts(question: str, cuts: Sequence[Span]) -> list[str]:
    """Return the questions between cuts, at most MOST_PARTS; none if there is only one."""
    borders = [0, *(at for cut in cuts for at in (cut.start, cut.end)), len(question)]
    parts = [" ".join(question[a:b].split()) for a, b in zip(borders[::2], borders[1::2], strict=True)]
    parts = [part for part in parts if len(_WORD.findall(part)) >= _FEWEST_WORDS]
    return [f"{part[:1].upper()}{part[1:].rstrip(' ?,;')}?" for part in parts[:MOST_PARTS]] if len(parts) > 1 else []


def _best(of: Sequence[Any], logits: np.ndarray) -> Any:
    return of[int(logits.argmax())]


def _softmax(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max())
    return np.asarray(raised / raised.sum())


def _logsumexp(logits: np.ndarray) -> np.ndarray:
    most = logits.max(-1, keepdims=True)
    return np.asarray(most + np.log(np.exp(logits - most).sum(-1, keepdims=True)))
