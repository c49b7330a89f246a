"""What a model is shown of the passages found: the units that fit best, with their neighbours, in few tokens."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from local_rag.answering.selection import (
    MOST_ROWS,
    Source,
    drop_copies,
    select_sources,
    shown_of,
    take_turns,
    whole_sources,
)
from local_rag.answering.units import headings_of
from local_rag.passage_records import Passage
from tests.fakes import FakeReader, FakeReading, passage

FERRY = "The ferry leaves at seven and carries mail, milk and whoever has business on the islands."


def numbered(*texts: str, title: str = "") -> list[Passage]:
    return [passage(text, key=key, path=f"{key}.md", title=title) for key, text in enumerate(texts, start=1)]


def count(text: str) -> int:
    return len(text.split())


def select(question: str, *texts: str, prefer: str = "", by: float = 1.0, tokens: int = 600) -> list[Source]:
    """Select, by a cross-encoder if it prefers texts with some words."""
    reader = FakeReader(lambda _question, text: by * any(word in text for word in prefer.split())) if prefer else None
    return select_sources(question, [numbered(*texts)], count_tokens=count, reader=reader, tokens=tokens)


def test_the_best_units_are_shown_with_their_neighbours() -> None:
    text = "One is. Two is. Three is. The boat sails. Five is. Six is. Seven is. Rye is bread. Nine is."
    (source,) = select("Where does the boat sail?", text, prefer="boat", tokens=8)
    assert source.text == "Three is. The boat sails. Five is."
    (source,) = select("Where does the boat sail with bread?", text, prefer="boat Rye", tokens=16)
    assert source.text == "Three is. The boat sails. Five is.\n\u2026\nSeven is. Rye is bread. Nine is."
    assert [one.text for one in source.units if one.rank < 2] == ["The boat sails.", "Rye is bread."]


def test_rows_are_shown_without_their_neighbours_but_with_the_heading_above() -> None:
    rows = "\n".join(f"| Boat{number} | {number}:00 |" for number in range(MOST_ROWS))
    table = f"## Times\n| Boat | Leaves |\n|---|---|\n| Alke | 9:00 |\n{rows}"
    (source,) = select("When does Alke leave?", table, prefer="Alke", tokens=5)
    assert source.text == "Times:\nBoat: Alke; Leaves: 9:00"


def test_a_table_of_few_rows_is_shown_whole() -> None:
    table = "| Boat | Leaves |\n|---|---|\n| Terna | 7:00 |\n| Alke | 9:00 |\n| Ryle | 11:00 |"
    (source,) = select("When does Alke leave?", table, prefer="Alke", tokens=5)
    assert source.text == "Boat: Terna; Leaves: 7:00\nBoat: Alke; Leaves: 9:00\nBoat: Ryle; Leaves: 11:00"


def test_what_introduces_a_list_brings_it_and_an_item_brings_its_introduction() -> None:
    steps = "\n".join(f"{number}. Do thing{number}." for number in range(1, 8))
    text = f"Boats are here.\n\nIf the boat is lost:\n\n{steps}\n\nRye is bread."
    (source,) = select("What if the boat is lost?", text, prefer="lost", tokens=40)
    assert "1. Do thing1." in source.text
    assert "7. Do thing7." in source.text
    (source,) = select("Who does thing5?", text, prefer="thing5", tokens=16)
    assert "If the boat is lost:" in source.text
    assert "5. Do thing5." in source.text


def test_something_of_the_first_passage_is_always_shown() -> None:
    first = passage("Nothing of note here.", key=1)
    others = [passage(f"The boat sails at {number}.", key=number, path=f"{number}.md") for number in range(2, 9)]
    reader = FakeReader(lambda _question, text: float("boat" in text))
    given = [[first, *others]]
    sources = select_sources("When does the boat sail?", given, count_tokens=count, reader=reader, tokens=12)
    assert 1 in [one.passage.chunk_id for one in sources]


def test_the_source_with_the_best_unit_is_the_first() -> None:
    found = select("When does the boat sail?", "Bread is rye.", "The boat sails at seven.", prefer="boat")
    assert [one.passage.chunk_id for one in found] == [2, 1]
    shown = shown_of(found)
    assert [one.citation for one in shown] == [1, 2]
    assert shown[0].text.endswith("The boat sails at seven.")


def test_words_of_the_question_count_without_a_cross_encoder_and_rare_ones_more() -> None:
    texts = ["The bread is rye.", "The boat is old.", "The mail is late.", "The boat is wet."]
    assert [one.text for one in select("Is the boat with the mail here?", *texts, tokens=4)] == [texts[2]]
    assert [one.text for one in select("Anything?", *texts, tokens=4)] == [texts[0]], "that which was found first"


# Lists and tables that are shown whole may take more.
_TEXT = st.lists(st.sampled_from(["One boat. ", "Two ", "mail. ", "\n\n", "## Head\n"]))


@given(st.lists(_TEXT.map("".join), max_size=9), st.integers(1, 40))
def test_what_is_shown_keeps_within_the_tokens(texts: list[str], tokens: int) -> None:
    lists = [numbered(*texts, title="The title")]
    sources = select_sources("Boat?", lists, count_tokens=count, reader=None, tokens=tokens)
    shown = [unit for source in sources for unit in source.units]
    used = sum(count(one.text) for one in shown) + sum(count(headings_of(one.passage)) for one in sources)
    # The best one is shown with its neighbours however long they are, and a third of the tokens is left for others.
    assert used <= tokens or len(shown) <= 3 + tokens // 3
    for source in sources:
        assert source.units
        assert list(source.units) == sorted(source.units, key=lambda one: one.start)
        assert all(unit.text in source.text for unit in source.units)


def test_whole_passages_are_shown_with_all_their_units() -> None:
    text = "# Boat\n\nIt sails. It lands."
    (source,) = whole_sources("Where?", [[passage(text)]])
    assert source.text == text
    assert [unit.text for unit in source.units] == ["It sails.", "It lands."]


def test_lists_take_turns_and_each_passage_is_taken_once() -> None:
    one, two, three, four = numbered("one", "two", "three", "four")
    assert take_turns([[one, two, three], [four, one]]) == [one, four, two, three]


def test_copies_are_read_once_and_the_first_names_the_places_of_the_others() -> None:
    found = drop_copies(numbered(FERRY, f"{FERRY}\n", "Bread is baked at noon."))
    assert [one.chunk_id for one in found] == [1, 3]
    assert found[0].also_in == ("2.md:1",)


def test_what_differs_in_one_word_of_few_is_no_copy() -> None:
    assert len(drop_copies(numbered("At seven in Ireland.", "At seven in Norway."))) == 2


class CutReading(FakeReading):
    """A reading that ends after so many characters."""

    def __init__(self, text: str, end: int) -> None:
        super().__init__(lambda part: float("boat" in part), text[:end])
        self._end = end

    def sentence(self, start: int, end: int) -> float | None:
        return super().sentence(start, end) if start < self._end else None


class CutReader:
    """A reader of so many characters that notes what it was given."""

    fused_weight, pairs_per_second = 0.0, 1e9

    def __init__(self, characters: int) -> None:
        self._characters, self.given = characters, list[str]()

    def score(self, _question: str, passages: Sequence[str]) -> list[CutReading]:
        self.given += passages
        return [CutReading(text, self._characters) for text in passages]


def test_what_a_reader_cuts_off_is_read_from_there_on() -> None:
    reader = CutReader(30)
    (source,) = whole_sources(
        "Where?", [numbered("Bread is rye. Milk is late. Mail is. The boat sails.")], reader=reader
    )
    assert reader.given == ["Bread is rye. Milk is late. Mail is. The boat sails.", "The boat sails."]
    assert [unit.logit for unit in source.units] == [0.0, 0.0, 0.0, 1.0]
    assert source.answers == 1.0


@given(st.lists(st.text("ab. \n|-", max_size=40), max_size=4), st.integers(0, 12), st.text("ab", max_size=20))
def test_each_unit_gets_a_logit_however_little_is_read(texts: list[str], characters: int, title: str) -> None:
    found = [passage(text, key=key, title=title) for key, text in enumerate(texts)]
    for source in whole_sources("Where?", [found], reader=CutReader(characters)):
        assert all(unit.logit is not None for unit in source.units)


def test_of_a_question_about_a_day_only_the_rows_of_that_day_are_shown() -> None:
    roster = """| From | To | Caretaker |
