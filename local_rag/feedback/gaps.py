"""What is missing: the questions that the documents did not answer, in groups that ask for much the same."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from local_rag.asking import AskedQuestion
from local_rag.display import Name, display_path, one_line, rows_as_csv
from local_rag.text.languages import FUNCTION_WORDS, language_of
from local_rag.text.tokens import keyword_tokens
from local_rag.text.words import words_of
from local_rag.understanding.question_reader import read_plan

MOST_QUESTIONS = 500  # that are grouped; of more, the newest
_ALIKE = 0.65  # cosine of a question to the mean of a group
_MOST_WORDS = 12  # of a question that are looked up
# What asks, and is no subject of which a document could have the word.
_ASKING = frozenset(
    """how many much long far old tall high deep wide big large often fast what when who whom whose which where
    why""".split()  # noqa: SIM905
)
_WANTED = {"number": "a number or an amount", "date": "a date or a time", "name": "the name of somebody"}

Embed = Callable[[Sequence[str]], np.ndarray | None]
IsKnown = Callable[[str, str], bool]


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A question that was `refused`, or whose answer was marked as `wrong`, `times` over, last at this local time."""

    question: str
    asked: str
    outcome: Literal["refused", "wrong"]
    times: int


@dataclass(frozen=True, slots=True)
class Gap:
    """Questions that ask for much the same, newest first, and what would answer them.

    `closest` is the path of the document that came closest to the newest one, empty if none did or it is gone, and
    `lines` which lines of it, as `:12-15`. `wanted` are the kinds of values that are asked for, and `unknown` the words
    that no document has.
    """

    questions: tuple[Unanswered, ...]
    closest: str
    lines: str
    wanted: tuple[str, ...]
    unknown: tuple[str, ...]

    @property
    def times(self) -> int:
        """Return how often they were asked."""
        return sum(one.times for one in self.questions)

    @property
    def would_answer(self) -> str:
        """Return in words what a document would have to say."""
        said = f"A document that says {' and '.join(self.wanted)}." if self.wanted else ""
        unknown = f"No document has {_listed(self.unknown)}." if self.unknown else ""
        neither = "The documents have these words, but no passage that answers." if not unknown else ""
        return " ".join(filter(None, (said, unknown, neither)))


def find_gaps(
    asked: Sequence[tuple[AskedQuestion, int]],
    embed: Embed,
    is_known: IsKnown,
    paths: Collection[str],
) -> list[Gap]:
    """Return the gaps that questions show, newest first; each question comes with how often it was asked.

    Without vectors, only questions with the same words form a group. `is_known` says whether a document has a word of a
    language, and `paths` are those of the documents.
    """
    asked = asked[:MOST_QUESTIONS]
    texts = [one.question for one, _ in asked]
    vectors = embed(texts) if texts else None
    return [_gap([asked[number] for number in group], is_known, paths) for group in _groups(texts, vectors)]


def _groups(texts: Sequence[str], vectors: np.ndarray | None) -> list[list[int]]:
    """Put each text, in their order, into the group whose mean is nearest, if it is near and shares a word with it."""
    groups, sums, words = list[list[int]](), list[np.ndarray](), list[set[str]]()
    for number, text in enumerate(texts):
        own = set(keyword_tokens(text))
        near = dict[int, float]()
        for group, known in enumerate(words):
            if vectors is None:
                near[group] = float(bool(own) and own == set(keyword_tokens(texts[groups[group][0]])))
            elif own & known:
                near[group] = float(vectors[number] @ sums[group] / max(float(np.linalg.norm(sums[group])), 1e-9))
        best = max(near, key=near.__getitem__, default=-1)
        if best >= 0 and near[best] >= _ALIKE:
            groups[best].append(number)
            words[best] |= own
            if vectors is not None:
                sums[best] = sums[best] + vectors[number]
        else:
            groups.append([number])
            words.append(own)
            sums.append(np.zeros(0) if vectors is None else vectors[number].astype(np.float64))
    return groups


