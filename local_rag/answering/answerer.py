"""Answer a question from sources, quote them if the answer is doubtful, or refuse if they say nothing about it.

A model that was trained to refuse says with its first token whether the sources answer, and what it then writes is told
as it is written. Code finds the units that each sentence stands on. A sentence with a number, unit or name that these
lack is struck, and what it stands on is quoted instead. From the first token and from what the reader says of the
passages follows how probable it is that the answer is right (see `probability.py`). Only a probable one is given.

Another model is asked behind the same prompt. If no passage could make its answer probable, it is not asked at all.
Without a calibration, it is also asked whether its answer is right.
"""

import math
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

from local_rag.answer_records import Answer, Outcome
from local_rag.answering.answer_checks import gives, is_seen
from local_rag.answering.attribution import Attribution, Attributor
from local_rag.answering.compose import Part, compose, text_of
from local_rag.answering.drafting import drafts, sentences_of
from local_rag.answering.foreign_questions import answered_from, in_english
from local_rag.answering.pace import Pace
from local_rag.answering.probability import Signals, probability
from local_rag.answering.prompt import PROPOSAL, closing_prompt
from local_rag.answering.reading import Prompt, Reading, first_token, prepare
from local_rag.answering.selection import Source
from local_rag.asking import Turn
from local_rag.llama.generator import Generator, Vocabulary, log_odds_of_yes
from local_rag.llama.models_in_use import open_answer_engine
from local_rag.model_records import PLAIN_FORM, AnswerForm, Calibration, InstalledModel
from local_rag.retrieval.question import Question
from local_rag.text.tokens import keyword_tokens
from local_rag.understanding.question_reader import read_plan

_CONTEXT_TOKENS = 8192
_KEPT = 8  # answers, for a question that is asked again, anyway or not strictly
_REPEATED = 0.7  # the share of words that a sentence has in common with those before it
_SURE_ANSWER = 0.0  # log odds of an answer from which on nothing more is read
# Log odds of an answer below which the model is sure that there is none. Where no calibration says more, nothing is
# quoted then. Of 15 such questions of the choosing halves of corpus/ and Natural Questions, 13 have no answer, and for
# the others the reader finds a likelier passage among those that are read next.
_SURE_REFUSAL = -3.0

Listener = Callable[[Sequence[Attribution], str], None]
"""Hears the sentences of an answer that are complete, and the beginning of the next one."""


def answer_room(context_length: int, _sequences: int) -> int:
    """Return the number of KV cells for the longest prompt and its answer."""
    return min(_CONTEXT_TOKENS, context_length)


@dataclass(frozen=True, slots=True)
class Draft:
    """What a model would answer to a question, or one part, before it is decided whether to say so.

    `sources` are those that it was shown.
    """

    sources: Sequence[Source]
    sentences: Sequence[Attribution]
    signals: Signals


