"""Answer a question from passages, citing them, or say that they do not hold the answer.

A small model asked to refuse where it should refuses far too often, and one that is not asked invents. So the two are
taken apart: the model is first asked whether the sources hold the answer, and the odds of its Yes are compared with a
threshold; only then does it answer. Both prompts share the sources as their prefix, so that the check costs little.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from local_rag.answering.generate import write_answer
from local_rag.answering.prompt import (
    MAX_ANSWER_TOKENS,
    Excerpts,
    check_prompt,
    closing_prompt,
    sources_prompt,
    whole_texts,
)
from local_rag.answering.reading_budget import reading_budget
from local_rag.llama.generator import Generator
from local_rag.models.reranker import Reranker
from local_rag.records import Answer, Citation, Passage, Turn
from local_rag.verification.check import check_support
from local_rag.verification.citations import CitationCheck, most_similar_source

REFUSAL = "The documents do not answer this question."
_CONTEXT_TOKENS = 8192
_CLOSEST = 3  # passages that are named where there is no answer


def answer_room(context_length: int, _sequences: int) -> int:
    """Return the KV cells for the longest prompt and its answer."""
    return min(_CONTEXT_TOKENS, context_length)


@dataclass(frozen=True, slots=True)
class ReadSources:
    """A question with the passages the model has read for it, as a prompt in tokens.

    `log_odds` are those of the sources holding the answer, None where there is none to read.
    """

    question: str
    prefix: Sequence[int]
    passages: Sequence[Passage]
    log_odds: float | None


class Answerer:
    """Answer with a generator; below `threshold` log odds of its Yes a question counts as unanswered."""

    def __init__(self, generator: Generator, threshold: float) -> None:
        self.generator, self.threshold = generator, threshold

    @functools.cached_property
    def usual_tokens(self) -> int:
        """Return how many tokens of a prompt are read where nothing else is asked for, as found out once."""
        return reading_budget(self.generator)

    def answer(
        self,
        question: str,
        passages: Sequence[Passage],
        *,
        prompt_tokens: int | None = None,
        reranker: Reranker | None = None,
        strict: bool = False,
        on_text: Callable[[str], None] = lambda _text: None,
        before: Turn | None = None,
    ) -> Answer:
        """Read, and then answer or refuse."""
        reading = self.read(question, passages, prompt_tokens=prompt_tokens, before=before)
        return self.conclude(reading, reranker=reranker, strict=strict, on_text=on_text)

    def read(
        self,
        question: str,
        passages: Sequence[Passage],
        *,
        prompt_tokens: int | None = None,
        excerpts: Excerpts = whole_texts,
        before: Turn | None = None,
    ) -> ReadSources:
        """Read the best passages that fit, `passages` being ordered best first, and judge whether they hold the answer.

        They fit into a prompt of `prompt_tokens`, or with None into all the model can read; of those that do the
        `excerpts` are read. `before` is the turn that a follow-up follows.
        """
        room, model = self.generator.context_tokens, self.generator.model
        limit = min(prompt_tokens or room, room - MAX_ANSWER_TOKENS)
        prefix, used = sources_prompt(question, passages, model=model, limit=limit, excerpts=excerpts, before=before)
        return ReadSources(question, prefix, used, self.log_odds(question, prefix) if used else None)

    def conclude(
        self,
        reading: ReadSources,
        *,
        anyway: bool = False,
        reranker: Reranker | None = None,
        strict: bool = False,
        on_text: Callable[[str], None] = lambda _text: None,
    ) -> Answer:
        """Answer where what was read holds the answer, as far as the model can tell, or `anyway`; else refuse."""
        if reading.log_odds is not None and (anyway or reading.log_odds >= self.threshold):
            return self._write(reading, reranker=reranker, strict=strict, on_text=on_text)
        return self._refuse(reading, on_text)

    def _refuse(self, reading: ReadSources, on_text: Callable[[str], None]) -> Answer:
        """Return the answer of a question that the documents do not answer, with the passages that come closest."""
        on_text(REFUSAL)
        return Answer(
            reading.question,
            REFUSAL,
            answered=False,
            read=tuple(reading.passages),
            closest=tuple(reading.passages[:_CLOSEST]),
            log_odds=reading.log_odds,
            threshold=self.threshold,
            tokens=len(reading.prefix),
            written=len(self.generator.model.tokenize(REFUSAL)),
        )

    def _write(
        self, reading: ReadSources, *, reranker: Reranker | None, strict: bool, on_text: Callable[[str], None]
    ) -> Answer:
        """Answer from what was read, and check the answer against it.

        `on_text` is given the answer piece by piece; the pieces make up `Answer.text`, but for citations that the check
        by `reranker` changes afterwards. `strict` leaves out sentences that nothing supports, and tells the text when
        all of it is checked.
        """
        used = reading.passages
        check, text = CitationCheck(len(used)), ""
        tell = (lambda _text: None) if strict else on_text
        for piece in check(write_answer(reading.question, reading.prefix, self.generator)):
            text += piece
            tell(piece)
        cited = check.cited
        if not cited and (similar := most_similar_source(text, used)):
            cited = [similar]
            text += f" [{similar}]"
            tell(f" [{similar}]")
        removed = list(zip(check.removed_at, check.removed, strict=True))
        checked = check_support(reading.question, text, used, reranker, removed)
        text = checked.strict_text() if strict else checked.text
        answered = bool(text)
        if strict:
            text = text or REFUSAL
            on_text(text)
        known = {*cited, *(new for _, new in checked.changes)} if answered else set()
        kept = [support for support in checked.sentences if support.supported or not strict]
        cited = [number for support in kept for number in support.citations if number in known]
        return Answer(
            reading.question,
            text,
            answered=answered,
            citations=tuple(Citation(number, used[number - 1]) for number in sorted(set(cited))),
            read=tuple(used),
            closest=() if answered else tuple(used[:_CLOSEST]),
            removed_citations=tuple(sorted(set(check.removed))),
            log_odds=reading.log_odds,
            threshold=self.threshold,
            tokens=len(reading.prefix),
            written=len(self.generator.model.tokenize(text)),
            support=checked.sentences,
            changed_citations=checked.changes,
        )

    def log_odds(self, question: str, prefix: Sequence[int]) -> float:
        """Return the log odds that the model says Yes when asked whether the sources hold the answer."""
        model = self.generator.model
        log_probabilities = self.generator.log_probabilities(prefix, closing_prompt(check_prompt(question), model))

        def chance(words: Sequence[str]) -> float:
            return sum(math.exp(log_probabilities[model.tokenize(word)[0]]) for word in words)

        return math.log(chance(["Yes", "yes", " Yes", " yes"]) / chance(["No", "no", " No", " no"]))
