"""Answer a question from sources, quote them if the answer is doubtful, or refuse if they say nothing about it.

The model is asked behind one prompt with the sources. Code finds the units that its answer stands on. From what the
reader says of their passage follows how probable it is that the answer is right (see `gate.py`), and only a probable
answer is given. If no passage could make an answer probable, the model is not asked at all. Without a calibration for
what the reader says, the model is also asked whether its answer is right.
"""

import math
import re
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from local_rag.answering.attribution import Attribution, Attributor
from local_rag.answering.gate import Signals, probability
from local_rag.answering.phrases import translated
from local_rag.answering.prompt import (
    MAX_ANSWER_TOKENS,
    MOST_SENTENCES,
    PROPOSAL,
    answer_requests,
    closing_prompt,
    sources_prompt,
)
from local_rag.answering.quotes import is_list, quote_best, quote_support, unwrapped
from local_rag.answering.selection import Source, shown_of
from local_rag.index.keyword_index import keyword_tokens
from local_rag.llama.generator import Generator, Request
from local_rag.records import Answer, Calibration, Citation, Outcome, Quote, SentenceSupport, Turn
from local_rag.verification.sentences import split_sentences

REFUSAL = "The documents do not answer this question."
NOT_SURE = "Not sure. This is what the documents say:"
_CONTEXT_TOKENS = 8192
_FOOTNOTE = re.compile(r"\s*\[\s*\d+(?:\s*[,;-]\s*\d+)*\s*\]")
_OWN_WORDS = re.compile(
    r"\A(?:according to|based on) (?:the )?(?:\w+ )?(?:sources?|documents?|information|text)(?: \d+| \w+ed)?,? (\S)",
    re.IGNORECASE,
)
_CLOSEST = 3  # passages to name if there is no answer


def answer_room(context_length: int, _sequences: int) -> int:
    """Return the number of KV cells for the longest prompt and its answer."""
    return min(_CONTEXT_TOKENS, context_length)


@dataclass(frozen=True, slots=True)
class Draft:
    """What a model would answer, before it is decided whether to say so; `sources` are those it was shown."""

    sources: Sequence[Source]
    sentences: Sequence[Attribution]
    signals: Signals
    close: bool  # whether the sources have any word of the question, or a meaning close to it
    tokens: int