class Answerer:
    """Answer with a generator, which is opened when it is needed.

    `form` says how its model is asked, and `pace` how fast that is. Without a `calibration`, its refusal or its own Yes
    decides. `close_from` is that of the embedder, `translates` that of the model: see model_records.ModelUse.
    """

    def __init__(
        self,
        open_generator: Callable[[], Generator],
        calibration: Calibration | None = None,
        *,
        form: AnswerForm = PLAIN_FORM,
        close_from: float | None = None,
        translates: bool = False,
        pace: Pace | None = None,
    ) -> None:
        self._open_generator, self.calibration, self.form = open_generator, calibration, form
        self.pace = pace or Pace()
        self._close_from, self._translates = close_from, translates
        self._texts = OrderedDict[Prompt, str]()
        self._first = lru_cache(_KEPT)(self._first_token)
        self._judge = lru_cache(_KEPT)(self._log_odds_of)
        self._translate = lru_cache(_KEPT)(lambda question: in_english(question, self.generator))

    @cached_property
    def generator(self) -> Generator:
        """The generator, opened at the first use."""
        return self._open_generator()

    def _first_token(self, prompt: Prompt) -> tuple[float, int | None]:
        with self.pace.measuring(self.generator.counts):
            return first_token(self.generator, self.form, prompt)

    def in_english(self, question: str) -> str:
        """Return a question in English; "" from a model that does not translate well, or not this one."""
        return self._translate(question) if self._translates else ""

    def answer_unread(
        self, question: Question, sources: Sequence[Source], *, before: Turn | None = None
    ) -> Answer | None:
        """Quote or refuse without the generator if no answer from these sources could be probable enough, else None."""
        if self.calibration is None or self.form.refusal:
            return None
        best = max((Signals(answers=one.answers) for one in sources), key=self._chance, default=Signals())
        threshold = self._threshold(question) or 0.0
        if self._chance(best) >= threshold:
            return None
        close = self._is_close(_attributor(question, sources, before), sources)
        outcome = self._outcome(best, threshold, close=close)
        likely = probability(best, self.calibration)
        part = Part("", (), outcome or "refused", likely, reader_log_odds=best.answers)
        return compose(question, sources, [part], threshold=threshold)

    def answer_late(self, question: Question, sources: Sequence[Source], *, before: Turn | None = None) -> Answer:
        """Quote the sources without the generator, for which there is no time, or refuse if none of them is close."""
        close = self._is_close(_attributor(question, sources, before), sources)
        part = Part("", (), "quoted" if close else "refused", late=True)
        return compose(question, sources, [part], threshold=self._threshold(question))

    def _threshold(self, question: Question) -> float | None:
        """Return the least probability of an answer that is given, None without a calibration."""
        least = self.calibration.answer_from if self.calibration else None
        return least if least is None or not question.typed else answered_from(least)

    def _chance(self, signals: Signals) -> float:
        likely = probability(signals, self.calibration)
        return 1.0 if likely is None else likely

    def answer(
        self,
        question: Question,
        sources: Sequence[Source],
        *,
        more: Iterable[Callable[[], Sequence[Source]]] = (),
        before: Turn | None = None,
        strict: bool = True,
        anyway: bool = False,
        show: Callable[[str], None] = lambda _text: None,
    ) -> Answer:
        """Answer from `sources`, which are ordered best first; `before` is the turn before a follow-up.

        Where the model is not sure that they answer, what `more` returns is read too, one after the other. With
        `strict`, no sentence with a number or name that its quotation lacks is given. With `anyway`, a doubtful one is.
        `show` is called with the text that stands, whenever it grows or changes.
        """
        threshold = self._threshold(question)
        reading = self._read_enough(question, sources, more, before)
        if reading is None:
            nothing = Part("", (), "refused", 0.0 if self.calibration else None)
            return compose(question, (), [nothing], threshold=threshold)
        asking = _Asking(reading, _attributor(question, reading.sources, before), strict, anyway, show)
        parts = list[Part]()
        for number, asked in enumerate(reading.parts):
            if number and self.form.refusal:
                # Where the model was sure of an answer that failed its check, its answers to parts are no better.
                failed = parts[0].outcome != "answered" and self._first(reading.prompts[0])[0] >= _SURE_ANSWER
                if failed or (is_seen(read_plan(asked).answer_type) and not _lacks(parts[0], asked)):
                    continue
            part = self._part(asking, number, parts)
            # Whether the answer to all of it says what no kind of thing is known for, only another answer can show.
            if part.outcome == "answered" or not number or not self.form.refusal or _lacks(parts[0], asked):
                parts.append(part)
        if self.form.refusal and parts[0].outcome != "answered":
            parts = parts[1:] if any(part.outcome == "answered" for part in parts) else parts[:1]
        return compose(question, reading.sources, parts, threshold=threshold, tokens=reading.tokens)

    def draft(
        self,
        question: Question,
        sources: Sequence[Source],
        *,
        more: Iterable[Callable[[], Sequence[Source]]] = (),
        before: Turn | None = None,
    ) -> Draft | None:
        """Read what an answer reads, and write one to the whole question; None without sources."""
        reading = self._read_enough(question, sources, more, before)
        if reading is None:
            return None
        attributor = _attributor(question, reading.sources, before)
        signals, sentences = self._write(reading, 0, attributor, lambda _sentences, _rest: None)
        return Draft(reading.sources, sentences, signals)

    def read_ahead(self, question: Question, sources: Sequence[Source]) -> None:
        """Read what an answer reads, so that it begins sooner."""
        if reading := prepare(self.generator, self.form, question, sources):
            self.generator.read(reading.prompts[0].prefix)

    def _read_enough(
        self,
        question: Question,
        sources: Sequence[Source],
        more: Iterable[Callable[[], Sequence[Source]]],
        before: Turn | None,
    ) -> Reading | None:
        """Read more sources until the model is sure that they answer; return those of which it is surest.

        Where it is sure that they do not, more are read only if they show more of what the reader takes for an answer.
        """
        best = prepare(self.generator, self.form, question, sources, before)
        for select in more if self.form.refusal else ():
            if best is None or (odds := self._first(best.prompts[0])[0]) >= _SURE_ANSWER:
                break
            other = prepare(self.generator, self.form, question, select(), before)
            if odds < _SURE_REFUSAL and not _is_hopeful(other, best):
                break
            best = max(filter(None, (best, other)), key=lambda one: self._first(one.prompts[0])[0])
        return best

    def _part(self, asking: "_Asking", number: int, earlier: Sequence[Part]) -> Part:
        """Answer, quote or refuse one part of a question, and show it below the `earlier` parts."""
        reading, asked = asking.reading, asking.reading.parts[number]
        close, threshold = self._is_close(asking.attributor, reading.sources), self._threshold(reading.question)
        signals = replace(reading.signals, answerable=self._first(reading.prompts[number])[0])
        known = "answered" if asking.anyway else self._outcome(signals, threshold, close=close)
        if known == "refused":
            return Part(asked, (), "refused", probability(signals, self.calibration), signals.odds, signals.answers)

        def listen(sentences: Sequence[Attribution], rest: str) -> None:
            if known == "answered" and self.form.refusal:
                rest = asking.attributor.known_beginning(rest)
                growing = Part(asked, sentences, "answered", strict=asking.strict, checked=not asking.anyway, rest=rest)
                asking.show(text_of(reading.sources, [*earlier, growing], question=reading.question))

        signals, sentences = self._write(reading, number, asking.attributor, listen)
        said = {one.sentence for part in earlier for one in part.sentences}
        words = frozenset(word for sentence in said for word in keyword_tokens(sentence))
        new = [one for one in sentences if one.sentence not in said]
        if self.form.refusal:
            new = [one for one in new if not _repeats(one.sentence, words)]
        likely, checked = probability(signals, self.calibration), not asking.anyway
        odds = signals.odds, signals.answers
        part = Part(asked, new, "answered", likely, *odds, strict=asking.strict, checked=checked)
        if asking.anyway and new:
            return part
        given = not part.fault(reading.question)
        return replace(part, outcome=self._outcome(signals, threshold, close=close, given=given) or "refused")

    def _write(
        self, reading: Reading, number: int, attributor: Attributor, listen: Listener
    ) -> tuple[Signals, list[Attribution]]:
        """Write the answer to a part; return what speaks for it, and its sentences."""
        prompt, done, text = reading.prompts[number], list[Attribution](), ""
        answerable, first = self._first(prompt)
        kept = self._texts.get(prompt)
        with self.pace.measuring(self.generator.counts):
            for text, ended in [(kept, True)] if kept is not None else drafts(self.generator, prompt, first):
                sentences, rest = sentences_of(text, ended=ended)
                done += map(attributor.attribute, sentences[len(done) :])
                listen(done, rest)
        self._texts[prompt] = text
        while len(self._texts) > _KEPT:
            self._texts.popitem(last=False)
        signals = replace(reading.signals, answerable=answerable)
        if not self.form.refusal:
            signals = replace(signals, answers=_answers(done, reading.sources))
            if probability(signals, self.calibration) is None:
                signals = replace(signals, right=self._judge(prompt.prefix, " ".join(text.split())))
        return signals, done

    def _outcome(
        self, signals: Signals, threshold: float | None, *, close: bool, given: bool | None = None
    ) -> Outcome | None:
        """Decide what to do with an answer, of which a sentence may be given or not.

        Without knowing that, return None if the signals do not decide.
        """
        likely, gate = probability(signals, self.calibration), self.calibration
        far = False
        if gate and threshold is not None and likely is not None:
            good, far = likely >= threshold, likely < gate.quote_from
        elif not math.isnan(signals.answerable):
            good, far = signals.answerable >= 0, signals.answerable < _SURE_REFUSAL
        elif given is None:
            return None
        else:  # nothing tells how sure the model is: its numbers and names decide
            good = given if math.isnan(signals.right) else signals.right >= 0
        if good and given is not False:
            return "answered"
        return "quoted" if close and not far else "refused"

    def _is_close(self, attributor: Attributor, sources: Sequence[Source]) -> bool:
        """Return whether sources have a word of the question, or a close meaning, perhaps in another language."""
        cosines = [hit.score for one in sources for hit in one.passage.hits if hit.list_name == "dense"]
        near = self._close_from is not None and max(cosines, default=-1.0) >= self._close_from
        return near or attributor.is_close

    def _log_odds_of(self, prefix: Sequence[int], answer: str) -> float:
        """Return the log odds that a model finds an answer right; not a number if the engine does not tell them."""
        model = self.generator.model
        request = PROPOSAL.format(answer=answer)
        log_probabilities = self.generator.log_probabilities(prefix, closing_prompt(request, model))
        return math.nan if log_probabilities is None else log_odds_of_yes(log_probabilities, model)


