"""Put a question into English, where the documents have few of its words.

The models of the starter profiles read English best, and keywords find nothing across languages.
"""

import re

from local_rag.llama.generator import Generator, Request

_ANSWERED_FROM = 0.65
_SYSTEM = "You translate questions into English."
# An example is repeated by a small model, and an order to be literal costs right questions.
_REQUEST = "Translate into English. Keep names as they are. Write only the translation.\n\n"
_MOST_TOKENS = 80
_NUMBER = re.compile(r"\d+")


def in_english(question: str, generator: Generator) -> str:
    """Return a question in English; "" where a number of the translation is not in the question."""
    model = generator.model
    before, after = model.chat_frame(_SYSTEM)
    prefix = [*model.tokenize(before, special=True), *model.tokenize(_REQUEST)]
    suffix = [*model.tokenize(" ".join(question.split())), *model.tokenize(after, special=True)]
    with generator.adapted(None):
        [(_, tokens, _)] = generator.complete([Request("translation", prefix, suffix, _MOST_TOKENS)])
    text = " ".join(model.detokenize(tokens).split())
    return "" if set(_NUMBER.findall(text)) - set(_NUMBER.findall(question)) else text


def answered_from(least: float) -> float:
    """Return the least probability with which a translated question is answered: `least` is that of others.

    Of 29 answers to translated questions about corpus/, the four wrong ones, all to bad translations, have less than
    0.64.
    """
    return max(least, _ANSWERED_FROM)
