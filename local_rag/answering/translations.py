"""Say the few sentences of the program itself in the language of the question."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from local_rag.text.languages import ENGLISH, language_of


@cache
def translations() -> Mapping[str, Mapping[str, str]]:
    """Return the translations of each sentence by language, read when a question is not in English."""
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def translated(sentence: str, question: str, /, **values: str) -> str:
    """Return a sentence of the program in the language of a question, in English if it is not known in that one.

    The `values` take the places of their names in braces.
    """
    language = language_of(question)
    words = sentence if language == ENGLISH else translations().get(sentence, {}).get(language, sentence)
    return words.format(**values) if values else words


def is_answered_in_english(question: str) -> bool:
    """Return whether the sentences of the program are in English for a question."""
    language = language_of(question)
    return language == ENGLISH or all(language not in known for known in translations().values())
