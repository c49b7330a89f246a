"""Check the statements of a text: what says them, whether that is the document that they name, and the newest one."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from local_rag.answer_records import Verdict
from local_rag.answering.prompt import closing_prompt, opening_prompt, quote
from local_rag.asking import require_checkable
from local_rag.document_records import page_number
from local_rag.llama.generator import Generator, log_odds_of_yes, never
from local_rag.passage_records import Passage
from local_rag.progress_records import Progress
from local_rag.text.tokens import keyword_tokens
from local_rag.verification.claims import Claim, read_claims
from local_rag.verification.evidence import Candidate, Documents, Mention, Names, candidates_for, place_of, verbatim
from local_rag.verification.judgement import DIFFERS, GUESSED, MISSING, SAME, Judgement, judged, settled
from local_rag.verification.verdicts import Checked, Difference, Evidence, Verification

Holds = Callable[[str, str], float | None]
"""Returns a model's log odds that a quotation says a statement; None if there is no model."""
_REQUEST = "Statement: {statement}\nDoes the quotation say that the statement is true? Reply Yes or No."
_LONGEST = 1500  # characters of a quotation and of a statement that a model reads
_NEAR = 0.1  # by which a candidate may be weaker than the best one and still decide
_SAME_DOCUMENT = 0.02  # what a candidate gains that stands in the same document as the statement before
_OUTDATED = 0.001  # what one loses that stands in an older version
_MOST_QUOTES = 3
_MOST_STATEMENTS = 5000  # of a text


def verify_text(
    text: str,
    documents: Documents,
    holds: Holds,
    *,
    first: int = 0,
    seconds: float | None = None,
    progress: Callable[[Progress], None] = lambda _progress: None,
    on_statement: Callable[[Checked], None] = lambda _checked: None,
    stop: Callable[[], bool] = never,
) -> Verification:
    """Check the statements of a text in order, from number `first` on; `on_statement` receives each when it is checked.

    After `seconds`, or once `stop` returns True, the rest is left out; of a text with statements one is checked.
    """
    require_checkable(text)
    started, names = time.monotonic(), Names(documents.named())
    claims = list(read_claims(text, names.at))
    judge, checked = Judge(documents, names, holds), list[Checked]()
    for claim in claims[first:_MOST_STATEMENTS]:
        spent = time.monotonic() - started
        if checked and (stop() or (seconds is not None and spent > seconds)):
            break
        rate = f"{len(checked) / spent:.1f} a second" if checked and spent else ""
        progress(Progress("verify", first + len(checked), len(claims), rate))
        checked.append(judge.check(claim))
        on_statement(checked[-1])
    progress(Progress("verify", first + len(checked), len(claims)))
    return Verification(text, tuple(checked), max(0, len(claims) - first - len(checked)))


def log_odds_of(generator: Generator, quotation: str, statement: str) -> float | None:
    """Return a model's log odds that a quotation says a statement, by its first token; None if none are told."""
    model = generator.model
    read = model.tokenize(f"Quotation:\n{quote(quotation[:_LONGEST])}\n\n")
    request = _REQUEST.format(statement=quote(" ".join(statement.split())[:_LONGEST]))
    told = generator.log_probabilities([*opening_prompt(model), *read], closing_prompt(request, model))
    odds = math.nan if told is None else log_odds_of_yes(told, model)
    return None if math.isnan(odds) else odds


