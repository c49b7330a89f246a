"""Answer a question from passages, citing them, or say that they do not hold the answer.

A small model asked to refuse where it should refuses far too often, and one that is not asked invents. So the two are
taken apart: the model is first asked whether the sources hold the answer, and the odds of its Yes are compared with a
threshold; only then does it answer. Both prompts share the sources as their prefix, so that the check costs little.
"""

import codecs
import math
from collections.abc import Callable, Iterator, Sequence

from local_rag.asking.citations import CitationCheck, most_similar_source
from local_rag.asking.prompt import CHECK, MAX_ANSWER_TOKENS, REQUEST, closing_prompt, sources_prompt
from local_rag.llama.generator import Generator, Request, never
from local_rag.records import Answer, Citation, Passage

REFUSAL = "The documents do not answer this question."
_CONTEXT_TOKENS = 8192
# What two cores read in about ten seconds; passages asked for by number may take the whole context.
DEFAULT_PROMPT_TOKENS = 1024


def answer_room(context_length: int, _sequences: int) -> int:
    """Return the KV cells for the longest prompt and its answer."""
    return min(_CONTEXT_TOKENS, context_length)


class Answerer:
    """Answer with a generator; below `threshold` log odds of its Yes a question counts as unanswered."""

    def __init__(self, generator: Generator, threshold: float) -> None:
        self._generator, self._threshold = generator, threshold

    def answer(
        self,
        question: str,
        passages: Sequence[Passage],
        *,
        prompt_tokens: int | None = DEFAULT_PROMPT_TOKENS,
        anyway: bool = False,
        on_text: Callable[[str], None] = lambda _text: None,
        stop: Callable[[], bool] = never,
    ) -> Answer:
        """Answer a question from the best passages that fit, `passages` being ordered best first.

        They fit into a prompt of `prompt_tokens`, or with None into all the model can read. `on_text` is given the
        answer piece by piece; the pieces make up `Answer.text`. `anyway` answers below the threshold too. Once `stop`
        says yes, the answer ends with StoppedError.
        """
        self._generator.stop = stop
        room = self._generator.context_tokens
        limit = room if prompt_tokens is None else min(prompt_tokens, room)
        prefix, used = sources_prompt(question, passages, model=self._generator.model, limit=limit)
        log_odds = self.log_odds(prefix) if used else None
        if log_odds is None or (log_odds < self._threshold and not anyway):
            on_text(REFUSAL)
            return Answer(question, REFUSAL, answered=False, citations=(), passages=tuple(used), log_odds=log_odds)
        check, text = CitationCheck(len(used)), ""
        for piece in check(self._generate(prefix)):
            text += piece
            on_text(piece)
        cited = check.cited
        if not cited and (similar := most_similar_source(text, used)):
            cited = [similar]
            text += f" [{similar}]"
            on_text(f" [{similar}]")
        return Answer(
            question,
            text,
            answered=bool(text),
            citations=tuple(Citation(number, used[number - 1]) for number in sorted(set(cited))),
            passages=tuple(used),
            removed_citations=tuple(sorted(set(check.removed))),
            log_odds=log_odds,
        )

    def log_odds(self, prefix: Sequence[int]) -> float:
        """Return the log odds that the model says Yes when asked whether the sources hold the answer."""
        model = self._generator.model
        log_probabilities = self._generator.log_probabilities(prefix, closing_prompt(CHECK, model))

        def chance(words: Sequence[str]) -> float:
            return sum(math.exp(log_probabilities[model.tokenize(word)[0]]) for word in words)

        return math.log(chance(["Yes", "yes", " Yes", " yes"]) / chance(["No", "no", " No", " no"]))

    def _generate(self, prefix: Sequence[int]) -> Iterator[str]:
        """Yield the answer's text as it is generated; a token may end in the midst of a character."""
        model, decoder = self._generator.model, codecs.getincrementaldecoder("utf-8")("replace")
        request = Request("answer", prefix, closing_prompt(REQUEST, model), MAX_ANSWER_TOKENS)
        for event in self._generator.stream([request]):
            piece = b"" if event.token is None else model.piece(event.token)
            if text := decoder.decode(piece, final=event.token is None):
                yield text
