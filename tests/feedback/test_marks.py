"""Marks of answers: they move the gate, become questions of evaluations, order passages, and can be taken back."""

import json
from pathlib import Path

import pytest

from local_rag.asking import Filters, Person, Turn
from local_rag.errors import LibraryError, MissingError
from local_rag.evaluation.dataset import load_dataset
from local_rag.library import Library
from local_rag.view import View
from tests.conftest import Run
from tests.feedback.berths import harbour, opened, parts, question
from tests.whole.test_erasing import held

ANNA = Person("a1", "Anna", "reader", Filters(within=("berth-*",)))


@pytest.fixture
def lib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return harbour(tmp_path)


def mark_all(view: View, count: int = 20, start: int = 0) -> list[str]:
    """Ask for berths, and mark as wrong the answers about odd ones; return what became of the gate."""
    told = []
    for number in range(start, start + count):
        assert view.ask(question(number)).answered
        told.append(view.feedback.mark(question(number), "wrong" if number % 2 else "right").gate)
    return [one for one in told if one]


def test_twenty_marks_move_the_gate_and_say_so(lib: Path) -> None:
    with opened(lib) as library:
        assert library.ask(question(21)).answered
        (said,) = mark_all(library)
        assert said.startswith("After 20 marks, answers are given at a probability of 0.7")
        assert "10 fewer wrong of these" in said
        effect = library.feedback.marks()
        assert (effect.right, effect.wrong, effect.counted, effect.until_refit) == (10, 10, 20, 20)
        assert (effect.shipped.wrong, effect.now.wrong, effect.now.right, effect.now.quoted) == (10, 0, 10, 10)
        assert library.ask(question(22)).answered
        assert library.ask(question(21)).outcome == "quoted"
        assert library.status().answered_from == effect.answer_from
    with opened(lib) as library:  # of another process
        assert library.ask(question(23)).outcome == "quoted"
        assert library.feedback.gate_notice() == said
        assert library.feedback.gate_notice() == ""
        assert library.feedback.ship_gate().startswith("Answers are given as shipped")
        assert library.ask(question(23)).answered


def test_marks_that_show_no_gain_change_nothing(lib: Path) -> None:
    with opened(lib) as library:
        for number in range(20):
            library.ask(question(number))
            said = library.feedback.mark(question(number), "right").gate
        assert said is not None
        assert said.startswith("After 20 marks, answers are still given at")
        assert library.ask(question(21)).answered


def test_a_mark_that_is_taken_back_counts_no_more(lib: Path) -> None:
    with opened(lib) as library:
        mark_all(library)
        said = library.feedback.mark(question(4), None)
        assert (said.mark, said.gate) == (None, "Too few marks are left, so answers are given as shipped.")
        assert library.ask(question(21)).answered
        assert library.feedback.marks().right == 9
        assert question(4) not in (lib / "questions/questions.jsonl").read_text()
        with pytest.raises(MissingError, match="No mark is kept"):
            library.feedback.mark(question(4), None)
        assert library.feedback.mark(None, None).question == question(19)
        with pytest.raises(MissingError, match="Nobody has asked"):
            library.feedback.mark("Where is the moon?", "right")


def test_marks_become_questions_of_evaluations(lib: Path) -> None:
    with opened(lib) as library:
        library.ask(question(2))
        library.feedback.mark(None, "wrong")
        assert library.feedback.wrong_answers() == [question(2)]
        library.feedback.mark(None, "right")
        library.feedback.mark(question(2).upper(), "right")
        assert library.feedback.wrong_answers() == []
    (line,) = (lib / "questions/questions.jsonl").read_text().splitlines()
    assert json.loads(line)["golden"] == [str(lib.parent / "documents/berth-2.md:1-3")]
    (asked,) = load_dataset(lib / "questions").questions
    assert asked.text == question(2)


def test_a_mark_lifts_and_lowers_passages_of_the_same_question_only(lib: Path) -> None:
    with opened(lib) as library:
        before = [one.path for one in library.search(question(3), top=5)]
        others = [one.path for one in library.search(question(5), top=5)]
        answer = library.ask(question(3))
        cited = answer.citations[0].passage.path
        library.feedback.mark(None, "wrong")
        after = [one.path for one in library.search(question(3).upper(), top=5)]
        assert after == [*(one for one in before if one != cited), cited]
        library.feedback.mark(question(3), "right")
        assert library.search(question(3), top=5)[0].path == cited
        assert [one.path for one in library.search(question(5), top=5)] == others
        follow_up = library.ask(question(3), earlier=[Turn(question(5), "45")])
        assert follow_up.outcome != "refused"


def test_a_mark_counts_for_a_question_that_is_searched_in_other_words(lib: Path) -> None:
    asked = f"{question(3)[:-1]} since last month?"  # is searched with the name of that month
    with opened(lib) as library:
        first = library.ask(asked)
        cited = first.citations[0].passage.path
        assert first.passages[-1].path != cited
        library.feedback.mark(asked, "wrong")
        assert library.ask(asked).passages[-1].path == cited
        library.ask(asked, earlier=[Turn(question(5), "45")])  # a follow-up is another question
        assert library.feedback.marks().wrong == 1
        assert library.feedback.gaps()[0].questions[0].times == 2


