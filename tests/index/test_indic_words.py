# ruff: noqa: RUF001  letters of other scripts are meant
"""Words of scripts whose vowel signs are combining marks stay whole, and all other texts have the tokens of before."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.text import tokens as tokens_of
from local_rag.text.tokens import keyword_tokens
from tests.support.indexes import keyword_index as keyword_index_of

CHECKOUT = Path(__file__).parents[2]


def tokens_of_before(text: str) -> list[str]:
    """Make tokens of an ASCII text as version 3 did."""

    def words() -> Iterator[str]:
        for match in re.finditer(r"\w+(?:'\w+)?", text):
            word = match.group().removesuffix("'s")
            yield word.lower()
            parts = tokens_of._PART.findall(word)
            if parts != [word] and "'" not in word:
                yield from (part.lower() for part in parts)

    kept = [word for word in words() if word not in tokens_of.STOP_WORDS]
    stems: list[str] = tokens_of._stemmer("english").stemWords(kept)
    return stems


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),
        ("கப்பல் புறப்படும்", ["கப்பல்", "புறப்படும்"]),
        ("വിമാനം", ["വിമാനം"]),
        ("ক\u09cd\u200dষ ক\u09cdষ", ["ক\u09cdষ", "ক\u09cdষ"]),
        ("می\u200cخواهم", ["میخواهم"]),
        ("ภาษาไทย", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
        ("น้ำ", ["น้", "้ํ", "ํา"]),
        ("l'été d'x\u0304's", ["l'ete", "d'x"]),
        ("I \u2764\ufe0f 1\ufe0f\u20e3", ["1"]),
        ("葛\U000e0100飾", ["葛飾"]),
    ],
)
def test_a_word_includes_its_marks(text: str, tokens: list[str]) -> None:
    assert keyword_tokens(text) == tokens


def test_words_that_share_only_vowel_signs_do_not_match() -> None:
    index = keyword_index_of(["छुट्टी के दिन", "नमस्ते दुनिया"])
    assert [row for row, _ in index.search(keyword_tokens("दुनिया"), 5)] == [1]
    assert index.search(keyword_tokens("दुकान"), 5) == []


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        (
            "船は七時に東京都のferry station２号、ＡＢＣ。",
            ["船は", "は七", "七時", "時に", "に東", "東京", "京都", "都の"],
        ),
        ("서울에서GPS를 2024년", ["서울에서", "gps", "를", "2024", "년"]),
        ("הGPS2 السفينةAB", ["ה", "gps2", "gps", "2", "السفينة", "ab"]),
        ("Пароход μm", ["пароход", "μm"]),
    ],
)
def test_words_of_other_scripts_stand_directly_beside_each_other(text: str, tokens: list[str]) -> None:
    assert keyword_tokens(text)[: len(tokens)] == tokens


def test_prose_and_code_have_the_tokens_of_before() -> None:
    files = [*sorted((CHECKOUT / "corpus").rglob("*.md"))[:20], *sorted((CHECKOUT / "local_rag").rglob("*.py"))[:40]]
    texts = [text for text in (path.read_text(encoding="utf-8") for path in files) if text.isascii()]
    assert texts
    assert [keyword_tokens(text) for text in texts] == [tokens_of_before(text) for text in texts]


@given(st.text(st.characters(max_codepoint=127)))
def test_any_ascii_text_has_the_tokens_of_before(text: str) -> None:
    assert keyword_tokens(text) == tokens_of_before(text)


def test_a_superscript_is_no_part_of_a_number() -> None:
    assert keyword_tokens("10⁶ 4,500² m² H₂O") == ["10", "6", "4", "500", "2", "m", "2", "h2o", "h", "2", "o"]
