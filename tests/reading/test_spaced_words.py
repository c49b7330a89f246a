"""Words whose letters are set apart are read as words, and lists of letters are not."""

from pathlib import Path

import pytest

from local_rag.reading.read import parse


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("This is I m p o r t a n t for all.", "This is Important for all."),
        ("N O T I C E to all", "NOTICE to all"),
        ("The d e p o s i t  r u l e s hold", "The deposit  rules hold"),
        ("\u0412 \u041d \u0418 \u041c \u0410 \u041d \u0418 \u0415", "\u0412\u041d\u0418\u041c\u0410\u041d\u0418\u0415"),
    ],
)
def test_letters_of_a_word_are_joined(line: str, shown: str) -> None:
    assert parse(Path("a.txt"), f"First.\n{line}\nLast.\n".encode()).text == f"First.\n{shown}\nLast.\n"


@pytest.mark.parametrize(
    "line",
    [
        "Choose a b c d or none",
        "Grades A B A C for Ann",
        "Present Y N Y N Y",
        "Axes x y z w",
        "The b o x",
        "Keys a B c E",
        "A  N  C  H  O  R",
        "Points 1 2 3 4",
        "Questions 1 to 5: A C B D A",
        "Months: J F M A M J J A S O N D",
        "Vitamins A D E K are soluble",
        "Days M T O T F L S",
        "Sides x a y b",
    ],
)
def test_letters_of_no_word_stay_apart(line: str) -> None:
    assert parse(Path("a.txt"), f"First.\n{line}\n".encode()).text == f"First.\n{line}\n"