def test_marks_and_questions_do_not_cross_limits(lib: Path) -> None:
    with opened(lib) as library:
        anna, bob = library.seen_by(ANNA.limits, ANNA), library.seen_by(Filters(), Person("b1", "Bob", "reader"))
        before = library.search(question(3), top=5)
        mark_all(anna)
        assert library.search(question(3), top=5) == before
        assert anna.search(question(3), top=5) != before
        assert anna.ask(question(21)).outcome == "quoted"
        assert library.ask(question(21)).answered
        assert (library.feedback.marks().right, anna.feedback.marks().right) == (0, 10)
        with pytest.raises(MissingError):
            bob.feedback.mark(question(3), "right")
        bob.ask("Who bakes quixotic marzipan?")
        bob.feedback.mark(None, "wrong")
        assert anna.feedback.gaps()
        assert all("marzipan" not in one.questions[0].question for one in anna.feedback.gaps())
        assert "marzipan" in library.feedback.gaps()[0].questions[0].question
        assert library.seen_by(Filters(), Person("c1", "Cleo", "reader")).feedback.gaps() == []


@pytest.mark.parametrize("how", ["erase", "forget", "person", "conversation"])
def test_what_is_erased_or_forgotten_takes_its_marks_along(lib: Path, how: str) -> None:
    with opened(lib) as library:
        bob = library.seen_by(Filters(), Person("b1", "Bob", "reader"))
        view: View = bob if how == "person" else library
        mark_all(view, 21)
        conversation = library.chat()
        if how == "conversation":
            conversation.ask(question(3))
        assert library.ask(question(21)).outcome == "quoted"
        if how == "erase":
            library.remove([lib.parent / "documents/berth-3.md"], erase=True)
        elif how == "conversation":
            conversation.forget()
        else:
            library.history.forget("b1" if how == "person" else "")
        assert held(lib, question(3)) == []
        if how == "erase":
            assert held(lib, "berth-3.") == []
        assert library.ask(question(21)).answered == (how in {"forget", "person"})
        left = library.feedback.marks()
        assert left.right + left.wrong == {"erase": 20, "conversation": 20}.get(how, 0)
        assert question(3) not in "".join(one.read_text() for one in (lib / "questions").glob("*.jsonl"))


def test_with_the_setting_history_off_nothing_is_kept(lib: Path) -> None:
    with opened(lib, history=False) as library:
        library.ask("Who bakes quixotic marzipan?")
        with pytest.raises(LibraryError, match="history is off"):
            library.feedback.mark(None, "right")
        assert library.feedback.gaps() == []
    assert held(lib, "marzipan") == []


def test_the_command_line_marks_shows_and_takes_back(lib: Path, run: Run) -> None:
    def said(*arguments: str, code: int = 0) -> str:
        result = run(*arguments, "--library", str(lib), parts=parts())
        assert result.exit_code == code, result.output
        return result.stdout + result.stderr

    assert "Nothing was asked yet" in said("mark", "wrong", code=1)
    assert "Say right or wrong" in said("mark", "maybe", code=2)
    assert "Say right or wrong" in said("mark", code=2)
    said("ask", question(3))
    shown = said("mark", "wrong")
    assert "Marked as wrong: How many ropes are kept at berth 3?" in shown
    assert "after 19 more marks" in shown
    assert json.loads(run("mark", "right", question(3), "--json", "--library", str(lib), parts=parts()).stdout) == {
        "question": question(3),
        "mark": "right",
        "until_refit": 19,
        "gate": None,
    }
    assert "No longer marked" in said("mark", "--undo")
    assert "No answer has a mark" in said("mark", "--undo", code=1)
    with opened(lib) as library:
        mark_all(library)
    assert "After 20 marks" in said("search", question(3))
    assert "After 20 marks" not in said("search", question(3))
    assert "Marks: 10 right, 10 wrong. After 20 marks" in said("status")
    report = json.loads(run("eval", "marks", "--json", "--library", str(lib), parts=parts()).stdout)
    assert report["shipped"] == {"right": 10, "wrong": 10, "quoted": 0}
    assert report["now"] == {"right": 10, "wrong": 0, "quoted": 10}
    table = said("eval", "marks")
    assert "held out" in table
    assert "shipped" in table
    assert "as shipped" in said("eval", "marks", "--shipped")


def test_marks_are_told_and_made_without_the_answer_model(lib: Path) -> None:
    with opened(lib) as library:
        library.ask(question(2))
    with Library(lib, parts=parts(), profile="tiny", answer_model="no-such-model") as library:
        assert library.feedback.mark(question(2), "right").until_refit == 20
        assert (library.feedback.marks().right, library.feedback.marks().counted) == (1, 0)
        assert library.feedback.gate_notice() == ""
