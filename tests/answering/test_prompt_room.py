"""Whatever is asked of the model fits what it can read, with room for the answer."""

from collections.abc import Generator, Iterable, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from local_rag.answering.answerer import Answerer
from local_rag.answering.prompt import MAX_ANSWER_TOKENS
from local_rag.answering.question_parts import read_question
from local_rag.answering.selection import whole_sources
from local_rag.errors import QuestionError
from local_rag.llama.generator import Request, Token
from tests.fakes import FakeGenerator, passage


class NarrowGenerator(FakeGenerator):
    """Refuse, as the engine does, what does not fit."""

    requests = 0

    def stream(self, requests: Iterable[Request]) -> Generator[Token]:
        for request in requests:
            self.requests += 1
            assert len(request.prefix) + len(request.suffix) + request.max_tokens <= self.context_tokens
            yield from super().stream([request])

    def log_probabilities(self, prefix: Sequence[int], suffix: Sequence[int]) -> np.ndarray:
        assert len(prefix) + len(suffix) <= self.context_tokens
        return super().log_probabilities(prefix, suffix)


@given(
    st.integers(700, 3000),
    st.lists(st.integers(0, 400), min_size=1, max_size=30),
    st.integers(1, 900),
    st.sampled_from(["", "Who is it, and when does it leave"]),
)
def test_every_request_fits(context_tokens: int, sizes: list[int], asked: int, words: str) -> None:
    passages = [passage("x" * size, key=n) for n, size in enumerate(sizes)]
    generator = NarrowGenerator(lambda _prompt: "x" * MAX_ANSWER_TOKENS, context_tokens=context_tokens)
    try:
        answer = Answerer(lambda: generator).answer(
            read_question(words + "?" * asked), whole_sources(words, [passages])
        )
    except QuestionError:
        return
    assert generator.requests == (2 if words else 1) * bool(answer.read)
