"""Superscripts stay apart from numbers, and numerals are written as Word, LibreOffice and browsers do."""

from pathlib import Path

import pytest

from local_rag.reading.converters import notation
from local_rag.reading.converters.notation import subscript, superscript
from local_rag.reading.read import parse
from tests.support.word_files import item, level, lists, word_file


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("6", "⁶"),
        ("-12", "⁻¹²"),
        ("n+1", "ⁿ⁺¹"),
        (" 2 ", " ² "),
        ("a,b", "^(a,b)"),
        ("1/2", "^(1/2)"),
        ("*", "*"),
        ("[12]", "[12]"),
        ("th", "th"),
        ("TM", "™"),
        ("²", "²"),
        ("", ""),
        ("running text " * 9, "running text " * 9),
    ],
)
def test_superscripts(text: str, written: str) -> None:
    assert superscript(text) == written


@pytest.mark.parametrize(("text", "written"), [("2", "₂"), ("max", "ₘₐₓ"), ("i,j", "_(i,j)"), ("b", "_(b)")])
def test_subscripts(text: str, written: str) -> None:
    assert subscript(text) == written


def test_numerals() -> None:
    assert [notation.roman(one) for one in (4, 9, 14, 40, 1999, 0, 4000)] == [
        "iv", "ix", "xiv", "xl", "mcmxcix", "0", "4000",
    ]  # fmt: skip
    assert [notation.repeated_letters(one) for one in (1, 26, 27, 53, 0)] == ["a", "z", "aa", "aaa", "0"]
    assert [notation.counted_letters(one) for one in (1, 26, 27, 28, 703)] == ["a", "z", "aa", "ab", "aaa"]
    assert [notation.ordinal(one) for one in (1, 2, 3, 4, 11, 12, 13, 21, 112)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th",
    ]  # fmt: skip
    assert [notation.cardinal_text(one) for one in (0, 7, 12, 40, 99, 100)] == [
        "Zero", "Seven", "Twelve", "Forty", "Ninety-nine", "100",
    ]  # fmt: skip
    assert [notation.ordinal_text(one) for one in (1, 5, 20, 21, 100)] == [
        "First", "Fifth", "Twentieth", "Twenty-first", "100th",
    ]  # fmt: skip
    assert [notation.chinese(one) for one in (1, 10, 12, 21, 100)] == ["一", "十", "十二", "二十一", "一〇〇"]
    assert (notation.shifted(3, "①", 20), notation.shifted(21, "①", 20), notation.full_width(12)) == ("③", "21", "１２")  # noqa: RUF001


def labels(body: str, numbering: str) -> list[str]:
    """Return the first word of each paragraph of a Word document."""
    text = parse(Path("a.docx"), word_file(body, numbering=numbering)).text
    return [line.split()[0] for line in text.split("\n") if line.strip()]


@pytest.mark.parametrize(
    ("numeral", "expected"),
    [
        ("decimalZero", ["01", "02"]),
        ("upperLetter", ["A", "B"]),
        ("lowerRoman", ["i", "ii"]),
        ("ordinal", ["1st", "2nd"]),
        ("cardinalText", ["One", "Two"]),
        ("chineseCounting", ["一", "二"]),
        ("russianLower", ["а", "б"]),  # noqa: RUF001
        ("decimalEnclosedCircle", ["①", "②"]),
        ("unheardOf", ["1", "2"]),
    ],
)
def test_formats_of_word(numeral: str, expected: list[str]) -> None:
    assert labels(item("x", 1) + item("y", 1), lists(level(0, "%1", numeral))) == expected


def test_levels_restart_below_a_higher_one_unless_they_say_otherwise() -> None:
    body = item("a", 1) + item("b", 1, 1) + item("c", 1) + item("d", 1, 1)
    assert labels(body, lists(level(0, "%1.") + level(1, "%1.%2"))) == ["1.", "1.1", "2.", "2.1"]
    going_on = level(0, "%1.") + level(1, "%2)", more='<w:lvlRestart w:val="0"/>')
    assert labels(body, lists(going_on)) == ["1.", "1)", "2.", "2)"]


def test_lists_with_one_definition_count_together_and_legal_ones_in_digits() -> None:
    shared = lists(level(0, "%1."), more='<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num>')
    assert labels(item("a", 1) + item("b", 2) + item("c", 1), shared) == ["1.", "2.", "3."]
    legal = level(0, "%1", "upperRoman") + level(1, "%1.%2", more="<w:isLgl/>")
    assert labels(item("a", 1) + item("b", 1, 1), lists(legal)) == ["I", "1.1"]


def test_bullets_and_paragraphs_out_of_a_list_have_no_number() -> None:
    assert labels(item("a", 1) + item("b", 0) + item("c", 7), lists(level(0, "x", "bullet"))) == ["*", "b", "c"]
