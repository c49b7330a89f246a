"""The labels of list items and clauses: which lines have one, and which item they belong to."""

import pytest

from local_rag.text.list_labels import Outline, begins_item, label_at


@pytest.mark.parametrize(
    ("line", "kind", "style", "said"),
    [
        ("- milk", "sign", "-0", "-"),
        ("  \u2022 milk", "sign", "\u20222", "\u2022"),
        ("3. Press", "number", "1.", "3"),
        ("(12) Press", "number", "(1)", "12"),
        ("4  Bus. Sold.", "number", "1", "4"),
        ("2.1 The fee", "clause", "1.1", "2.1"),
        ("   2.1.13. The fee", "clause", "1.1.1", "2.1.13"),
        ("**2.1** The fee", "clause", "1.1", "2.1"),
        ("(b) the fee", "clause", "(a)", "b"),
        ("b) the fee", "clause", "a)", "b"),
        ("B) the fee", "clause", "A)", "b"),
        ("(iv) the fee", "clause", "(i)", "iv"),
        ("iv. the fee", "clause", "i.", "iv"),
        ("IV. The fee", "clause", "I.", "iv"),
        ("\u00a7 3a Miete", "clause", "\u00a7", "\u00a7 3a"),
        ("Art. 3: Der Mieter", "clause", "Art", "art. 3"),
        ("Art. 3 Der Mieter", "named", "Art", "art. 3"),
        ("Section 2.01 The fee", "named", "Section", "section 2.01"),
    ],
)
def test_labels_are_told_with_the_style_of_their_list(line: str, kind: str, style: str, said: str) -> None:
    label = label_at(line)
    assert label is not None
    assert (label.kind, label.style, label.said) == (kind, style, said)


@pytest.mark.parametrize(
    "line",
    ["", "The fee", "2023 was wet", "I am here", "a dog", "i.e. this", "-5 degrees", "| 1. | x |", "2.1", "3.5%"],
)
def test_other_lines_have_none(line: str) -> None:
    assert label_at(line) is None


def test_a_wrapped_line_is_no_clause_unless_the_one_above_has_ended_or_is_one() -> None:
    def begins(line: str, before: str, *styles: str) -> bool:
        return begins_item(line, 0, before, styles) is not None

    assert not begins("1.5 million were paid.", "In that year")
    assert begins("1.5 The fee is due.", "")
    assert begins("1.5 The fee is due.", "1.4 The rent is due.")
    assert begins("1.5 the fee and", "1.4 the rent and", "1.1")
    assert begins("1.5 the fee", "(b) the rent", "1.1", "(a)")
    assert begins("(a) the fee", "The tenant pays"), "nobody wraps a line before a bracket"
    assert not begins("Art. 4 gilt.", "Der Mieter zahlt. Auch")
    assert begins("Art. 4 Der Mieter", "Art. 3 Der Vermieter", "Art")


@pytest.mark.parametrize(
    ("lines", "parents"),
    [
        ("1. a|1.1 b|1.2 c|2. d|2.1 e", [None, 0, 0, None, 3]),
        ("2.1 a:|(a) b|(i) c|(ii) d|(b) e|2.2 f", [None, 0, 1, 1, 0, None]),
        ("g) a|h) b|i) c|j) d", [None] * 4),
        ("(iv) a|(v) b|(vi) c", [None] * 3),
        ("1. a|- b|  - c|- d|2. e", [None, 0, 1, 0, None]),
        ("\u00a7 1 a|(1) b|1. c|a) d|(2) e|\u00a7 2 f", [None, 0, 1, 2, 0, None]),
    ],
)
def test_an_item_belongs_to_the_one_whose_list_it_is_in(lines: str, parents: list[int | None]) -> None:
    outline = Outline()
    labels = [label_at(line) for line in lines.split("|")]
    assert [outline.enter(label, at) for at, label in enumerate(labels) if label] == parents
