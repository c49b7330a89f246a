"""Ask a language model whether a quotation says a statement: its first token tells, yes or no."""

import math

from local_rag.answering.prompt import closing_prompt, opening_prompt, quote
from local_rag.llama.generator import Generator, log_odds_of_yes

_REQUEST = "Statement: {statement}\nDoes the quotation say that the statement is true? Reply Yes or No."
_LONGEST = 1500  # characters of a quotation and of a statement that are read


def log_odds_of(generator: Generator, quotation: str, statement: str) -> float | None:
    """Return a model's log odds that a quotation says a statement; None if its engine does not tell them."""
    model = generator.model
    read = model.tokenize(f"Quotation:\n{quote(quotation[:_LONGEST])}\n\n")
    request = _REQUEST.format(statement=quote(" ".join(statement.split())[:_LONGEST]))
    told = generator.log_probabilities([*opening_prompt(model), *read], closing_prompt(request, model))
    odds = math.nan if told is None else log_odds_of_yes(told, model)
    return None if math.isnan(odds) else odds
