"""Judge a statement by one sentence of a document: code compares values, names and words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from local_rag.answer_records import Verdict
from local_rag.digests.differences import changed_values, find_values
from local_rag.digests.statements import ordinary_words, readable
from local_rag.text.facts import Fact
from local_rag.verification.evidence import Candidate, facts_of
from local_rag.verification.verdicts import Difference

_ALIKE = 0.6  # the share of words in the same order from which on a sentence is the statement with differences
_COVERED, _RELATED = 0.6, 0.4  # the share of a statement's words that says all of it, and that may say it
_GAP = 0.3  # the share of the content words that one gap may have where a sentence says all of a statement
_UNSAID = 3  # words one after the other that a unit which says all of a statement may lack
# A model's log odds that a quotation says a statement: below which it does not where one is a copy of the other but for
# some words, below which it does not although it has all values and most words, and from which on it does although not.
_COPY, _UNLIKELY, _LIKELY = -0.3, -2.0, 1.0
# About how often verdicts are right, by what they stand on: from the choosing half of scripts/benchmarks/verify.py.
SAME, DIFFERS, REWORDED, GUESSED, MISSING = 0.99, 0.97, 0.9, 0.7, 0.8


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict on a statement by one candidate; while it `is_open`, only the meaning of words can tell."""

    verdict: Verdict
    probability: float
    candidate: Candidate | None = None
    differs: tuple[Difference, ...] = ()
    is_open: bool = False


def judged(said: str, one: Candidate) -> Judgement:
    """Judge a statement by one candidate; where that is open, take what is likelier."""
    compared, facts = one.comparison, facts_of(said)
    is_alike = compared.share >= _ALIKE and compared.longest_gap < _GAP
    if not compared.differences and (compared.share == 1.0 or (is_alike and not one.missing(facts))):
        return Judgement("supported", SAME if compared.share == 1.0 else REWORDED, one)
    if is_alike and (telling := _telling(compared.differences)):
        return Judgement("contradicted", DIFFERS, one, telling)
    if one.coverage < _RELATED:
        return Judgement("not in these documents", MISSING)
    if one.missing(facts):
        return _lacking(said, one)
    return _reworded(facts, one, is_alike=is_alike)


def _reworded(facts: Sequence[Fact], one: Candidate, *, is_alike: bool) -> Judgement:
    """Judge a statement whose values and names a candidate has, by how many of its words it lacks."""
    if one.is_part_copied and not is_alike:
        return Judgement("not in these documents", MISSING, one)
    least = _RELATED if is_alike or any(map(_is_value, facts)) else _COVERED
    if one.coverage >= least and one.longest_unsaid <= _UNSAID:
        differs = tuple(one.comparison.differences) if is_alike else ()
        return Judgement("supported", GUESSED, one, differs, is_open=True)
    return Judgement("not in these documents", MISSING, one, is_open=True)


def settled(judgement: Judgement, odds: float | None) -> Judgement:
    """Return an open judgement as a model decides it by its log odds, or without them as it stands."""
    if odds is None:
        return replace(judgement, differs=(), is_open=False)
    if judgement.differs and odds < _COPY:
        return replace(judgement, verdict="contradicted", is_open=False)
    least = _LIKELY if judgement.verdict != "supported" else _COPY if judgement.differs else _UNLIKELY
    if odds >= least:
        return Judgement("supported", REWORDED, judgement.candidate)
    return Judgement("not in these documents", MISSING, judgement.candidate)


def _lacking(said: str, one: Candidate) -> Judgement:
    """Judge a statement with a value or name that a candidate lacks: something else may stand in its place."""
    differs = tuple(
        Difference("name" if each.kind == "names" else "value", each.before, each.after)
        for each in changed_values(said, readable(one.unit.text), ordinary_words(one.passage.text))
        if each.before and each.after and _kinds(each.before) == _kinds(each.after)
    )
    if differs:
        return Judgement("contradicted", DIFFERS, one, differs)
    return Judgement("not in these documents", MISSING, one)


def _telling(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    """Return the differences that contradict whatever the words mean: something else stands in the place."""
    return tuple(one for one in differences if one.kind == "negation" or (one.kind != "words" and one.written))


def _is_value(fact: Fact) -> bool:
    return any(map(str.isdigit, fact.text))


def _kinds(text: str) -> set[str]:
    """Return the kinds of values that a text has; none for a name."""
    return {one.kind for one in find_values(text)}
