"""Mistyped words: what is searched instead, and what is left as it is."""

import random
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.answer_records import Correction
from local_rag.index.generations import Generation, Generations
from local_rag.index.protocol import PassageStore
from local_rag.retrieval.spelling import Speller, Spelling, edit_costs, most_mistakes
from tests.fakes import contents_of

TEXTS = (
    "The mileage allowance is 0.45 EUR. Receipts are kept for ten years.",
    "Days in the home office are allowed after a request. What the office does not allow is listed.",
    "Die Kernarbeitszeit steht in der Dienstanweisung, und die Schließfächer sind im Keller.",
    "Kessler and Ireland are mentioned, the allowance of Kessler too.",
    "A shipping note, the home of an office chair.",
)


class Passages:
    """The passages of the texts, by their number."""

    def chunks_by_id(self, ids: Sequence[int]) -> Mapping[int, Any]:
        return {one: SimpleNamespace(chunk=SimpleNamespace(text=TEXTS[one])) for one in ids}


def index_of(folder: Path, texts: Sequence[str]) -> Generation:
    numbers = list(range(len(texts)))
    vectors = np.eye(len(texts), dtype=np.float32)
    Generations(folder).publish(contents_of(numbers, numbers, vectors, texts), {})
    live = Generations(folder).live()
    assert live is not None
    live.open()
    return live


@pytest.fixture(scope="module")
def spelling(tmp_path_factory: pytest.TempPathFactory) -> Spelling:
    index = index_of(tmp_path_factory.mktemp("library"), TEXTS)
    return Spelling(index, cast(PassageStore, Passages()), lambda word: word in {"iceland", "many"})


@pytest.mark.parametrize(
    ("typed", "searched"),
    [
        ("waht is the milage alowance", "what is the mileage allowance"),
        ("how many days homeofice are alowed", "how many days home office are allowed"),
        ("Are homeoffice days allowed?", "Are home office days allowed?"),
        ("Reciepts, for how long?", "Receipts, for how long?"),
        ("Who is Kesler?", "Who is Kessler?"),
        ("What is in the Dienstanwiesung?", "What is in the Dienstanweisung?"),
        ("Was steht in der Dienstanweisnug zum Keller?", "Was steht in der Dienstanweisung zum Keller?"),
        ("milage-allowance", "mileage-allowance"),
    ],
)
def test_a_mistyped_word_is_searched_as_it_was_meant(spelling: Spelling, typed: str, searched: str) -> None:
    corrected, corrections = spelling.correct(typed)
    assert corrected == searched
    assert corrections
    assert spelling.correct(corrected) == (corrected, ())


@pytest.mark.parametrize(
    "question",
    [
        "What is the mileage allowance?",
        "Mileages, allowances and receipts",
        "What does Iceland allow?",  # known to be a word
        "A shilling?",  # another word, not a mistake
        "milag3 milage_rate milage@example.com MILAGE x.milage C:\\milage",
        'the word "milage"',
        "Wie lautet die Regel zur Milage, wenn Kinder krank werden?",  # another language than the documents
        " ".join(f"milage{letter}x" for letter in "abcdefghij"),
        "milage " * 300,
        "東京都の天気 नमस्ते",
        "",
    ],
)
def test_everything_else_is_searched_as_it_is(spelling: Spelling, question: str) -> None:
    assert spelling.correct(question) == (question, ())


def test_what_may_not_be_found_leaves_no_trace(spelling: Spelling) -> None:
    assert spelling.correct("the milage of Kesler", allowed=[3]) == (
        "the milage of Kessler",
        (Correction("Kesler", "Kessler"),),
    )
    assert spelling.correct("homeoffice", allowed=[4]) == ("homeoffice", ()), "there the words are not side by side"
    assert spelling.correct("homeoffice", allowed=[1])[0] == "home office"
    assert spelling.correct("milage", allowed=[]) == ("milage", ())


def test_words_of_removed_documents_are_not_searched(tmp_path: Path) -> None:
    index_of(tmp_path, TEXTS)
    index = index_of(tmp_path, TEXTS[1:])
    spelling = Spelling(index, cast(PassageStore, Passages()), lambda _word: False)
    assert spelling.correct("milage") == ("milage", ())


def test_a_correction_is_one_sentence() -> None:
    assert str(Correction("milage", "mileage")) == 'Searched for "mileage" instead of "milage".'


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("alowance", "allowance"),
        ("recieve", "receive"),
        ("seperate", "separate"),
        ("wrok", "work"),
        ("accomodation", "accommodation"),
        ("schliesfach", "schließfach"),
        ("fotokopie", "fotocopie"),
    ],
)
def test_likely_mistakes_are_few(typed: str, meant: str) -> None:
    near = Speller([meant, "entirely", "other", "words"]).near(typed, most_mistakes(typed))
    assert [word for _, word in near] == [meant]


@pytest.mark.parametrize(
    ("typed", "other"),
    [
        ("iceland", "ireland"),
        ("austria", "australia"),
        ("iran", "iraq"),
        ("shilling", "shipping"),
        ("dunk", "duck"),
        ("sciatic", "somatic"),
        ("cost", "lost"),
        ("slovenia", "slovakia"),
        ("manchester", "winchester"),
        ("fotocopy", "photocopy"),
    ],
)
def test_other_words_are_far(typed: str, other: str) -> None:
    assert Speller([other]).near(typed, most_mistakes(typed)) == []


@given(st.text("abcl", max_size=8), st.lists(st.text("abcl", max_size=8), max_size=6))
def test_costs_are_those_of_the_definition(word: str, others: list[str]) -> None:
    if word:
        found = edit_costs(word, others).tolist()
        for cost, other in zip(found, others, strict=True):
            wanted = cost_of(word, other)
            assert (cost == wanted) if wanted <= most_mistakes("x" * 10) else cost > most_mistakes("x" * 10)


def cost_of(typed: str, meant: str) -> int:
    """Return the cost by the definition, one letter at a time."""

    def missed(word: str, place: int) -> int:
        if place == 0:
            return 8
        return 3 if word[place] == word[place - 1] else 4 if word[place] in "aeiouy" else 5

    @cache
    def cost(i: int, j: int) -> int:
        if i == j == 0:
            return 0
        found = [50]
        if i:
            found.append(cost(i - 1, j) + missed(typed, i - 1))
        if j:
            found.append(cost(i, j - 1) + missed(meant, j - 1))
        if i and j and typed[i - 1] == meant[j - 1]:
            found.append(cost(i - 1, j - 1))
        if i > 1 and j > 1 and typed[i - 2 : i] == meant[j - 2 : j][::-1]:
            found.append(cost(i - 2, j - 2) + 3)
        return min(found)

    return cost(len(typed), len(meant))


def test_a_large_vocabulary_is_searched_as_a_small_one() -> None:
    chance = random.Random(4)
    words = {"".join(chance.choices("abcdefghijklmnoprstuvwy", k=chance.randrange(3, 14))) for _ in range(30_000)}
    speller, near = Speller(words), 0
    for word in sorted(words)[::3000]:
        typed = word[:2] + word[3:]
        most = most_mistakes(typed)
        costs = dict(zip(sorted(words), edit_costs(typed, sorted(words)).tolist(), strict=True))
        wanted = sorted((cost, one) for one, cost in costs.items() if cost <= most)
        assert speller.near(typed, most) == wanted
        near += len(wanted)
    assert near > 5


def test_a_vocabulary_of_nothing_has_no_word() -> None:
    assert Speller([]).near("word", 5) == []
