"""Let a model write an answer, and read it sentence by sentence while it grows."""

import re
from collections.abc import Iterator
from contextlib import closing

from local_rag.answering.prompt import MAX_ANSWER_TOKENS, MOST_SENTENCES
from local_rag.answering.reading import Prompt
from local_rag.llama.generator import Generator, Request
from local_rag.text.sentences import split_sentences

_FOOTNOTE = re.compile(r"(?:(?<!\s)\s++)?\[\s*+\d++(?:\s*+[,;-]\s*+\d++)*+\s*+\]")
_OWN_WORDS = re.compile(
    r"\A(?:according to|based on) (?:the )?(?:\w+ )?(?:sources?|documents?|information|text)(?: \d+| \w+ed)?,? (\S)",
    re.IGNORECASE,
)
_WRAPPED = re.compile(r"(?<=[^\W_]|[,;])\n(?=[a-z])")  # a line that goes on, as sources are wrapped
_CUT = "\ufffd"  # what a part of a character becomes


def drafts(generator: Generator, prompt: Prompt, first: int | None) -> Iterator[tuple[str, bool]]:
    """Yield the answer after each token, and whether it has ended; it begins with the token `first` if that is given.

    It ends with MOST_SENTENCES at the latest.
    """
    model = generator.model
    tokens = [] if first is None else [first]
    request = Request("answer", prompt.prefix, [*prompt.suffix, *tokens], MAX_ANSWER_TOKENS)
    text = model.detokenize(tokens)
    with closing(generator.stream([request])) as events:
        for event in events:
            if event.token is None:
                break
            tokens.append(event.token)
            text = _WRAPPED.sub(" ", model.detokenize(tokens))
            if len(split_sentences(text)) > MOST_SENTENCES:
                break
            yield text.rstrip(_CUT), False
    yield text, True


def sentences_of(text: str, *, ended: bool) -> tuple[list[str], str]:
    """Return the sentences that are complete, at most MOST_SENTENCES, and the beginning of the next one.

    What looks like a citation is a footnote that the model copied, and is left out.
    """
    parts = [_own(part) for part in split_sentences(_FOOTNOTE.sub("", text)) if part.strip()]
    complete = parts if ended else parts[:-1]
    rest = "" if ended or len(complete) >= MOST_SENTENCES else "".join(parts[-1:])
    return complete[:MOST_SENTENCES], rest


def _own(sentence: str) -> str:
    """Return a sentence without a beginning that only says that the sources say it."""
    return _OWN_WORDS.sub(lambda found: found[1].upper(), sentence.strip())
