# ruff: noqa: RUF001  letters of other scripts are meant
"""Words of scripts whose vowel signs are combining marks stay whole, and all other texts have the tokens of before."""

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_rag.index import keyword_index
from local_rag.index.keyword_index import keyword_tokens
from tests.support.indexes import keyword_index as keyword_index_of

CHECKOUT = Path(__file__).parents[2]


def tokens_of_before(text: str) -> list[str]:
    """Make tokens as version 3 did, to whose words no mark belonged, but of Latin letters without accents."""

    def words() -> Iterator[str]:
        for match in re.finditer(r"\w+(?:['\u2019]\w+)?", unicodedata.normalize("NFKC", text)):
            word = match.group().replace("\u2019", "'").removesuffix("'s")
            runs = keyword_index._UNSPACED.findall(word)
            if runs:
                for run in runs:
                    yield from (run[index : index + 2] for index in range(max(1, len(run) - 1)))
                word = keyword_index._UNSPACED.sub(" ", word).strip()
                if not word:
                    continue
            yield word.lower()
            parts = keyword_index._PART.findall(word)
            if parts != [word] and word.isascii() and "'" not in word:
                yield from (part.lower() for part in parts)

    kept = [word for word in words() if word not in keyword_index.STOP_WORDS]
    stems: list[str] = keyword_index._stemmer("english").stemWords(list(map(keyword_index.folded, kept)))
    return stems


def has_marks(text: str) -> bool:
    return any(
        unicodedata.category(character) in {"Mn", "Mc"} or character in "\u200c\u200d"
        for character in unicodedata.normalize("NFKC", text)
    )


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
        ("葛\U000e0100飾", ["葛", "飾"]),
    ],
)
def test_a_word_includes_its_marks(text: str, tokens: list[str]) -> None:
    assert keyword_tokens(text) == tokens


def test_words_that_share_only_vowel_signs_do_not_match() -> None:
    index = keyword_index_of(["छुट्टी के दिन", "नमस्ते दुनिया"])
    assert [row for row, _ in index.search(keyword_tokens("दुनिया"), 5)] == [1]
    assert index.search(keyword_tokens("दुकान"), 5) == []


@pytest.mark.parametrize(
    "text",
    [
        "The boats' policies don't say: getUserName, HTTPServer2, snake_case, ST-4471, naïve café.",
        "Die Übergröße der Straßenbahn, Grüße; 3,5 % für 12 Uhr \u2013 geht\u2019s?",
        "船は七時に出ます。東京都のferry station２号、ＡＢＣ。",
        "서울에서 출발합니다. Пароход уходит в семь. Το πλοίο φεύγει. السفينة تغادر. הספינה יוצאת.",
    ],
)
def test_a_text_without_marks_has_the_tokens_of_before(text: str) -> None:
    assert not has_marks(text)
    assert keyword_tokens(text) == tokens_of_before(text)


def test_prose_and_code_have_the_tokens_of_before() -> None:
    files = [*sorted((CHECKOUT / "corpus").rglob("*.md"))[:20], *sorted((CHECKOUT / "local_rag").rglob("*.py"))[:40]]
    for text in (path.read_text(encoding="utf-8") for path in files):
        assert not has_marks(text)
        assert keyword_tokens(text) == tokens_of_before(text)


@given(st.text(st.characters(exclude_categories=["Mn", "Mc"])).filter(lambda text: not has_marks(text)))
def test_any_text_without_marks_has_the_tokens_of_before(text: str) -> None:
    assert keyword_tokens(text) == tokens_of_before(text)
