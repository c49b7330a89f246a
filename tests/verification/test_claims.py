"""A text is cut into statements, and what each cites and quotes is told apart from what it says."""

from collections.abc import Sequence

import pytest

from local_rag.verification.claims import Claim, read_claims

KNOWN = {"fees.md": ["/d/fees.md"], "annual fees": ["/d/fees.md"], "rota.pdf": ["/d/rota.pdf"]}


def claims(text: str) -> list[Claim]:
    def named(name: str) -> Sequence[str]:
        return KNOWN.get(name.casefold(), ())

    return list(read_claims(text, named))


def test_headings_questions_code_greetings_and_references_are_no_claims() -> None:
    text = """# The fees of 2025

Dear all,

Who pays the harbour fee? The harbour fee is EUR 40.

```
fee = 40 + harbour
```

- Harbour fee: EUR 40

Best regards

[1] fees.md
"""
    assert [one.said for one in claims(text) if one.is_claim] == ["The harbour fee is EUR 40.", "Harbour fee: EUR 40"]


@pytest.mark.parametrize(
    ("cited", "paths", "pages"),
    [
        ("(fees.md)", [("/d/fees.md",)], []),
        ("(see Fees.md, p. 12)", [("/d/fees.md",)], ["12"]),
        ("[Annual fees]", [("/d/fees.md",)], []),
        ("(Annual fees, page 3)", [("/d/fees.md",)], ["3"]),
        ("[1]", [("/d/rota.pdf",)], []),
        ("[^1]", [("/d/rota.pdf",)], []),
        ("[1, 2]", [("/d/rota.pdf",), ("/d/fees.md",)], []),
        ("(p. 7)", [], ["7"]),
        ("(fees.md, page iv)", [("/d/fees.md",)], ["iv"]),
    ],
)
def test_citations_are_read_and_left_out(cited: str, paths: Sequence[tuple[str, ...]], pages: Sequence[str]) -> None:
    text = f"The harbour fee is EUR 40 {cited}.\n\n[1] rota.pdf\n\n[2]: Annual fees\n"
    first = claims(text)[0]
    assert first.said == "The harbour fee is EUR 40."
    assert (list(first.cited), list(first.pages)) == (paths, pages)


def test_brackets_that_cite_nothing_stay() -> None:
    assert claims("The fee (for harbours) is EUR 40 [sic].")[0].said == "The fee (for harbours) is EUR 40 [sic]."


def test_quotations_are_what_stands_in_marks_in_parts_where_something_is_left_out() -> None:
    said = "It says \u201cthe fee is due in May [\u2026] and not in June\u201d, and that a \u201cfine\u201d follows."
    found = claims(said)[0]
    assert found.quotations == ["the fee is due in May", "and not in June"]
    assert "due" not in found.outside


def test_a_row_is_read_with_the_heads_of_its_columns() -> None:
    found = claims("| Port | Fee |\n| --- | --- |\n| Lorcan | EUR 40 |\n")
    assert [one.said for one in found if one.is_claim] == ["Port: Lorcan; Fee: EUR 40"]


def test_spans_lead_back_to_the_text() -> None:
    text = "# Fees\n\nThe fee is EUR 40. The fine is ten\neuro a day.\n"
    assert [text[one.start : one.end] for one in claims(text) if one.is_claim] == [
        "The fee is EUR 40.",
        "The fine is ten\neuro a day.",
    ]
