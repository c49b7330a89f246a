"""Numbers that count the lines of a text are no text; those of lists and tables are."""

from local_rag.reading.line_numbers import blank_line_numbers

DEED = [
    "The parties agree that the vessel Skua",
    "is delivered at Brekk on 4 May 2024 and",
    "that the price of 82,000 crowns is paid",
    "within thirty days. The seller bears the",
    "risk until delivery. The buyer inspects",
    "the vessel within two weeks and tells",
    "the seller of any fault in writing, and",
    "pays the dues of the harbour of Brekk.",
]


def test_each_page_is_counted_by_itself() -> None:
    page = "".join(
        f"{number:>3}  {line}\n{number + 1:>3}\n" for number, line in zip(range(1, 17, 2), DEED, strict=True)
    )
    read = blank_line_numbers(f"Page 1\n{page}\n57\n\f{page}")
    assert "82,000 crowns is paid within thirty days." in " ".join(read.split())
    assert [word for word in read.split() if word.isdecimal()] == ["1", "4", "2024", "57", "4", "2024"]
    assert len(read) == len(f"Page 1\n{page}\n57\n\f{page}")


def test_numbers_of_lists_stay() -> None:
    for text in (
        "".join(f"{number} {item}\n" for number, item in enumerate(["Rope", "Buoy", "Lamp", "Oar", "Bell"] * 2, 1)),
        "".join(f"{number} {line}\n" for number, line in enumerate(DEED[:4], 1)),
        "".join(f"{3 * number} {line}\n" for number, line in enumerate(DEED, 1)),
    ):
        assert blank_line_numbers(text) == text
