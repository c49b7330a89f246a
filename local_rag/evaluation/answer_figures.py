"""Measure answers: ask every question, and count right, wrong, quoted and refused ones.

A text says a wanted string if it contains it as separate words, perhaps in the plural, or if the wanted string is a
number or a date and the text contains the same value. An answer is right if it says one string of each group in
`must_include`, none in `must_not`, and assigns the values of `pairs` to the right names. If a question has only a
reference `answer`, an answer is right if enough content words of one occur in the other and every number also occurs
in the reference or the question. This is rough, but good enough to compare two runs.
"""

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import median
from typing import Any, Literal, get_args

from local_rag.answer_records import Answer, Shown
from local_rag.asking import Turn
from local_rag.display import version_lines
from local_rag.evaluation.dataset import Dataset, Question
from local_rag.evaluation.ranking_metrics import by_question, paired_test, wilson_interval
from local_rag.library import Library
from local_rag.progress_records import Progress
from local_rag.text.dates import find_dates
from local_rag.text.facts import Source, find_facts, normalize
from local_rag.text.quantities import find_numbers
from local_rag.text.tokens import keyword_tokens

Mistake = Literal["incomplete", "other_value", "off_the_point"]

_CITATIONS = re.compile(r"(?:(?<!\s)\s++)?\[[\d, ]++\]")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_THOUSANDS = re.compile(r"(?<=\d)[,\u00a0\u202f ](?=\d{3}\b)")
_NO_COUNT = re.compile(r"(?:an?|single|once|twice|double|thrice|first|second|third|\w+th)\b", re.IGNORECASE)
_ENOUGH = 0.5  # the share of content words of one answer that the other must contain


def is_right(question: Question, text: str) -> bool:
    """Return whether an answer, or a quotation given instead of one, is right."""
    if question.must_include:
        return (
            says_all(text, question.must_include)
            and not any(_says(text, one) for one in question.must_not)
            and _assigns(text, question.pairs)
        )
    return _resembles(question, _plain(text))


def mistake_of(question: Question, text: str) -> Mistake:
    """Return what is wrong with an answer that is not right.

    It is incomplete if it says something wanted and nothing else that can be checked. It has another value if it says
    a number, date or name that neither the question nor its right answer says.
    """
    text = _plain(text)
    wanted = [one for group in question.must_include for one in group]
    expected = Source("\n".join([question.text, question.answer, *wanted]))
    others = (fact.text for fact in find_facts(normalize(text)) if not fact.occurs_in(expected))
    if any(_says(text, one) for one in question.must_not) or any(
        not any(_says(fact, one) for one in wanted) for fact in others
    ):
        return "other_value"
    if wanted:
        said = any(_says(text, one) for one in wanted)
    else:
        said = bool(
            set(keyword_tokens(text)) & set(keyword_tokens(question.answer)) - set(keyword_tokens(question.text))
        )
    return "incomplete" if said else "off_the_point"


def says_all(text: str, groups: Sequence[Sequence[str]]) -> bool:
    """Return whether a text says one string of each group."""
    return all(any(_says(text, one) for one in group) for group in groups)


def _says(text: str, wanted: str) -> bool:
    return _position(text, wanted) is not None


def _position(text: str, wanted: str) -> int | None:
    """Return where a text says a wanted string, None if it does not."""
    text, wanted = _plain(text), _plain(wanted)
    last = r"(?!\w)" if wanted[-1:].isalnum() else ""
    found = re.search(rf"(?<!\w)(?<!\d[.,]){re.escape(wanted)}(?:e?s)?{last}(?![.,]?\d)", text, re.IGNORECASE)
    return found.start() if found else _position_of_value(text, wanted)


def _position_of_value(text: str, wanted: str) -> int | None:
    """Return where a text contains a date or number that a wanted string consists of, in any notation."""
    for date in find_dates(wanted):
        if date.text == wanted:
            same = (
                one.start
                for one in find_dates(text)
                if (one.year, one.month, one.day) == (date.year, date.month, date.day)
            )
            return next(same, None)
    for number in find_numbers(wanted):
        if number.text == wanted:
            for one in find_numbers(text):
                if number.values & one.values and number.unit in (None, one.unit) and not _NO_COUNT.match(one.text):
                    return one.start
    return None


