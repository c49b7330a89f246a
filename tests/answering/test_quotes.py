"""Quotations: word for word from a passage, whole lists of steps, and few lines where there is no answer."""

from hypothesis import given
from hypothesis import strategies as st

from local_rag.answer_records import Quote
from local_rag.answering.attribution import Attributor
from local_rag.answering.compose import MOST_LINES, Part, compose, in_lines, is_list, quote_best, quote_support
from local_rag.answering.selection import Source, select_sources, whole_sources
from local_rag.plan_records import Plan
from local_rag.retrieval.question import Question
from tests.fakes import FakeReader, passage

STEPS = "Do this:\n\n1. Wait at the pier.\n2. Wave a red\n   flag.\n\nThen go."


def sources(*texts: str) -> list[Source]:
    return whole_sources("?", [[passage(text, key=key) for key, text in enumerate(texts)]])


def support(sentence: str, given: list[Source], *, lists: bool = False) -> list[Quote]:
    return quote_support([Attributor("What?", given).attribute(sentence)], given, lists=lists)


def test_what_a_sentence_stands_on_is_quoted_with_its_span() -> None:
    (quote,) = support("At seven.", sources("Bread is rye.", "It rains. The boat\nleaves at seven."))
    assert quote == Quote("The boat\nleaves at seven.", 2, 10, 35)


def test_two_sentences_that_stand_on_one_unit_quote_it_once() -> None:
    given = sources("The boat leaves at seven with mail.")
    attributor = Attributor("What?", given)
    assert len(quote_support([attributor.attribute("At seven."), attributor.attribute("With mail.")], given)) == 1


def test_where_a_list_is_asked_for_a_step_is_quoted_with_all_of_its_list() -> None:
    (quote,) = support("Wave a red flag.", sources(STEPS), lists=True)
    assert quote.text == "1. Wait at the pier.\n2. Wave a red\n   flag."
    assert is_list(quote.text)
    assert not is_list("1. Wave a red\n   flag.")
    (quote,) = support(
        "Wave a red flag.", sources(f"- Two piers.\n\n## In fog\n\n{STEPS.replace('1.', '-')}"), lists=True
    )
    assert quote.text == "- Wait at the pier.\n2. Wave a red\n   flag."


def test_only_how_something_is_done_takes_the_whole_list_to_answer() -> None:
    given = sources("1. The rent is 90 kroner.\n2. The tenant gives notice of two months.\n3. Dogs may stay.")

    def text(question: str, sentence: str) -> str:
        part = Part("", [Attributor(question, given).attribute(sentence)], "answered")
        plan = Plan(answer_type="how" if question.startswith("How do") else "number")
        return compose(Question(question, plan), given, [part]).quotes[0].text

    assert text("How long is the notice?", "The notice is two months.") == "2. The tenant gives notice of two months."
    assert text("How do I leave?", "You give notice of two months.") == given[0].text


def test_a_row_is_quoted_as_it_is_written() -> None:
    (quote,) = support("Terna.", sources("| Boat | Leaves |\n|---|---|\n| Terna | 7:00 |"))
    assert quote.text == "| Terna | 7:00 |"


def test_a_row_alone_does_not_tell_which_of_all_is_the_highest() -> None:
    given = sources("| Name | Salary |\n|---|---|\n| Ana | 40 |\n| Bo | 52 |")

    def answers(question: str) -> bool:
        attributed = Attributor(question, given).attribute("The salary of Bo is 52.")
        return not Part("", [attributed], "answered").fault(Question(question))

    assert answers("What is the salary of Bo?")
    assert not answers("Who has the highest salary?")


def test_a_long_list_is_quoted_by_as_many_whole_steps_as_fit_with_the_one_that_answers() -> None:
    steps = [f"{number}. Wait {'very ' * 20}long at pier {number}." for number in range(1, 31)]
    (quote,) = support("Pier 7.", sources("\n".join(steps)), lists=True)
    assert quote.text.splitlines() == steps[: len(quote.text.splitlines())]
    assert 1800 < len(quote.text) <= 2000
    (quote,) = support("Pier 27.", sources("\n".join(steps)), lists=True)
    assert quote.text.splitlines() == steps[26:]
    (quote,) = support("Pier 7.", sources("1. Wait at pier 7" + " or not" * 400 + "."), lists=True)
    assert len(quote.text) == 600


def test_without_an_answer_the_best_units_are_quoted() -> None:
    text = "One is. Two is. The boat sails. Four is. Five is."
    reader = FakeReader(lambda _question, text: float("boat" in text))
    given = select_sources("boat", [[passage(text)]], count_tokens=len, reader=reader)
    best = quote_best([], given)
    assert (len(best), best[0].text) == (MOST_LINES, "The boat sails.")
    doubtful = Attributor("boat", given).attribute("Five.")
    assert [one.text for one in quote_best([doubtful], given)][:2] == ["Five is.", "The boat sails."]


def test_wrapped_lines_are_joined_but_not_steps_items_and_code() -> None:
    assert in_lines("The boat\n  leaves.") == "The boat leaves."
    for text in ("1. Wait.\n2. Go.", "- Wait.\n- Go.", "```\nwait\n  go\n```"):
        assert in_lines(text) == text


_LINES = st.sampled_from(
    ["1. Wait here.\n", "- boat\n", "| a | b |\n", "At seven. ", "boat ", "\n", "```\n", "# Head\n"]
)


@given(st.lists(st.lists(_LINES, max_size=12).map("".join), max_size=3), st.lists(_LINES, max_size=3).map("".join))
def test_a_quotation_is_always_a_part_of_its_passage(texts: list[str], sentence: str) -> None:
    given = sources(*texts)
    attribution = Attributor("boat", given).attribute(sentence)
    for quote in [*quote_support([attribution], given, lists=True), *quote_best([attribution], given)]:
        text = given[quote.citation - 1].passage.text
        assert quote.text == text[quote.start : quote.end] != ""


def test_quoted_code_keeps_its_lines() -> None:
    given = whole_sources("limit?", [[passage("LIMIT = 3\nSTEP = 4", path="tool.py")]])
    answer = compose(Question("limit?"), given, [Part("", (), "quoted")])
    assert answer.text.endswith("- LIMIT = 3\nSTEP = 4 [1]")
