"""Write a follow-up anew, so that it can be understood alone; it is searched beside the question as it was asked.

Small models make other questions of it: published figures, and what `--expand` does with them, say so. Hence one of 3B
or more is asked for, and the plain question, with the weight of those before it, always counts as much.
"""

from collections.abc import Sequence

from local_rag.answering.expand import MOST_WORDS, questions_in
from local_rag.errors import ModelError
from local_rag.llama.generator import Generator, Request, Vocabulary
from local_rag.records import Turn

_SYSTEM = "You rewrite questions for a search engine."
_REQUEST = (
    "Write the last question anew so that it can be understood without what stands before it: put in the names and "
    "things that it leaves out, and keep its meaning. Reply with that question only."
)
_FEWEST_PARAMETERS = 2.8e9  # what is called a model of 3B has a little more or less
_TURNS, _MOST_CHARACTERS, _MAX_TOKENS = 3, 300, 80


def require_rewriter(model: Vocabulary) -> None:
    """Raise ModelError for a model that is too small to write questions anew."""
    if model.parameters < _FEWEST_PARAMETERS:
        raise ModelError(
            f"--rewrite needs an answer model of 3 billion parameters or more and {model.path.name} has "
            f"{model.parameters / 1e9:.1f} billion; leave it away, or name a larger model with `--answer-model`."
        )


def rewrite(question: str, earlier: Sequence[Turn], generator: Generator) -> str | None:
    """Return a follow-up as a question that stands alone, None where nothing else than the question came of it."""
    model = generator.model
    require_rewriter(model)
    head, tail = model.chat_frame(_SYSTEM)
    said = "".join(f"Question: {_line(turn.question)}\nAnswer: {_line(turn.answer)}\n\n" for turn in earlier[-_TURNS:])
    prefix = [*model.tokenize(head, special=True), *model.tokenize(f"{said}Question: {' '.join(question.split())}\n")]
    request = Request("rewrite", prefix, model.tokenize(f"{_REQUEST}{tail}", special=True), _MAX_TOKENS)
    ((_, tokens, whole),) = generator.complete([request])
    found = questions_in(model.detokenize(tokens))
    if not whole or not found or found[0] == question or len(found[0].split()) > MOST_WORDS:
        return None
    return found[0]


def _line(text: str) -> str:
    """Fold what was said into one line of bounded length."""
    return " ".join(text.split())[:_MOST_CHARACTERS]
