"""What stands below an answer in every interface: whether to trust it, and where it is written."""

from dataclasses import replace

import pytest

from local_rag.answer_records import Answer, Citation, Quote, SentenceSupport
from local_rag.answering.remarks import place_of, remarks, sources_as_lines, sources_of
from local_rag.answering.translations import translated
from local_rag.document_records import Provenance
from local_rag.passage_records import Passage
from tests.fakes import passage


@pytest.mark.parametrize(
    ("probability", "threshold", "said"),
    [
        (0.9, 0.6, []),
        (0.7, 0.6, ["Probably right; read the quotation."]),
        (0.55, 0.6, ["Doubtful; read the quotation before you rely on this."]),
        (0.4, None, ["Doubtful; read the quotation before you rely on this."]),
        (None, None, []),
    ],
)
def test_how_sure_an_answer_is_takes_words_and_no_number(
    probability: float | None, threshold: float | None, said: list[str]
) -> None:
    assert remarks(Answer("?", "!", "answered", probability=probability, threshold=threshold), str) == said
    assert remarks(Answer("?", "!", "quoted", probability=probability, threshold=threshold), str) == []


def test_an_answer_that_the_model_itself_finds_wrong_is_doubtful() -> None:
    assert remarks(Answer("?", "!", "answered", log_odds=-1.0), str) == [
        "Doubtful; read the quotation before you rely on this."
    ]


def test_what_its_sources_lack_and_what_it_may_be_mistaken_for_is_told_in_one_line_each() -> None:
    support = (
        SentenceSupport("It costs 26 {euro}.", False, ("26 euro",), (1,)),
        SentenceSupport("It is\x1b[1m nice.", False, (), ()),
        SentenceSupport("It is.", True, (), (1,)),
    )
    answer = Answer(
        "?", "!", "answered", (Citation(1, passage(title="A")),), support=support, look_alikes=(passage(title="B"),)
    )
    assert remarks(answer, lambda place: f"<{place}>", ["/d/a.md"]) == [
        "Not in what it cites: 26 euro, in “It costs 26 {euro}.”",
        "Not in any source: “It is\ufffd[1m nice.”",
        "This answer is about A. Similar passages are in B (<a.md:1>).",
        "Changed or gone since it was indexed: </d/a.md>.",
    ]


def test_an_answer_from_an_older_version_names_the_newest() -> None:
    cited = (Citation(1, replace(passage(), newest="/d/rules 2025.md")),)
    said = "This stands in an older version; the newest is /d/rules 2025.md."
    assert remarks(Answer("?", "!", "answered", cited), str) == [said]
    assert remarks(Answer("?", "!", "quoted", cited), str) == []


def test_remarks_speak_the_language_of_the_question() -> None:
    asked = "Wie lange ist die Kündigungsfrist und was steht in dem Vertrag?"
    answer = Answer(asked, "Sechs Monate. [1]", "answered", (Citation(1, passage()),), probability=0.7, threshold=0.6)
    assert remarks(answer, str, ["a.md"]) == [
        "Wahrscheinlich richtig; lesen Sie das Zitat.",
        "Seit der Indexierung geändert oder nicht mehr da: a.md.",
    ]
    assert next(sources_as_lines(answer)) == "Quellen:"
    assert translated("{words}?", asked, words="a") == "a?"


MARKDOWN = "Before.\n\n## 2. Term ##\n\n```\n# no heading\n```\n\nSix months\nnotice."
SHEET = "## Prices\n\nRow 6: Article: BW-101; Price: 12\nRow 7: Article: BW-102; Price: 15"


