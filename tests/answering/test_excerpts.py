"""What of a passage a model reads."""

from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from local_rag.answering.excerpts import excerpts, split_lines
from tests.fakes import FakeReranker, passage

TEXT = """# The boat

The boat to Inishvarra leaves
at seven. It takes forty guests. Dogs stay at home.

- Bring a coat.
- Bring bread.

1. Wait at the pier.

| harbour | fee |
| --- | --- |
| Sennen | 40 |
| Port Lorcan | 55 |
| Hestvik | 60 |
"""


about = partial(passage, title="Sailing", headings=("Boats",))


def read(lines: int, *texts: str, wanted: str) -> list[str]:
    def score(_question: str, text: str) -> float:
        assert text.startswith("Sailing > Boats\n")
        return float(wanted in text)

    read = excerpts(
        "?", [about(text, key=key) for key, text in enumerate(texts)], reranker=FakeReranker(score), lines=lines
    )
    assert all(text in texts[one.chunk_id] for one, part in read for text in part.split("\n\u2026\n"))
    return [text for _, text in read]


def test_a_text_is_split_into_sentences_items_and_rows() -> None:
    assert [" ".join(TEXT[slice(*span)].split()) for span in split_lines(TEXT)] == [
        "# The boat",
        "The boat to Inishvarra leaves at seven.",
        "It takes forty guests.",
        "Dogs stay at home.",
        "- Bring a coat.",
        "- Bring bread.",
        "1. Wait at the pier.",
        "| harbour | fee |",
        "| --- | --- |",
        "| Sennen | 40 |",
        "| Port Lorcan | 55 |",
        "| Hestvik | 60 |",
    ]


@given(st.text(alphabet="aB.? \n\t|-#1\u2028\r", max_size=60))
def test_what_a_text_is_split_into_leaves_out_nothing_but_white_space(text: str) -> None:
    spans = split_lines(text)
    places = [0, *(place for span in spans for place in span), len(text)]
    assert places == sorted(places)
    assert all(text[slice(*span)].strip() == text[slice(*span)] != "" for span in spans)
    between = zip(places[::2], places[1::2], strict=True)
    assert not any(text[begun:end].strip() for begun, end in between)


def test_the_likeliest_lines_are_read_with_their_neighbours_as_they_stand() -> None:
    assert read(1, TEXT, wanted="forty") == [
        "The boat to Inishvarra leaves\nat seven. It takes forty guests. Dogs stay at home."
    ]


def test_a_row_brings_the_head_of_its_table() -> None:
    (text,) = read(1, TEXT, wanted="Hestvik")
    assert text == "| harbour | fee |\n\u2026\n| Port Lorcan | 55 |\n| Hestvik | 60 |"
    (text,) = read(1, "| a | b |\n| 1 | 2 |\n\n| c | d |\n| 3 | 4 |\n| 5 | 6 |", wanted="5")
    assert text == "| c | d |\n| 3 | 4 |\n| 5 | 6 |", "of its own table, not of the one before"


def test_a_passage_without_a_likely_line_is_not_read() -> None:
    assert read(1, "Nothing.", "The fee is 40.", wanted="fee") == ["The fee is 40."]


def test_of_a_question_for_several_things_each_passage_is_read() -> None:
    passages = [about("Fee one. Fee two.", path="1.md"), about("Nothing.", key=2, path="2.md")]

    def places(lines: int, *, of_each: bool) -> list[str]:
        reranker = FakeReranker(lambda _, text: float("Fee" in text))
        return [one.path for one, _ in excerpts("?", passages, reranker=reranker, lines=lines, of_each=of_each)]

    assert places(2, of_each=False) == ["1.md"]
    assert places(2, of_each=True) == ["1.md", "2.md"]
    assert places(1, of_each=True) == ["1.md"], "no more lines than are to be read"


def test_what_stands_for_a_whole_document_stays_whole() -> None:
    whole = about(TEXT, kind="document")
    assert excerpts("?", [whole], reranker=FakeReranker(lambda *_: 0.0), lines=1) == [(whole, TEXT)]