def _assigns(text: str, pairs: Sequence[Sequence[Sequence[str]]]) -> bool:
    """Return whether the names and values of pairs come in the same order; incomplete pairs are ignored."""
    places = list[tuple[int, int]]()
    for name, value in pairs:
        at = [
            min((where for one in group if (where := _position(text, one)) is not None), default=-1)
            for group in (name, value)
        ]
        if min(at) >= 0:
            places.append((at[0], at[1]))
    return sorted(places) == sorted(places, key=lambda place: place[1])


def _resembles(question: Question, text: str) -> bool:
    """Return whether enough words of an answer and its reference are the same, and no number is new."""
    text, reference, asked = (_THOUSANDS.sub("", part) for part in (text, question.answer, question.text))
    theirs, ours, known = (set(keyword_tokens(part)) for part in (reference, text, asked))
    ours, theirs = ours - known or ours, theirs - known or theirs
    numbers = [set(_NUMBER.findall(part)) for part in (text, reference, asked)]
    if not ours or not theirs or numbers[0] - numbers[1] - numbers[2]:
        return False
    shared = len(ours & theirs)
    return max(shared / len(ours), shared / len(theirs)) >= _ENOUGH


def _plain(text: str) -> str:
    """Return a text on one line without citations, with plain dashes and quotation marks."""
    return _THOUSANDS.sub("", normalize(" ".join(_CITATIONS.sub("", text).split())))


def measure_answers(
    dataset: Dataset, questions: Sequence[Question], library: Library, progress: Callable[[Progress], None]
) -> list[dict[str, Any]]:
    """Ask each question that is marked answerable or unanswerable, and return one row per question."""
    asked = [one for one in questions if one.answerability in {"answerable", "unanswerable"}]
    document_of = {chunk: document.id for document in dataset.documents for chunk in document.chunks}
    rows = []
    for number, question in enumerate(asked):
        progress(Progress("answer", number, len(asked)))
        started = time.perf_counter()
        answer = library.ask(question.text, earlier=[Turn(one) for one in question.earlier], counted=False)
        seconds = time.perf_counter() - started
        golden = {document_of[chunk] for chunk in question.chunks} | golden_documents(question)
        rows.append(judge(question, golden, answer, seconds))
    progress(Progress("answer", len(asked), len(asked)))
    return rows


def judge(question: Question, golden: Collection[str], answer: Answer, seconds: float) -> dict[str, Any]:
    """Compare an answer with the reference of its question and with the golden documents.

    What other versions say stands below an answer and is no part of it.
    """
    read = {passage.path for passage in answer.read}
    cited = {citation.passage.path for citation in answer.citations}
    answerable = question.answerability == "answerable"
    below = version_lines(answer.versions)
    said = "\n".join(line for line in answer.text.split("\n") if line not in below)
    right = answerable and answer.answered and is_right(question, said)
    quotation = "\n".join(quote.text for quote in answer.quotes)
    return {
        "question": question.text,
        "answerable": answerable,
        "outcome": answer.outcome,
        "answered": answer.answered,
        "right": right,
        "mistake": mistake_of(question, said) if answerable and answer.answered and not right else None,
        "quoted_right": answerable and answer.outcome == "quoted" and is_right(question, quotation),
        "facts_shown": facts_shown(question, answer.shown) if answerable and question.must_include else None,
        "cited_right": any(_same(path, name) for path in cited for name in golden),
        "golden_documents": len(golden),
        "read_documents": sum(any(_same(path, name) for path in read) for name in golden),
        "flagged": answer.answered and not all(one.supported for one in answer.support),
        "probability": answer.probability,
        "log_odds": answer.log_odds,
        "tokens": answer.tokens,
        "seconds": seconds,
        "answer": answer.text,
    }


def facts_shown(question: Question, shown: Sequence[Shown]) -> bool:
    """Return whether what a model was shown says all that a right answer must include."""
    return says_all("\n".join(one.text for one in shown), question.must_include)