@dataclass(frozen=True, slots=True)
class _Asking:
    """What stays the same for all parts of a question."""

    reading: Reading
    attributor: Attributor
    strict: bool
    anyway: bool
    show: Callable[[str], None]


def _is_hopeful(other: Reading | None, than: Reading) -> bool:
    """Return whether another reading shows more of a passage that, says the reader, answers.

    That is one that probably does, or is likelier to than all before. Without a reader, it may.
    """
    if other is None or than.signals.answers is None:
        return True
    least = min(0.0, than.signals.answers)
    read = {(source.passage.chunk_id, unit.start) for source in than.sources for unit in source.units}
    hopeful = [source for source in other.sources if source.answers is not None and source.answers > least]
    return any((source.passage.chunk_id, unit.start) not in read for source in hopeful for unit in source.units)


def _lacks(whole: Part, asked: str) -> bool:
    """Return whether the answer to a compound question certainly lacks one of its parts."""
    said = [one.sentence for one in whole.given]
    return whole.outcome != "answered" or not said or not gives(read_plan(asked).answer_type, said, asked)


def _repeats(sentence: str, said: AbstractSet[str]) -> bool:
    words = frozenset(keyword_tokens(sentence))
    return bool(said) and len(words & said) >= _REPEATED * len(words)


def _attributor(question: Question, sources: Sequence[Source], before: Turn | None) -> Attributor:
    return Attributor(question.text, sources, before.question if before else "")