| --- | --- | --- |
| 2026-02-23 | 2026-03-01 | Tomas Wilke |
| 2026-03-02 | 2026-03-08 | Dele Adeyemi |
| 2026-03-09 | 2026-03-15 | Anna Kovacs |
"""

    def shown(question: str) -> str:
        [source] = select_sources(
            question, [[passage(roster)]], count_tokens=lambda text: len(text.split()), reader=None
        )
        return source.text

    assert shown("Who is the caretaker on 9 March 2026?") == "From: 2026-03-09; To: 2026-03-15; Caretaker: Anna Kovacs"
    assert "Dele" in shown("Who is the caretaker on 4 March 2026?")
    for question in (
        "Who is the caretaker on 9 May 2026?",
        "Who is the caretaker in March 2026?",
        "Who is the caretaker?",
    ):
        assert {"Tomas", "Dele", "Anna"} <= set(shown(question).split())


def test_a_party_that_is_named_in_another_sentence_of_the_passage_names_the_source() -> None:
    contract = "The contract is with Tidewell Cleaning.\n\nIt begins in May.\n\nThe annual fee is GBP 1,265."
    for question, names in (("What is the annual fee of Tidewell?", ("Tidewell",)), ("What is the annual fee?", ())):
        [source] = select(question, contract, prefer="fee", tokens=12)
        assert source.text == "It begins in May.\nThe annual fee is GBP 1,265."
        assert source.passage.names == names
    [whole] = select("What is the annual fee of Tidewell?", contract)
    assert whole.passage.names == ()


def test_a_clause_comes_with_what_it_belongs_to_and_without_those_beside_it() -> None:
    text = (
        "2. **Fees**\n   2.1 The fee is ten.\n   2.2 The agent is paid:\n   (a) for the boat\n   (b) for the mail\n"
        "   2.3 Rye is bread.\n3. **Other**"
    )
    (source,) = select("What of the mail?", text, prefer="mail", tokens=12)
    assert source.text == "2. **Fees**\n\u2026\n2.2 The agent is paid:\n\u2026\n(b) for the mail"
    (source,) = select("What is the agent paid?", text, prefer="agent", tokens=24)
    assert "(a) for the boat\n(b) for the mail" in source.text


def test_a_row_comes_with_the_caption_of_its_table_and_the_caption_with_the_rows() -> None:
    rows = "\n".join(f"| Boat{number} | {number} |" for number in range(MOST_ROWS))
    table = f"Rates of Alke, in pounds\n\n| Boat | Fee |\n|---|---|\n{rows}\n| Terna | 9 |"
    (source,) = select("Terna?", table, prefer="Terna", tokens=12)
    assert source.text == "Rates of Alke, in pounds\n\u2026\nBoat: Terna; Fee: 9"
    small = "Rates of Alke\n\n| Boat | Fee |\n|---|---|\n| Ryle | 3 |\n| Terna | 9 |"
    (source,) = select("Rates?", small, prefer="Rates", tokens=20)
    assert source.text == "Rates of Alke\nBoat: Ryle; Fee: 3\nBoat: Terna; Fee: 9"


def test_a_clause_that_another_one_names_is_shown_where_room_is_left() -> None:
    filler = "\n".join(f"5.{number} Bread{number} is baked by the baker of the village." for number in range(1, 9))
    named = {
        "clause 4.2 applies": "4.2",
        "see clause 7.": "7.",
        "\u00a7 9 gilt": "\u00a7 9",
        "Annex 3 says": "Annex 3:",
    }
    for pointer, label in named.items():
        text = f"2.1 The boat is paid, {pointer}\n{filler}\n{label} Half of it in May.\n8.1 Rye is bread."
        (source,) = select("What of the boat?", text, prefer="boat", tokens=40)
        assert f"{label} Half of it in May." in source.text, label
        assert "Half" not in select("What of the boat?", text, prefer="boat", tokens=8)[0].text
    text = f"2.1 The boat is paid in 7 weeks.\n{filler}\n7. Half of it in May."
    assert "Half" not in select("What of the boat?", text, prefer="boat", tokens=14)[0].text, (
        "that is a number of weeks"
    )
    other = select(
        "What of the boat?", "2.1 The boat is paid as in 4.2 of it.", "4.2 Half of it.", prefer="boat", tokens=9
    )
    assert "Half" not in other[0].text, "another document has other clauses"


def copies(*texts: tuple[str, str]) -> list[Passage]:
    return [passage(text, key=key, path=path) for key, (path, text) in enumerate(texts, start=1)]


def test_of_copies_the_one_with_the_plainest_name_is_cited() -> None:
    for other in (
        "docs/Copy of Rules (2).docx",
        "docs/old/Rules.docx",
        "docs/Rules - Kopie.docx",
        "docs/Rules (1).docx",
    ):
        for order in (1, -1):
            [found] = drop_copies(copies(*[("docs/Rules.docx", FERRY), (other, FERRY)][::order]))
            assert found.path == "docs/Rules.docx"
            assert found.also_in == (f"{other}:1",)
    three = drop_copies(copies(("b (2).md", FERRY), ("b (1).md", FERRY), ("c.md", "Bread."), ("b.md", FERRY)))
    assert [one.path for one in three] == ["b.md", "c.md"], "in the place of the first"
    assert set(three[0].also_in) == {"b (1).md:1", "b (2).md:1"}


def test_what_differs_in_the_one_number_or_name_that_matters_is_no_copy() -> None:
    rest = " ".join(f"it holds{letter} for boats{letter} in the harbour{letter}" for letter in "abcdefgh")
    clause = f"{FERRY} The hirer pays GBP 165 for each further hour, which Ida Lund measures, and {rest}."
    for one, other in (("165", "210"), ("165", "1650"), ("Lund", "Berg"), ("GBP", "EUR")):
        found = drop_copies(copies(("a.md", clause), ("b.md", clause.replace(one, other))))
        assert [place.also_in for place in found] == [(), ()]
    [kept] = drop_copies(copies(("a.md", clause), ("b.md", clause.replace("measures", "counts"))))
    assert kept.also_in == ("b.md:1",)


@given(st.lists(_TEXT.map("".join), min_size=1, max_size=9), st.integers(1, 20), st.integers(21, 80))
def test_more_is_shown_before_what_was_read_and_never_again(texts: list[str], first: int, more: int) -> None:
    lists = [numbered(*texts, title="The title")]
    read = select_sources("Boat?", lists, count_tokens=count, reader=None, tokens=first)
    sources = select_sources("Boat?", lists, count_tokens=count, reader=None, tokens=more, read=read)
    assert sources[len(sources) - len(read) :] == read, "so the longer prompt begins with the shorter one"
    shown = [(one.passage.chunk_id, unit.start) for one in sources for unit in one.units]
    assert len(shown) == len({*shown})
    once = select_sources("Boat?", lists, count_tokens=count, reader=None, tokens=more)
    assert {(one.passage.chunk_id, unit.start) for one in once for unit in one.units} <= {*shown}
