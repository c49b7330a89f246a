import json

import pytest

from local_rag.display import one_line, printable, printable_json


@pytest.mark.parametrize(
    ("hostile", "safe"),
    [
        ("\x1b[31mred\x1b[0m", "\ufffd[31mred\ufffd[0m"),
        ("\x1b]0;title\x07", "\ufffd]0;title\ufffd"),
        ("over\rwritten", "over\ufffdwritten"),
        ("back\x08\x7f", "back\ufffd\ufffd"),
        ("\x9b31m one-byte CSI", "\ufffd31m one-byte CSI"),
        ("invoice\u202efdp.exe", "invoice\ufffdfdp.exe"),
        ("bad\udcffname", "bad\ufffdname"),
        ("\u200e\u200f\u202a\u2066\u2069", "\ufffd" * 5),
    ],
)
def test_controls_are_replaced(hostile: str, safe: str) -> None:
    assert printable(hostile) == safe


def test_ordinary_text_is_unchanged() -> None:
    text = "Line one\n\tLine two: naïve café, שלום, 日本語, 👩‍👩‍👧, non\u00a0breaking, zero\u200bwidth"
    assert printable(text) == text


def test_exactly_the_named_characters_are_replaced() -> None:
    replaced = {point for point in range(0x3000) if printable(chr(point)) == "\ufffd"}
    controls = {*range(0x20), *range(0x7F, 0xA0)} - {0x09, 0x0A}
    assert replaced == controls | {0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)}


def test_a_name_stays_on_its_line() -> None:
    assert one_line("a\nb\tc\u2028d\u2029e\x1bf") == "a b c d e\ufffdf"


def test_json_escapes_controls_and_loses_nothing() -> None:
    value = {"text": "\x9b31m \u202e bad\udcff \x7f é\n", "list": [1, None]}
    written = printable_json(value)
    assert json.loads(written) == value
    assert printable(written) == written
    assert "é" in written
    assert json.loads(printable_json(value, indent=1)) == value
