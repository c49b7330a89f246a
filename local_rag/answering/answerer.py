"""Answer a question from passages with citations, or report that they do not contain the answer.

A small model that is told when to refuse refuses far too often, and one that is not told invents answers. The two steps
are therefore separate: the model is first asked whether the sources contain the answer, and the odds of its Yes are
compared with a threshold. Only then does it answer. Both prompts begin with the sources, so the check costs little.
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
_CLOSEST = 3  # passages to name if there is no answer


def answer_room(context_length: int, _sequences: int) -> int:
    """Return the number of KV cells for the longest prompt and its answer."""
    return min(_CONTEXT_TOKENS, context_length)


@dataclass(frozen=True, slots=True)
class ReadSources:
    """A question with the passages that the model has read for it; `prefix` is the prompt in tokens.

    `log_odds` is the model's confidence that the sources contain the answer, None if there are no sources.
    """

    question: str
    prefix: Sequence[int]
    passages: Sequence[Passage]
    log_odds: float | None


class Answerer:
    """Answer with a generator; if the log odds of its Yes are below `threshold`, refuse."""

    def __init__(self, generator: Generator, threshold: float) -> None:
        self.generator, self.threshold = generator, threshold

    @functools.cached_property
    def usual_tokens(self) -> int:
        """Return the default number of prompt tokens to read, measured once."""
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
        """Read the passages, and then answer or refuse."""
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
        """Read the best passages that fit and judge whether they contain the answer; `passages` are ordered best first.

        The prompt has at most `prompt_tokens` tokens, or with None as many as the model can read. Only the `excerpts`
        of the passages that fit are read. `before` is the turn before a follow-up.
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
        """Answer if the model judges that the sources contain the answer, or if `anyway` is set; else refuse."""
        if reading.log_odds is not None and (anyway or reading.log_odds >= self.threshold):
            return self._write(reading, reranker=reranker, strict=strict, on_text=on_text)
        return self._refuse(reading, on_text)

    def _refuse(self, reading: ReadSources, on_text: Callable[[str], None]) -> Answer:
        """Return a refusal with the closest passages."""
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
        """Answer from the sources, and check the answer against them.

        `on_text` receives the answer piece by piece. Joined, the pieces are `Answer.text`, except for citations that
        the check with the `reranker` changes afterwards. With `strict` unsupported sentences are left out, and the text
        is passed on only after the check.
        """
        used = reading.passages
        check, text = CitationCheck(len(used)), ""
        emit = (lambda _text: None) if strict else on_text
        for piece in check(write_answer(reading.question, reading.prefix, self.generator)):
            text += piece
            emit(piece)
        cited = check.cited
        if not cited and (similar := most_similar_source(text, used)):
            cited = [similar]
            text += f" [{similar}]"
            emit(f" [{similar}]")
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
        """Return the log odds that the model replies Yes when asked whether the sources contain the answer."""
        model = self.generator.model
        log_probabilities = self.generator.log_probabilities(prefix, closing_prompt(check_prompt(question), model))

        def probability(words: Sequence[str]) -> float:
            return sum(math.exp(log_probabilities[model.tokenize(word)[0]]) for word in words)

        return math.log(probability(["Yes", "yes", " Yes", " yes"]) / probability(["No", "no", " No", " no"]))