def measure_facts(
    questions: Sequence[Question], library: Library, progress: Callable[[Progress], None]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Measure for how many answerable questions the model is shown all that a right answer must include.

    No language model is loaded. Return the counts, with the median number of tokens shown, and one row per question.
    """
    asked = [one for one in questions if one.answerability == "answerable" and one.must_include]
    rows = list[dict[str, Any]]()
    for number, question in enumerate(asked):
        progress(Progress("ask", number, len(asked)))
        shown, tokens = library.answering.shown(question.text, earlier=[Turn(one) for one in question.earlier])
        rows.append({"question": question.text, "shown": facts_shown(question, shown), "tokens": tokens})
    progress(Progress("ask", len(asked), len(asked)))
    return {
        "questions": len(rows),
        "shown": sum(row["shown"] for row in rows),
        "median_tokens": median(row["tokens"] for row in rows) if rows else 0,
    }, rows


def golden_documents(question: Question) -> set[str]:
    """Return the documents of a question's golden documents, spans and lines."""
    return {*question.documents, *(one.document for one in question.spans), *(one.path for one in question.lines)}


def _same(path: str, name: str) -> bool:
    return path == name or path.endswith(f"/{name}")


def summarize_answers(rows: Sequence[Mapping[str, Any]], questions: int) -> dict[str, Any]:
    """Count the kinds of answers; of all `questions`, those neither answerable nor unanswerable were not asked."""
    answerable = [row for row in rows if row["answerable"]]
    unanswerable = [row for row in rows if not row["answerable"]]
    several = [row for row in answerable if row["golden_documents"] > 1]
    counts = {
        "answerable": len(answerable),
        "right": sum(row["right"] for row in answerable),
        "wrong": sum(row["answered"] and not row["right"] for row in answerable),
        **{name: sum(row["mistake"] == name for row in answerable) for name in get_args(Mistake)},
        "refused_answerable": sum(row["outcome"] == "refused" for row in answerable),
        "quoted": sum(row["outcome"] == "quoted" for row in answerable),
        "quoted_right": sum(row["quoted_right"] for row in answerable),
        "unanswerable": len(unanswerable),
        "refused": sum(row["outcome"] == "refused" for row in unanswerable),
        "quoted_unanswerable": sum(row["outcome"] == "quoted" for row in unanswerable),
        "stated_unanswerable": sum(row["answered"] for row in unanswerable),
        "facts_shown": sum(bool(row["facts_shown"]) for row in answerable),
        "other": questions - len(rows),
        "cited_right": sum(row["cited_right"] for row in answerable),
        "flagged": sum(row["flagged"] for row in rows),
        "flagged_right": sum(row["flagged"] for row in answerable if row["right"]),
        "flagged_wrong": sum(row["flagged"] for row in answerable if not row["right"]),
        "of_several_documents": len(several),
        "all_documents_read": sum(row["read_documents"] == row["golden_documents"] for row in several),
        "median_seconds": median(row["seconds"] for row in rows) if rows else 0.0,
        "median_tokens": median(row["tokens"] for row in rows) if rows else 0,
    }
    return {**counts, "intervals": _intervals(counts)}


def _intervals(counts: Mapping[str, int | float]) -> dict[str, tuple[float, float]]:
    """Return the 95 % Wilson interval of each share, in percent."""
    right_or_quoted = {"right_or_quoted_right": int(counts["right"] + counts["quoted_right"])}
    of = dict.fromkeys(("right", "wrong", "quoted", "refused_answerable", "facts_shown"), "answerable")
    of |= dict.fromkeys(("refused", "quoted_unanswerable", "stated_unanswerable"), "unanswerable")
    shares = {name: (int(counts[name]), int(counts[whole])) for name, whole in of.items()}
    shares |= {name: (count, int(counts["answerable"])) for name, count in right_or_quoted.items()}
    return {name: wilson_interval(count, whole) for name, (count, whole) in shares.items() if whole}


def risk_coverage(rows: Sequence[Mapping[str, Any]]) -> list[tuple[float, float]]:
    """Return points of the share of questions answered and the share of these answers that is wrong.

    At each point only the most probable of the answers that were given are counted.
    """
    given = [row for row in rows if row["answered"] and row["probability"] is not None]
    points, wrong = list[tuple[float, float]](), 0
    for count, row in enumerate(sorted(given, key=lambda row: -row["probability"]), start=1):
        wrong += not row["right"]
        points.append((count / len(rows), wrong / count))
    return points


def compare_answers(rows: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Compare how many questions two runs got right: answered correctly, or refused if that is correct."""
    theirs = by_question(others)
    both = [(row, theirs[name]) for name, row in by_question(rows).items() if name in theirs]
    values = [[float(_is_good(row)) for row in side] for side in zip(*both, strict=True)] or [[], []]
    return {
        "questions": len(both),
        "this": sum(values[0]),
        "other": sum(values[1]),
        "p": paired_test(*values) if both else 1.0,
    }


def _is_good(row: Mapping[str, Any]) -> bool:
    return bool(row["right"] if row["answerable"] else not row["answered"])
