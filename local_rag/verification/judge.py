"""Judge a statement by what documents say: code compares values, names and words, a model what these leave open."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from local_rag.digests.differences import changed_values, find_values
from local_rag.digests.statements import ordinary_words, readable
from local_rag.records import Passage
from local_rag.text.facts import Fact
from local_rag.verification.claims import Claim
from local_rag.verification.evidence import (
    Candidate,
    Documents,
    Names,
    candidates_for,
    facts_of,
    place_of,
    verbatim,
)
from local_rag.verification.verdicts import Checked, Difference, Evidence, Verdict

_NEAR = 0.1  # by which a candidate may be weaker than the best one and still decide
_SAME_DOCUMENT = 0.02  # what a candidate gains that stands in the same document as the statement before
_ALIKE = 0.6  # the share of words in the same order from which on a sentence is the statement with differences
_COVERED, _RELATED = 0.6, 0.4  # the share of a statement's words that says all of it, and that may say it
_GAP = 0.3  # the share of the content words that one gap may have where a sentence says all of a statement
_UNSAID = 3  # words one after the other that a unit which says all of a statement may lack
_SURE = 0.0  # the log odds from which on a model finds that a quotation says a statement
_MOST_QUOTES = 3
# How often verdicts were right on the choosing half of the set of scripts/benchmarks/verify.py, by what they stand on.
_SAME, _DIFFERS, _REWORDED, _GUESSED, _MISSING = 0.99, 0.97, 0.9, 0.7, 0.8

Holds = Callable[[str, str], float | None]
"""Returns a model's log odds that a quotation says a statement; None if there is no model."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict on a statement by one candidate."""

    verdict: Verdict
    probability: float
    candidate: Candidate | None = None
    differs: tuple[Difference, ...] = ()


class Judge:
    """Judge statements by the documents that somebody may see."""

    def __init__(self, documents: Documents, names: Names, holds: Holds = lambda _quotation, _statement: None) -> None:
        self._documents, self._names, self._holds = documents, names, holds
        self._last = ""  # the document that the statement before stands in, which the next one is likely about, too

    def check(self, claim: Claim) -> Checked:
        """Return a statement with its verdict and what it stands on."""
        if not claim.is_claim:
            return Checked(claim.text, claim.start, claim.end, "no claim")
        passages = list(self._documents.search(claim.said))
        named = [path for paths in claim.cited for path in paths]
        if named:
            passages += [one for one in self._documents.search(claim.said, named) if one not in passages]
        found = verbatim(claim.said, passages)
        if claim.quotations and not found:
            return self._quoting(claim, passages)
        return self._checked(claim, self._judge(claim.said, passages, named))

    def _checked(self, claim: Claim, one: Judgement) -> Checked:
        quotes = (Evidence(one.candidate.place, one.differs),) if one.candidate else ()
        if one.candidate and one.verdict == "supported":
            self._last = one.candidate.passage.path
        return Checked(claim.text, claim.start, claim.end, one.verdict, quotes, one.probability)

    def _judge(self, said: str, passages: Sequence[Passage], named: Sequence[str]) -> Judgement:
        """Judge what a statement says by passages, first by those of the documents that it names."""
        found = candidates_for(said, passages)
        own = [one for one in found if one.passage.path in named]
        best = self._best(said, own) if own else None
        if best is None or best.verdict != "supported":
            other = self._best(said, found)
            if named and other.verdict == "supported" and other.candidate:
                return self._elsewhere(other, named)
            best = best or other
        return best

    def _best(self, said: str, found: Sequence[Candidate]) -> Judgement:
        """Return the judgement by the best candidate, or by one that is nearly as strong and supports."""
        if not found:
            return Judgement("not in these documents", _MISSING)
        near = [one for one in found if one.strength >= found[0].strength - _NEAR]
        near.sort(key=lambda one: -one.strength - _SAME_DOCUMENT * (one.passage.path == self._last))
        judged = [self._by(said, one) for one in near]
        return next((one for one in judged if one.verdict == "supported"), judged[0])

    def _by(self, said: str, one: Candidate) -> Judgement:
        """Judge a statement by one candidate."""
        compared, facts = one.comparison, facts_of(said)
        if compared.share == 1.0 and not compared.differences:
            return Judgement("supported", _SAME, one)
        is_alike = compared.share >= _ALIKE and compared.longest_gap < _GAP
        if is_alike and (telling := _telling(compared.differences)):
            return Judgement("contradicted", _DIFFERS, one, telling)
        if one.coverage < _RELATED:
            return Judgement("not in these documents", _MISSING)
        if one.missing(facts):
            return self._lacking(said, one)
        if is_alike and not compared.differences:
            return Judgement("supported", _REWORDED, one)
        return self._open(said, one, is_alike=is_alike, has_values=any(map(_is_value, facts)))

    def _lacking(self, said: str, one: Candidate) -> Judgement:
        """Judge a statement with a value or name that a candidate lacks: something else may stand in its place."""
        ordinary = ordinary_words(one.passage.text)
        differs = tuple(
            Difference("name" if each.kind == "names" else "value", each.before, each.after)
            for each in changed_values(said, readable(one.unit.text), ordinary)
            if each.before and each.after and _kinds(each.before) == _kinds(each.after)
        )
        if differs:
            return Judgement("contradicted", _DIFFERS, one, differs)
        return Judgement("not in these documents", _MISSING, one)

    def _open(self, said: str, one: Candidate, *, is_alike: bool, has_values: bool) -> Judgement:
        """Let the model decide what words leave open; without one, take what is likelier."""
        odds = self._holds(one.unit.text, said)
        if odds is not None and odds >= _SURE:
            return Judgement("supported", _REWORDED, one)
        if odds is None and one.longest_unsaid <= _UNSAID:
            least = _RELATED if has_values or is_alike else _COVERED
            if one.coverage >= least:
                return Judgement("supported", _GUESSED, one)
        if odds is not None and is_alike:
            return Judgement("contradicted", _GUESSED, one, tuple(one.comparison.differences))
        return Judgement("not in these documents", _MISSING, one)

    def _elsewhere(self, other: Judgement, named: Sequence[str]) -> Judgement:
        """Return that a statement stands in another document than it says."""
        assert other.candidate is not None
        if other.candidate.passage.path in named:
            return other
        return replace(other, verdict="other document")

    def _quoting(self, claim: Claim, passages: Sequence[Passage]) -> Checked:
        """Check what a statement quotes word for word."""
        quotes = list[Evidence]()
        for quotation in claim.quotations:
            if found := verbatim(quotation, passages):
                quotes.append(Evidence(place_of(found[0], *found[1])))
            elif other := self._documents.quoting(quotation):
                quotes.append(Evidence(place_of(other, 0, len(other.text))))
            else:
                closest = candidates_for(quotation, passages)[:1]
                shown = tuple(Evidence(one.place, tuple(one.comparison.differences)) for one in closest)
                return Checked(claim.text, claim.start, claim.end, "not there", shown, _DIFFERS)
        return Checked(claim.text, claim.start, claim.end, "supported", tuple(quotes[:_MOST_QUOTES]), _SAME)


def _telling(differences: Sequence[Difference]) -> tuple[Difference, ...]:
    """Return the differences that contradict whatever the words mean: something else stands in the place."""
    return tuple(one for one in differences if one.kind == "negation" or (one.kind != "words" and one.written))


def _is_value(fact: Fact) -> bool:
    return any(map(str.isdigit, fact.text))


def _kinds(text: str) -> set[str]:
    """Return the kinds of values that a text has; none for a name."""
    return {one.kind for one in find_values(text)}
