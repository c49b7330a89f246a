"""Let a model read sources: its prompt, and what its first token says about whether they answer the question."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from local_rag.answering.probability import Signals
from local_rag.answering.prompt import MAX_ANSWER_TOKENS, answer_requests, closing_prompt, sources_prompt
from local_rag.answering.selection import Source
from local_rag.asking import Turn
from local_rag.llama.generator import Generator, log_odds_against
from local_rag.model_records import AnswerForm
from local_rag.retrieval.question import Question


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt in two pieces, of which the first is kept for the next prompt that begins with it."""

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """Sources that a model reads for a question, best first, and its prompts.

    There is a prompt for each of the `parts` that are asked for; "" is the whole question. `tokens` is the length of
    the prompts up to the question.
    """

    question: Question
    sources: tuple[Source, ...]
    parts: tuple[str, ...]
    prompts: tuple[Prompt, ...]
    tokens: int
    signals: Signals


def prepare(
    generator: Generator, form: AnswerForm, question: Question, sources: Sequence[Source], before: Turn | None = None
) -> Reading | None:
    """Return the prompts for as many of the sources as fit, which are ordered best first; None without sources.

    Nothing is evaluated. Raises QuestionError if the question leaves no room.
    """
    model, requests = generator.model, answer_requests(question.parts, form)
    closings = [closing_prompt(request, model) for _, request in requests]
    room = generator.context_tokens - MAX_ANSWER_TOKENS * (len(requests) + 2) - max(map(len, closings))
    prefix, used = sources_prompt(question.text, sources, model=model, room=room, before=before)
    if not used:
        return None
    # Where the first token is asked for, all but the last token belong to the prefix: they are evaluated only once.
    at = -1 if form.refusal else 0
    prompts = [Prompt((*prefix, *closing[:at]), tuple(closing[at:])) for closing in closings]
    known = [source.answers for source in used if source.answers is not None]
    signals = Signals(answers=max(known, default=None))
    return Reading(question, tuple(used), tuple(part for part, _ in requests), tuple(prompts), len(prefix), signals)


def first_token(generator: Generator, form: AnswerForm, prompt: Prompt) -> tuple[float, int | None]:
    """Return the log odds that an answer begins with another token than the refusal.

    If the refusal is the likeliest of all tokens, which it can be while an answer is likelier than it, also return the
    one that is likeliest beside. The odds are not a number if the form has no refusal.
    """
    if not form.refusal:
        return math.nan, None
    log_probabilities = generator.log_probabilities(prompt.prefix, prompt.suffix)
    if log_probabilities is None:
        return math.nan, None
    refusal = generator.model.tokenize(form.refusal)[0]
    refused, others = float(log_probabilities[refusal]), log_probabilities.copy()
    others[refusal] = -math.inf
    likeliest = int(others.argmax())
    return log_odds_against(refused), likeliest if others[likeliest] < refused else None
