"""Which lines of a plain text are headings."""

import pytest

from local_rag.text.heading_lines import heading_lines

SENTENCE = "The contractor cleans all three floors of the building on six evenings a week."


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        (f"1 Services\n{SENTENCE}\n2. Fee\n{SENTENCE}", ["1 Services", "2. Fee"]),
        (f"{SENTENCE}\nNotice and end\n{SENTENCE}", ["Notice and end"]),
        (f"PAYMENT\n\n{SENTENCE}", ["PAYMENT"]),
        (f"page 2\n4.1 Insurance\n{SENTENCE}", ["4.1 Insurance"]),
        (f"{SENTENCE}\n\n3 Prices\n| Article | Price of each article in pounds |", ["3 Prices"]),
        (f"Signed by\nIda Lund\n{SENTENCE}", []),
        (f"Dear Ida,\n{SENTENCE}", []),
        (f"From: Ida Lund\n{SENTENCE}", []),
        (f"Ida Lund, 4 May\n{SENTENCE}", []),
        (f"{SENTENCE}\nTotal 450 EUR\n{SENTENCE}", []),
        (f"We call again.\n{SENTENCE}", []),
        ("One short line\nAnother short line here.", []),
        (f"{SENTENCE[:-1]} and in the hall of\nTollbridge House\n{SENTENCE}", []),
        (f"{SENTENCE}\nNothing below", []),
        ("", []),
    ],
)
def test_a_heading_is_a_short_line_over_a_sentence(text: str, headings: list[str]) -> None:
    assert [text[start:].split("\n", maxsplit=1)[0] for start in sorted(heading_lines(text))] == headings