@pytest.mark.parametrize(
    ("one", "start", "place"),
    [
        (passage(MARKDOWN, path="/d/a.docx", line=None, headings=("A", "1. Old")), 0, '/d/a.docx, "1. Old"'),
        (passage(MARKDOWN, path="/d/a.md", line=7), MARKDOWN.index("Six"), '/d/a.md:15, "2. Term"'),
        (passage(SHEET, path="/d/p.xlsx", line=None), SHEET.index("Row 7"), '/d/p.xlsx, "Prices", row 7'),
        (passage(SHEET, path="/d/p.xlsx", line=None), SHEET.index("15"), '/d/p.xlsx, "Prices", row 7'),
        (passage("x\ny", path="/d/p.pdf", page=3, line=None, title="T", headings=("T",)), 2, "/d/p.pdf page 3"),
        (passage("# a\nb", path="/d/a.py", line=1, headings=("class A",)), 4, '/d/a.py:2, "class A"'),
        (passage("x", path="/d/a.md", also_in=("/d/b.md:1",), provenance=Provenance(date="2024-05-01")), 0,
         "/d/a.md:1 (2024-05-01); also in /d/b.md:1"),
    ],
)  # fmt: skip
def test_a_place_is_where_the_quotation_begins(one: Passage, start: int, place: str) -> None:
    assert place_of(one, str, start) == place


def quoting(text: str, quoted: str, said: str = "So. [1]", table_header: str = "") -> list[str]:
    start = text.index(quoted)
    one = passage(text, path="/d/a.md", table_header=table_header)
    quote = Quote(quoted, 1, start, start + len(quoted))
    return list(sources_as_lines(Answer("?", said, "answered", (Citation(1, one),), (quote,)), str))[2:]


def test_lines_of_lists_and_code_are_kept_and_long_ones_shortened() -> None:
    assert quoting("Do:\n1. Stop\n   - Wait\n2. Go", "1. Stop\n   - Wait\n2. Go") == [
        '      "1. Stop',
        "          - Wait",
        '       2. Go"',
    ]
    assert quoting("    if a:\n\tb\x1b", "    if a:\n\tb\x1b") == ['      "if a:', '       b\ufffd"']
    many = "\n".join(f"- item {number}" for number in range(500))
    lines = quoting(many, many)
    assert (len(lines), lines[9], lines[10]) == (11, "       - item 9", '       ..."')
    (line,) = quoting("word " * 2000, "word " * 2000)
    assert len(line) < 320


def test_a_row_of_a_table_stands_below_its_header() -> None:
    table = "| Day | Rate |\n| --- | --- |\n| Mon | 12 |\n| Tue | 15 |"
    assert quoting(table, "| Tue | 15 |") == ['      "| Day | Rate |', '       | Tue | 15 |"']
    assert quoting("| Tue | 15 |", "| Tue | 15 |", table_header="| Day | Rate |\nRow 3") == [
        '      "| Day | Rate |',
        '       | Tue | 15 |"',
    ]


def test_what_the_text_quotes_is_not_quoted_again() -> None:
    assert quoting("1. Stop\n2. Go", "1. Stop\n2. Go", said="Stop. [1]\n\n1. Stop\n2. Go [1]") == []
    assert quoting("Six.\nOr more.", "Six.", said="\u201cSix.\u201d [1]") == []
    quoted = Answer("?", "Not sure:\n- Six. [1]", "quoted", (Citation(1, passage("Six.")),), (Quote("Six.", 1, 0, 4),))
    assert [one.quotes for one in sources_of(quoted)] == [()]


def test_a_refusal_shows_the_words_that_came_closest() -> None:
    best = passage("Menu. Zebras rest. " + "More. " * 99, path="/d/zoo.md", best=(6, 18))
    begin = passage("Zebras\n\neat grass, " * 40, path="/d/eat.md")
    empty = passage("", path="/d/empty.md")
    answer = Answer("?", "No.", "refused", closest=(best, begin, empty))
    title, first, rest, second, eat, third = sources_as_lines(answer, str)
    assert (title, first, rest) == ("Closest:", "  /d/zoo.md:1", '      "Zebras rest."')
    assert (second, eat[:31]) == ("  /d/eat.md:1", '      "Zebras eat grass, Zebras')
    assert len(eat) < 220
    assert eat.endswith(' ..."')
    assert third == "  /d/empty.md:1"