class Answerer:
    """Answer with a generator, which is opened when it is needed; without a `calibration`, the model's own Yes decides.

    `close_from` is that of the embedder: see records.ModelUse.
    """

    def __init__(
        self,
        open_generator: Callable[[], Generator],
        calibration: Calibration | None = None,
        *,
        close_from: float | None = None,
    ) -> None:
        self._open_generator, self.calibration, self._close_from = open_generator, calibration, close_from
        # A question that is answered anyway, or strictly, after it was answered is not read again.
        self._read, self._judge = lru_cache(4)(self._write), lru_cache(4)(self._log_odds_of)

    @cached_property
    def generator(self) -> Generator:
        """The generator, opened at the first use."""
        return self._open_generator()

    def answer_unread(self, question: str, sources: Sequence[Source], *, before: Turn | None = None) -> Answer | None:
        """Quote or refuse without the generator if no answer from these sources could be probable enough, else None."""
        draft = self._unread(question, sources, before)
        return self._decide(question, draft) if draft else None

    def answer(
        self,
        question: str,
        sources: Sequence[Source],
        *,
        before: Turn | None = None,
        strict: bool = False,
        anyway: bool = False,
    ) -> Answer:
        """Answer from `sources`, which are ordered best first; `before` is the turn before a follow-up.

        With `strict`, an answer with a number or name that its quotation lacks is not given. With `anyway`, a doubtful
        one is.
        """
        return self._decide(question, self.draft(question, sources, before=before), strict=strict, anyway=anyway)

    def draft(self, question: str, sources: Sequence[Source], *, before: Turn | None = None) -> Draft | None:
        """Read as many of the sources as fit, and write an answer; None without sources."""
        prefix, used = self._prompt(question, sources, before=before)
        if not used:
            return None
        text = self._read(question, tuple(prefix))
        attributor = Attributor(question, used, before.question if before else "")
        sentences = [attributor.attribute(sentence.strip()) for sentence in split_sentences(text)]
        signals = Signals(answers=_answers(sentences, used))
        if probability(signals, self.calibration) is None:
            signals = replace(signals, right=self._judge(tuple(prefix), " ".join(text.split())))
        return Draft(used, sentences, signals, attributor.is_close or self._is_near(used), len(prefix))

    def _unread(self, question: str, sources: Sequence[Source], before: Turn | None) -> Draft | None:
        """Return a draft without an answer if no answer from these sources could be probable enough, else None."""

        def chance(signals: Signals) -> float:
            likely = probability(signals, self.calibration)
            return 1.0 if likely is None else likely

        best = max((Signals(answers=one.answers) for one in sources), key=chance, default=Signals())
        if self.calibration is None or chance(best) >= self.calibration.answer_from:
            return None
        close = Attributor(question, sources, before.question if before else "").is_close or self._is_near(sources)
        return Draft(sources, (), best, close, 0)

    def read_ahead(self, question: str, sources: Sequence[Source]) -> None:
        """Read what a draft reads, so that it begins sooner."""
        prefix, used = self._prompt(question, sources)
        if used:
            self.generator.read(prefix)

    def _prompt(
        self, question: str, sources: Sequence[Source], *, before: Turn | None = None
    ) -> tuple[list[int], list[Source]]:
        """Return the prompt up to the question, and the sources in it, with room for what the model is then asked."""
        generator = self.generator
        limit = generator.context_tokens - MAX_ANSWER_TOKENS * len(answer_requests(question)) - 2 * MAX_ANSWER_TOKENS
        return sources_prompt(question, sources, model=generator.model, limit=limit, before=before)

    def _is_near(self, sources: Sequence[Source]) -> bool:
        """Return whether the meaning of a source is close, as it can be in another language than the question's."""
        cosines = [hit.score for one in sources for hit in one.passage.hits if hit.list_name == "dense"]
        return self._close_from is not None and max(cosines, default=-1.0) >= self._close_from

    def _write(self, question: str, prefix: Sequence[int]) -> str:
        """Return the answer to all parts of a question.

        The parts are answered in one batch, each in at most MOST_SENTENCES sentences. A sentence that repeats an
        earlier one is left out.
        """
        model = self.generator.model
        requests = [
            Request(str(number), prefix, closing_prompt(request, model), MAX_ANSWER_TOKENS)
            for number, request in enumerate(answer_requests(question))
        ]
        tokens, open_parts = [list[int]() for _ in requests], set(range(len(requests)))
        with closing(self.generator.stream(requests)) as events:
            for event in events:
                number = int(event.key)
                if number in open_parts and event.token is not None:
                    tokens[number].append(event.token)
                if event.token is None or len(split_sentences(model.detokenize(tokens[number]))) > MOST_SENTENCES:
                    open_parts.discard(number)
                if not open_parts:
                    break
        kept = dict[frozenset[str], str]()
        for text in map(model.detokenize, tokens):
            # What looks like a citation is a footnote that the model copied.
            for written in split_sentences(_FOOTNOTE.sub("", text))[:MOST_SENTENCES]:
                sentence = _OWN_WORDS.sub(lambda found: found[1].upper(), written.strip())
                words = frozenset(keyword_tokens(sentence))
                if not any(words <= others for others in kept):
                    kept[words] = sentence
        return " ".join(kept.values())

    def _log_odds_of(self, prefix: Sequence[int], answer: str) -> float:
        """Return the log odds that the model finds an answer right; not a number if the engine does not tell them."""
        model = self.generator.model
        request = PROPOSAL.format(answer=answer)
        log_probabilities = self.generator.log_probabilities(prefix, closing_prompt(request, model))
        if log_probabilities is None:
            return math.nan

        def chance(words: Sequence[str]) -> float:
            return sum(math.exp(log_probabilities[model.tokenize(word)[0]]) for word in words)

        yes, no = chance(["Yes", "yes", " Yes", " yes"]), chance(["No", "no", " No", " no"])
        # An engine that tells only the most probable tokens gives all others the same odds.
        return math.nan if yes == no else math.log(yes / no)

    def _decide(self, question: str, draft: Draft | None, *, strict: bool = False, anyway: bool = False) -> Answer:
        """Decide whether to give a draft, and write what the user is told."""
        likely = self._likely(draft)
        return self._compose(question, draft, self._outcome(draft, likely, strict=strict, anyway=anyway), likely)

    def _likely(self, draft: Draft | None) -> float | None:
        return probability(draft.signals, self.calibration) if draft else 0.0 if self.calibration else None

    def _outcome(self, draft: Draft | None, likely: float | None, *, strict: bool, anyway: bool) -> Outcome:
        if draft is None:
            return "refused"
        supported = [one for one in draft.sentences if one.is_supported]
        if anyway and draft.sentences:
            return "answered"
        gate = self.calibration
        if gate and likely is not None:
            good = likely >= gate.answer_from
        elif not math.isnan(draft.signals.right):
            good = draft.signals.right >= 0
        else:  # nothing tells how sure the model is: its numbers and names decide
            good = not any(one.missing for one in draft.sentences)
        if good and supported and not (strict and any(one.missing for one in draft.sentences)):
            return "answered"
        far = gate and likely is not None and likely < gate.quote_from
        return "quoted" if draft.close and not far else "refused"

    def _compose(self, question: str, draft: Draft | None, outcome: Outcome, likely: float | None) -> Answer:
        """Write what the user is told."""
        sources = draft.sources if draft else ()
        quotes: Sequence[Quote] = ()
        support: tuple[SentenceSupport, ...] = ()
        text = translated(REFUSAL, question)
        if draft and outcome == "quoted":
            quotes = quote_best(draft.sentences, sources)
            text = "\n".join(
                [translated(NOT_SURE, question), *(f"- {unwrapped(one.text)} [{one.citation}]" for one in quotes)]
            )
        elif draft and outcome == "answered":
            supported = [one for one in draft.sentences if one.is_supported] or draft.sentences
            given = [one for one in supported if not one.missing] or supported
            quotes = quote_support(given, sources)
            support = tuple(map(_support, given))
            text = " ".join(f"{one.sentence} {list(one.citations) or ''}".rstrip() for one in support)
            steps = [f"{unwrapped(one.text)} [{one.citation}]" for one in quotes if is_list(one.text)]
            text = "\n\n".join([text, *steps])
        numbers = sorted({one.citation for one in quotes})
        return Answer(
            question,
            text,
            outcome,
            citations=tuple(Citation(number, sources[number - 1].passage) for number in numbers),
            quotes=tuple(quotes),
            shown=tuple(shown_of(sources)),
            read=tuple(source.passage for source in sources),
            closest=tuple(source.passage for source in sources[:_CLOSEST]) if outcome == "refused" else (),
            support=support,
            probability=likely,
            threshold=self.calibration.answer_from if self.calibration else None,
            log_odds=draft.signals.right if draft and not math.isnan(draft.signals.right) else None,
            tokens=draft.tokens if draft else 0,
        )


def _answers(sentences: Sequence[Attribution], sources: Sequence[Source]) -> float | None:
    """Return the signal `answers`: the highest of the passages that an answer stands on, else the lowest of all."""
    known = [source.answers for source in sources if source.answers is not None]
    stood_on = {number for sentence in sentences for number, _ in sentence.units}
    used = [answers for number in stood_on if (answers := sources[number].answers) is not None]
    return max(used, default=min(known, default=None))


def _support(sentence: Attribution) -> SentenceSupport:
    numbers = tuple(dict.fromkeys(number + 1 for number, _ in sentence.units))
    return SentenceSupport(sentence.sentence, sentence.is_supported and not sentence.missing, sentence.missing, numbers)