def _gap(group: Sequence[tuple[AskedQuestion, int]], is_known: IsKnown, paths: Collection[str]) -> Gap:
    questions = tuple(
        Unanswered(one.question, one.asked, "wrong" if one.mark == "wrong" else "refused", times)
        for one, times in group
    )
    kinds = dict.fromkeys(filter(_WANTED.__contains__, (read_plan(one.question).answer_type for one in questions)))
    unknown = dict[str, str]()
    for one in questions:
        language = language_of(one.question)
        asking = _ASKING | FUNCTION_WORDS.get(language, frozenset())
        for word in words_of(one.question)[:_MOST_WORDS]:
            is_subject = word.lower() not in asking and keyword_tokens(word, language)
            if is_subject and word.casefold() not in unknown and not is_known(word, language):
                unknown[word.casefold()] = word
    closest = next((place for one, _ in group for place in one.places if place.path in paths), None)
    wanted = tuple(_WANTED[kind] for kind in kinds)
    place = (closest.path, closest.lines) if closest else ("", "")
    return Gap(questions, *place, wanted, tuple(unknown.values())[:_MOST_WORDS])


def _listed(words: Sequence[str]) -> str:
    quoted = [f"\u201c{word}\u201d" for word in words]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} or {quoted[-1]}"


def closest_of(gap: Gap, name: Callable[[str], str]) -> str:
    """Return where the closest document is, in the words of a program that names places; empty if there is none."""
    return f"{name(gap.closest)}{gap.lines.partition('-')[0]}" if gap.closest else ""


def gap_as_dict(gap: Gap, name: Callable[[str], str]) -> Mapping[str, object]:
    """Return a gap as a dictionary for JSON."""
    return {
        "question": gap.questions[0].question,
        "newest": gap.questions[0].asked,
        "times": gap.times,
        "questions": [
            {"question": one.question, "asked": one.asked, "outcome": one.outcome, "times": one.times}
            for one in gap.questions
        ],
        "closest": closest_of(gap, name) or None,
        "wanted": list(gap.wanted),
        "unknown": list(gap.unknown),
        "would_answer": gap.would_answer,
    }


_COLUMNS = ("group", "question", "outcome", "asked", "times", "closest", "would answer")


def gaps_as_lines(gaps: Sequence[Gap]) -> Iterator[str]:
    """Yield the lines of a text for the terminal."""
    for number, gap in enumerate(gaps, start=1):
        if number > 1:
            yield ""
        yield f"{number}. {one_line(gap.questions[0].question)} ({_told(gap.questions[0])})"
        yield from (f"   also: {one_line(one.question)} ({_told(one)})" for one in gap.questions[1:])
        if closest := closest_of(gap, display_path):
            yield f"   closest: {one_line(closest)}"
        yield f"   {one_line(gap.would_answer)}"


def _told(one: Unanswered) -> str:
    often = f", {one.times} times" if one.times > 1 else ""
    return f"{'marked as wrong' if one.outcome == 'wrong' else 'refused'}, {one.asked[:16]}{often}"


def gaps_as_markdown(gaps: Sequence[Gap], escape: Callable[[str], str], name: Name = display_path) -> str:
    """Return the gaps as Markdown; nothing of a question acts as markup."""
    lines = ["# What is missing", ""]
    for number, gap in enumerate(gaps, start=1):
        lines += [f"## {number}. {escape(one_line(gap.questions[0].question))}", ""]
        lines += [f"- {escape(one_line(one.question))} ({_told(one)})" for one in gap.questions]
        closest = closest_of(gap, name)
        lines += ["", *([f"Closest: {escape(one_line(closest))}", ""] if closest else [])]
        lines += [escape(one_line(gap.would_answer)), ""]
    return "\n".join(lines if gaps else [*lines, "Nothing was refused or marked as wrong.", ""])


def gaps_as_csv(gaps: Sequence[Gap], name: Name = display_path) -> str:
    """Return the gaps as CSV, one question a line."""
    rows = (
        (number, one.question, one.outcome, one.asked, one.times, closest_of(gap, name), gap.would_answer)
        for number, gap in enumerate(gaps, start=1)
        for one in gap.questions
    )
    return rows_as_csv(_COLUMNS, rows)