def _answers(sentences: Sequence[Attribution], sources: Sequence[Source]) -> float | None:
    """Return the reader's highest verdict on a passage that an answer stands on, else the lowest of all."""
    known = [source.answers for source in sources if source.answers is not None]
    stood_on = {number for sentence in sentences for number, _ in sentence.units}
    used = [answers for number in stood_on if (answers := sources[number].answers) is not None]
    return max(used, default=min(known, default=None))


class AnswerModel:
    """Load the model that `find` returns when it is first needed: for counting tokens only its vocabulary."""

    def __init__(
        self,
        find: Callable[[], InstalledModel],
        *,
        open_engine: Callable[..., AbstractContextManager[Generator]],
        open_vocabulary: Callable[[Path], AbstractContextManager[Vocabulary]],
    ) -> None:
        self._find, self._open_engine, self._open_vocabulary = find, open_engine, open_vocabulary
        self._generator: Generator | None = None
        self._vocabulary: Vocabulary | None = None
        self._loading: Future[Generator] | None = None
        self._opened = ExitStack()
        # A script that does not close the library would end with errors, because Python unloads modules before models.
        weakref.finalize(self, self._opened.close)

    def begin(self) -> None:
        """Load the weights in a thread of their own, unless they are loaded: a search can be done meanwhile."""
        if self._generator is not None or self._loading is not None:
            return
        self._loading = loading = Future[Generator]()

        def load() -> None:
            try:
                loading.set_result(self._load())
            except BaseException as error:  # noqa: BLE001  it is raised where the model is needed
                loading.set_exception(error)

        threading.Thread(target=load, name="answer model", daemon=True).start()

    def open(self) -> Generator:
        """Load the weights, unless they are loaded."""
        if self._generator is None:
            loading, self._loading = self._loading, None
            self._generator = loading.result() if loading else self._load()
        return self._generator

    def _load(self) -> Generator:
        opened = open_answer_engine(self._find(), context_tokens=answer_room, open_engine=self._open_engine)
        return self._opened.enter_context(opened)

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text; the weights are not loaded for that."""
        if self._generator is not None or self._loading is not None:
            return len(self.open().model.tokenize(text))
        if self._vocabulary is None:
            model = self._find()
            if model.engine:  # it has no vocabulary of its own to load
                return len(self.open().model.tokenize(text))
            self._vocabulary = self._opened.enter_context(self._open_vocabulary(model.path))
        return len(self._vocabulary.tokenize(text))

    def close(self) -> None:
        """Free the model; it can be opened again."""
        if loading := self._loading:
            wait([loading])
            self._loading = None
        self._opened.close()
        self._generator = self._vocabulary = None
