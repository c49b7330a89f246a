"""Ask a language model whether a quotation says a statement: its first token tells, yes or no."""

import math
from collections.abc import Sequence

from local_rag.answering.prompt import closing_prompt, opening_prompt, quote
from local_rag.llama.generator import Generator

_REQUEST = "Statement: {statement}\nDoes the quotation say that the statement is true? Reply Yes or No."
_LONGEST = 1500  # characters of a quotation and of a statement that are read


def log_odds_of(generator: Generator, quotation: str, statement: str) -> float | None:
    """Return a model's log odds that a quotation says a statement; None if its engine does not tell them."""
    model = generator.model
    read = model.tokenize(f"Quotation:\n{quote(quotation[:_LONGEST])}\n\n")
    request = _REQUEST.format(statement=quote(" ".join(statement.split())[:_LONGEST]))
    odds = generator.log_probabilities([*opening_prompt(model), *read], closing_prompt(request, model))
    if odds is None:
        return None

    def chance(words: Sequence[str]) -> float:
        return sum(math.exp(odds[model.tokenize(word)[0]]) for word in words)

    yes, no = chance(["Yes", "yes", " Yes", " yes"]), chance(["No", "no", " No", " no"])
    return None if yes == no or not yes or not no else math.log(yes / no)