class Judge:
    """Judge statements by the documents that somebody may see, in the order of their text."""

    def __init__(self, documents: Documents, names: Names, holds: Holds = lambda _quotation, _statement: None) -> None:
        self._documents, self._names, self._holds = documents, names, holds
        self._last = ""  # the document that the statement before stands in, which the next one is likely about, too

    def check(self, claim: Claim) -> Checked:
        """Return a statement with its verdict and what it stands on."""
        if not claim.is_claim:
            return Checked(claim.text, claim.start, claim.end, "no claim")
        cited = [path for paths in claim.cited for path in paths]
        passages = self._passages(claim.said, cited)
        if claim.quotations and not verbatim(claim.said, passages):
            quoting = self._quoting(claim, passages, cited)
            if quoting.verdict != "supported" or self._mostly_quotes(claim):
                return quoting
        found = self._judge(claim.said, passages, cited)
        if found.verdict != "supported" and not cited:
            found = self._by_named(claim.said, found)
        return self._checked(claim, _with_known(claim, self._with_page(claim, found)))

    def _passages(self, said: str, paths: Sequence[str]) -> list[Passage]:
        """Return the passages that fit a statement best, those of the documents that it names among them."""
        found = [*self._documents.search(said)]
        if paths:
            known = {(one.path, one.start) for one in found}
            found += [one for one in self._documents.search(said, paths) if (one.path, one.start) not in known]
        return found

    def _judge(self, said: str, passages: Sequence[Passage], named: Sequence[str]) -> Judgement:
        """Judge a statement by passages; the documents that it names must say it, if it names any."""
        found = candidates_for(said, passages)
        named_ones = [one for one in found if one.passage.path in named]
        own = self._best(said, named_ones) if named_ones else None
        if own and own.verdict == "supported":
            return own
        other = self._best(said, found)
        if named and other.verdict == "supported":
            return replace(other, verdict="other document")
        return own or other

    def _best(self, said: str, found: Sequence[Candidate]) -> Judgement:
        """Return the judgement by the best candidate, or by one that is nearly as strong and supports."""
        if not found:
            return Judgement("not in these documents", MISSING)
        near = [one for one in found if one.strength >= found[0].strength - _NEAR]
        near.sort(key=self._order)
        by_each = [judged(said, one) for one in near]
        sure = next((one for one in by_each if one.verdict == "supported" and not one.is_open), None)
        best = sure or next((one for one in by_each if one.verdict == "supported"), by_each[0])
        if best.is_open and best.candidate:
            return settled(best, self._holds(best.candidate.unit.text, said))
        return best

    def _order(self, one: Candidate) -> float:
        passage = one.passage
        return _OUTDATED * bool(passage.newest) - one.strength - _SAME_DOCUMENT * (passage.path == self._last)

    def _by_named(self, said: str, before: Judgement) -> Judgement:
        """Judge a statement without the name of a document in it, by that document; else keep the judgement before."""
        unit = before.candidate.unit.text if before.candidate else ""
        for one in self._mentions(said, unit):
            rest = " ".join(f"{said[: one.start]} {said[one.end :]}".split())
            found = self._judge(rest, self._passages(rest, one.paths), one.paths)
            if found.verdict in {"supported", "other document"}:
                return found
            if found.verdict == "contradicted" and before.verdict != "contradicted":
                return found
        return before

    def _mentions(self, said: str, unit: str) -> list[Mention]:
        """Return the documents that a statement names, and that the unit which it may stand on does not."""
        known = {one.name for one in self._names.within(unit)}
        return [one for one in self._names.within(said) if one.name not in known]

    def _with_page(self, claim: Claim, found: Judgement) -> Judgement:
        """Return a judgement that a statement stands on another page than it says, if it does."""
        passage = found.candidate.passage if found.candidate else None
        if found.verdict != "supported" or passage is None or passage.page is None or not claim.pages:
            return found
        page, label = passage.page, passage.page_label
        # A passage may go on on the next page, and a page may be cited by its label or by its number in the file.
        here = {str(page), str(page + 1), label, *([str(int(label) + 1)] if label.isdecimal() else [])}
        if here & {one.lower() for one in claim.pages} or here & {*claim.pages}:
            return found
        said = ", ".join(f"page {one}" for one in claim.pages)
        there = f"page {page_number(page, label)}"
        return replace(found, verdict="other document", differs=(Difference("place", said, there),))

    def _checked(self, claim: Claim, one: Judgement) -> Checked:
        quotes = [Evidence(one.candidate.place, one.differs)] if one.candidate else []
        verdict, probability = one.verdict, one.probability
        if one.candidate and verdict == "supported":
            self._last = one.candidate.passage.path
            if (newest := one.candidate.passage.newest) and (new := self._in_newest(claim.said, newest)):
                verdict, probability = "superseded", new.probability
                quotes = [Evidence(one.candidate.place, newest=newest)]
                quotes += [Evidence(new.candidate.place, new.differs)] if new.candidate else []
        return Checked(claim.text, claim.start, claim.end, verdict, tuple(quotes), probability)

    def _in_newest(self, said: str, newest: str) -> Judgement | None:
        """Return what the newest version of a document says instead of a statement; None if it says the same."""
        found = self._best(said, candidates_for(said, self._documents.search(said, [newest])))
        if found.verdict == "supported":
            return None
        return found if found.verdict == "contradicted" else Judgement("superseded", GUESSED)

    def _quoting(self, claim: Claim, passages: Sequence[Passage], cited: Sequence[str]) -> Checked:
        """Check what a statement quotes word for word, and whether the documents that it names say so."""
        quotes, elsewhere = list[Evidence](), False
        for quotation in claim.quotations:
            found = self._quoted(quotation, passages)
            if found is None:
                closest = candidates_for(quotation, passages)[:1]
                shown = tuple(Evidence(one.place, tuple(one.comparison.differences)) for one in closest)
                return Checked(claim.text, claim.start, claim.end, "not there", shown, DIFFERS)
            paths = cited or [path for one in self._mentions(claim.outside, found.place.text) for path in one.paths]
            if paths and found.place.path not in paths:
                own = self._quoted(quotation, self._documents.search(quotation, paths), anywhere=False)
                elsewhere = elsewhere or own is None
                found = own or found
            quotes.append(found)
        verdict: Verdict = "other document" if elsewhere else "supported"
        return Checked(claim.text, claim.start, claim.end, verdict, tuple(quotes[:_MOST_QUOTES]), SAME)

    def _mostly_quotes(self, claim: Claim) -> bool:
        """Return whether half of a statement or more is quoted; the name of a document in it says nothing."""
        named = [keyword_tokens(one.name) for one in self._names.within(claim.outside)]
        outside = len(keyword_tokens(claim.outside)) - sum(map(len, named))
        return len(keyword_tokens(" ".join(claim.quotations))) >= outside

    def _quoted(self, words: str, passages: Sequence[Passage], *, anywhere: bool = True) -> Evidence | None:
        """Return where documents have words one after the other; None if none has, `anywhere` or in some passages."""
        if found := verbatim(words, passages):
            return Evidence(place_of(found[0], *found[1]))
        other = self._documents.quoting(words) if anywhere else None
        return Evidence(place_of(other, 0, len(other.text))) if other else None


def _with_known(claim: Claim, found: Judgement) -> Judgement:
    """Return a judgement that a statement stands in another document than it says, if it names none that there is."""
    if found.verdict != "supported" or not claim.unknown or claim.cited or not found.candidate:
        return found
    differs = (Difference("place", ", ".join(claim.unknown), found.candidate.passage.path),)
    return replace(found, verdict="other document", differs=differs)
