"""Characters of answers arrive whole, however a model's tokens cut them into bytes."""

import itertools
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.answering.answerer import Answerer
from local_rag.llama.generator import Request, Token
from local_rag.llama.open import open_vocabulary
from local_rag.models.registry import resolve
from local_rag.records import Answer
from tests.fakes import FakeGenerator, FakeVocabulary, passage

TEXTS = [
    "नमस्ते दुनिया, छुट्टी के दिन",
    "கப்பல் ஏழு மணிக்குப் புறப்படும்",
    "នាវាចេញដំណើរនៅម៉ោងប្រាំពីរ",
    "Bereit 😀👩‍👩‍👧🇮🇳 los",
    "Пароход уходит в семь",
    "船は七時に出ます",
]


class PiecesVocabulary(FakeVocabulary):
    """A vocabulary whose tokens are the pieces of one answer, by number."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        super().__init__()
        self.pieces = tuple(pieces)

    def piece(self, token: int) -> bytes:
        return self.pieces[token]


class PiecesGenerator(FakeGenerator):
    """Answer with these bytes, a token each."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        super().__init__()
        self.model = self._vocabulary = PiecesVocabulary(pieces)

    def stream(self, requests: Iterable[Request]) -> Iterator[Token]:
        for request in requests:
            for token in range(len(self._vocabulary.pieces)):
                yield Token(request.key, token)
            yield Token(request.key, None, whole=True)


def answered(pieces: Iterable[bytes]) -> Answer:
    """Answer from an empty source, which no answer is traced to; what is streamed must be the answer."""
    streamed: list[str] = []
    source = passage("")
    answer = Answerer(PiecesGenerator(pieces), 0.0).answer("When?", [source], on_text=streamed.append)
    assert "".join(streamed) == answer.text
    return answer


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    ends = sorted({min(place, len(data)) for place in places} | {0, len(data)})
    return [data[start:end] for start, end in itertools.pairwise(ends)]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("size", range(1, 12))
def test_no_script_is_garbled(text: str, size: int) -> None:
    data = text.encode()
    assert answered(cut(data, range(0, len(data), size))).text == text


@given(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="[【\uff3b")),
    st.lists(st.integers(0, 200), max_size=60),
)
def test_any_text_cut_at_any_bytes_arrives_whole(text: str, places: list[int]) -> None:
    assert answered(cut(text.encode(), places)).text == text.strip()


@given(st.lists(st.binary(max_size=6), max_size=20))
def test_bytes_that_are_no_text_are_replaced_as_they_would_be_at_once(pieces: list[bytes]) -> None:
    pieces = [piece.replace(b"[", b"") for piece in pieces]
    whole = b"".join(pieces).decode("utf-8", "replace")
    assert answered(pieces).text == whole.strip()


def test_a_real_vocabulary_garbles_nothing() -> None:
    with open_vocabulary(resolve("smollm2-135m-instruct", "answer").path) as vocabulary:
        for text in TEXTS:
            assert answered(map(vocabulary.piece, vocabulary.tokenize(text))).text.strip() == text
