"""Generate an answer from the sources; the parts of a compound question are answered separately."""

import codecs
from collections.abc import Iterator, Sequence

from local_rag.answering.prompt import MAX_ANSWER_TOKENS, answer_requests, closing_prompt
from local_rag.index.keyword_index import keyword_tokens
from local_rag.llama.generator import Generator, Request
from local_rag.verification.citations import find_citations
from local_rag.verification.sentences import split_sentences


def write_answer(question: str, prefix: Sequence[int], generator: Generator) -> Iterator[str]:
    """Yield the text of an answer piece by piece; `prefix` is the prompt up to and including the question.

    The answer to the first part of the question is passed on as it is generated. The other parts are generated in the
    same batch and follow without sentences that repeat an earlier one.
    """
    model = generator.model
    requests = [
        Request(str(number), prefix, closing_prompt(request, model), MAX_ANSWER_TOKENS)
        for number, request in enumerate(answer_requests(question))
    ]
    # A token may end within a character.
    decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in requests]
    texts = [""] * len(requests)
    for event in generator.stream(requests):
        number = int(event.key)
        piece = b"" if event.token is None else model.piece(event.token)
        text = decoders[number].decode(piece, final=event.token is None)
        texts[number] += text
        if text and not number:
            yield text
    said = [_words(sentence) for sentence in split_sentences(texts[0])]
    for sentence in (sentence for text in texts[1:] for sentence in split_sentences(text)):
        words = _words(sentence)
        if not any(words <= others for others in said):
            yield f" {sentence.strip()}" if said else sentence.strip()
            said.append(words)


def _words(sentence: str) -> set[str]:
    return set(keyword_tokens("".join(text for text, cited in find_citations(iter([sentence])) if not cited)))
