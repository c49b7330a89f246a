"""The door for Python: the recipes of docs/python.md, and what they promise."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import local_rag
from local_rag import Answer, AskOptions, Citation, Filters, Found, Library, LibraryError, QuestionError, StoppedError
from local_rag.answer_records import Written
from local_rag.asking import as_filters
from local_rag.indexing.added_texts import texts_folder
from local_rag.settings import SettingFields, Settings
from tests.fakes import QUICK, passage

ROOT = Path(__file__).parents[2]
LEAVE = "---\ntags: [hr]\n---\n# Leave\n\nParental leave is 14 weeks long. Leave is requested from the office.\n"
TRAVEL = "# Travel\n\nTrain tickets are booked by the office. Nobody flies.\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    policies = tmp_path / "documents" / "policies"
    policies.mkdir(parents=True)
    (policies / "leave.md").write_text(LEAVE)
    (policies / "travel.md").write_text(TRAVEL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def library(here: Path) -> Library:
    made = Library(parts=QUICK)
    made.index(["documents"])
    return made


def test_the_recipes_of_the_docs_run(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LOCAL_RAG_PROFILE", "tiny")
    recipes = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python.md").read_text(), re.DOTALL)
    assert len(recipes) == 1 + 6
    names: dict[str, object] = {}
    for recipe in recipes:
        exec(recipe, names)
    shown = capsys.readouterr().out
    assert str(here / "documents/policies/travel.md:") in shown
    assert "1 ['" in shown
    assert "Minutes of May ('minutes',)" in shown
    assert " True\n" in shown
    assert "contradicted Parental leave is 15 weeks long." in shown
    assert "The library holds nothing at or below" in shown


def test_an_unknown_keyword_is_refused_with_the_nearest_known_one(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^There is no setting 'profle'; did you mean 'profile'\?$"):
        Library(tmp_path, profle="tiny")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"^There is no filter 'tag'; did you mean 'tags'\?$"):
        as_filters({"tag": ["hr"]})  # type: ignore[arg-type]
    with pytest.raises(QuestionError, match="since is 'May'"):
        as_filters({"since": "May"})
    assert as_filters({"tags": "hr", "within": ["a/**"]}) == Filters(within=("a/**",), tags=("hr",))


def test_editors_know_every_setting() -> None:
    assert set(SettingFields.__annotations__) == set(Settings.model_fields)


def test_the_public_names_are_imported_when_they_are_used() -> None:
    code = "import local_rag, sys; print(len([name for name in sys.modules if name.startswith('local_rag')]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 1
    for name in local_rag.__all__:
        assert getattr(local_rag, name).__name__ == name
    assert set(local_rag.__all__) <= set(dir(local_rag))


def test_search_and_find_take_filters(library: Library) -> None:
    assert [one.title for one in library.search("office", filters={"tags": "hr"})] == ["Leave"]
    assert [one.title for one in library.search("office", filters=Filters(within=("policies/travel*",)))] == ["Travel"]
    assert library.find("How many documents mention office?", filters={"tags": ["hr"]}).count == 1
    assert [one.title for one in library.documents.listed(filters={"tags": "hr"})] == ["Leave"]


def test_an_added_text_stays_until_it_is_removed(library: Library, here: Path) -> None:
    assert library.add("Workshops take place in hall 7.", name="Minutes", tags=["notes"]).added == 1
    found = library.search("workshops", top=1)[0]
    assert (found.title, found.provenance.tags, "hall 7" in found.text) == ("Minutes", ("notes",), True)
    assert library.add("Workshops take place in hall 7.", name="Minutes", tags=["notes"]).unchanged == 1
    assert library.add("Workshops take place in hall 8.", name="Minutes").changed == 1
    report = library.index()
    assert (report.unchanged, report.added, report.removed) == (3, 0, 0)
    assert [one.title for one in library.documents.listed()] == ["Leave", "Travel", "Minutes"]
    library.remove(names=["Minutes"])
    assert [one.title for one in library.documents.listed()] == ["Leave", "Travel"]
    assert library.index().unchanged == 2
    assert list(texts_folder(library.folder).iterdir()) == []
    assert library.add("Workshops take place in hall 9.", name="Minutes").added == 1


def test_an_erased_text_is_in_no_file(library: Library, here: Path) -> None:
    library.add("The password of the vault is xylophone-4711.", name="Vault")
    library.remove(names=["Vault"], erase=True)
    kept = [path for path in here.rglob("*") if path.is_file() and b"xylophone" in path.read_bytes()]
    assert kept == []


@pytest.mark.parametrize("name", ["", " a", "a/b", ".hidden", "a\nb", "a" * 201, "\ud800"])
def test_a_name_that_no_file_can_have_is_refused(name: str, library: Library) -> None:
    with pytest.raises(LibraryError, match="cannot be named"):
        library.add("text", name=name)


def test_a_text_that_is_not_read_is_refused(library: Library) -> None:
    with pytest.raises(LibraryError, match="is empty"):
        library.add(" \n", name="nothing")
    library.add("Workshops take place in hall 7.", name="Minutes")
    with pytest.raises(LibraryError, match=r"The text 'Minutes' was not added: .*"):
        library.add("{% comment %} {% endcomment %}", name="Minutes")
    library.index()
    assert library.search("workshops", top=1)[0].title == "Minutes"
    assert len(library.documents.listed()) == 3


def test_a_stream_yields_the_pieces_and_then_the_answer() -> None:
    def ask(on_text: object, stop: object) -> Answer:
        assert callable(on_text)
        on_text(Written("A "))
        on_text(Written("B", replaces=True))
        return Answer("q", "B", "answered")

    stream = local_rag.AnswerStream(ask)
    assert [str(piece) for piece in stream] == ["A ", "B"]
    assert stream.answer.text == "B"
    assert local_rag.AnswerStream(ask).answer.text == "B"


def test_who_leaves_a_stream_stops_the_answer() -> None:
    ended = []

    def ask(on_text: object, stop: object) -> Answer:
        assert callable(on_text)
        assert callable(stop)
        on_text(Written("A"))
        while not stop():
            pass
        ended.append(True)
        raise StoppedError("The answer was stopped.")

    for _piece in local_rag.AnswerStream(ask):
        break
    assert ended == [True]


def test_an_error_of_a_stream_reaches_who_iterates() -> None:
    def ask(on_text: object, stop: object) -> Answer:
        raise LibraryError("There is no library.")

    with pytest.raises(LibraryError, match="no library"):
        list(local_rag.AnswerStream(ask))


def test_records_are_shown_in_one_line_and_as_harmless_html() -> None:
    cited = passage("<script>alert(1)</script>", path="a<b>.md")
    answer = Answer("q", "x < y " * 30, "answered", citations=(Citation(1, cited),))
    assert repr(cited) == "<Passage a<b>.md:1 '<script>alert(1)</script>' score 0.5>"
    assert len(repr(answer)) < 120
    assert repr(Found("q", "count", "mention leave", 2)) == "<Found 2 that mention leave>"
    html = answer._repr_html_()
    assert "x &lt; y" in html
    assert re.findall(r"<(?!/?(?:div|ol|li|blockquote)\b)", html) == []


def test_options_may_be_keywords(library: Library) -> None:
    asked, limits = "How many documents mention office?", Filters(tags=("hr",))
    answer = library.ask(asked, filters={"tags": "hr"})
    assert answer.text == library.ask(asked, AskOptions(filters=limits)).text != library.ask(asked).text
