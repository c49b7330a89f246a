"""What stands on a terminal while an answer is written and when it is: nothing that was struck, and nothing twice."""

import io
import random
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from rich.cells import get_character_cell_size

from local_rag.answer_records import Answer, Citation, Quote, Written
from local_rag.asking import DEFAULT_OPTIONS
from local_rag.cli.answer_output import AnswerText, print_below
from tests.fakes import passage

WIDTH, HEIGHT = 20, 6


class Terminal(io.StringIO):
    """A terminal with a cursor: it wraps lines, and obeys the few sequences that are written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.rows, self.row, self.used = [""], 0, 0

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        super().write(text)  # which takes no bytes
        rest = text
        while rest:
            if rest.startswith("\x1b["):
                count, command = rest[2:].split("A" if "A" in rest[2:6] else "J")[0], rest[2:].lstrip("0123456789")[0]
                if command == "A":
                    self.row = max(self.row - int(count), len(self.rows) - HEIGHT, 0)
                else:
                    assert (command, self.used) == ("J", 0)
                    self.rows[self.row :] = [""]
                rest = rest[2 + len(count) + 1 :]
            else:
                self._put(rest[0])
                rest = rest[1:]
        return len(text)

    def _put(self, character: str) -> None:
        assert character in "\n\r" or character >= " ", repr(character)
        if character == "\r":
            self.used = 0
            return
        size = 0 if character == "\n" else get_character_cell_size(character)
        if character == "\n" or self.used + size > WIDTH:
            self.row, self.used = self.row + 1, 0
            if self.row == len(self.rows):
                self.rows.append("")
        if character != "\n":
            assert sum(map(get_character_cell_size, self.rows[self.row])) == self.used, (
                "it writes over what stands there"
            )
            self.rows[self.row] += character
            self.used += size


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    for name, value in (("COLUMNS", WIDTH), ("LINES", HEIGHT), ("TERM", "xterm")):
        monkeypatch.setenv(name, str(value))
    return Terminal()


def written(terminal: Terminal, pieces: list[Written], answer: str) -> list[list[str]]:
    """Return the rows after each piece, and at the end."""
    seen = []
    with redirect_stdout(terminal):
        text = AnswerText()
        for piece in pieces:
            text(piece)
            seen.append(list(terminal.rows))
        text.end(Answer("?", answer, "answered"))
    return [*seen, list(terminal.rows)]


def plain(text: str) -> list[str]:
    """Return the rows of a text that is written at once."""
    fresh = Terminal()
    fresh.write(f"{text}\n")
    return fresh.rows


def test_words_appear_as_they_are_written(terminal: Terminal) -> None:
    pieces = [Written(one) for one in ("The", " boat", " leaves", " [1]")]
    assert written(terminal, pieces, "The boat leaves [1]") == [
        ["The"], ["The boat"], ["The boat leaves"], ["The boat leaves [1]"], ["The boat leaves [1]", ""],
    ]  # fmt: skip


def test_a_struck_sentence_disappears_and_what_replaces_it_stands_there(terminal: Terminal) -> None:
    first = "The boat leaves at seven. [1]"
    pieces = [Written(first), Written(" It carries 99 people, as"), Written(first, replaces=True), Written(" Bye.")]
    *_, struck, after, end = written(terminal, pieces, f"{first} Bye.")
    assert "".join(struck) == first
    assert "".join(after) == f"{first} Bye."
    assert end == plain(f"{first} Bye.")


@pytest.mark.parametrize("letters", ["ab \n", "a中é\n", "\u0301x \n", "👩\u200d👧a"])
def test_however_a_text_is_replaced_only_what_stands_is_on_the_screen(terminal: Terminal, letters: str) -> None:
    for seed in range(300):
        chosen = random.Random(seed)
        texts = ["".join(chosen.choice(letters) for _ in range(chosen.randrange(0, 90))) for _ in range(3)]
        start, stands = texts[0][:30], texts[0][: chosen.randrange(0, 30)] + texts[2][:40]
        before = start + texts[1][:40]
        rows = written(Terminal(), [Written(start), Written(texts[1][:40]), Written(stands, replaces=True)], stands)[-1]
        whole = plain(stands)
        assert rows[-len(whole) :][-HEIGHT:] == whole[-HEIGHT:], seed
        assert rows == whole or len(plain(before)) > HEIGHT, seed


def test_what_was_scrolled_out_is_followed_by_the_whole_text(terminal: Terminal) -> None:
    long = " ".join(f"Line {number:02} of many." for number in range(20))
    rows = written(terminal, [Written(long), Written("Short.", replaces=True)], "Short.")[-1]
    assert rows[-2:] == ["Short.", ""]
    again = written(terminal, [Written(long), Written(f"Not so. {long}", replaces=True)], f"Not so. {long}")[-1]
    assert again[-len(plain(f"Not so. {long}")) :] == plain(f"Not so. {long}")


def test_escape_sequences_are_harmless_also_in_parts(terminal: Terminal) -> None:
    pieces = [Written(one) for one in ("Red \x1b", "[31", "m\x9b2J\r", "\tend \udc80")]
    text = "".join(piece.text for piece in pieces)
    assert written(terminal, pieces, text)[-1] == plain("Red \ufffd[31m\ufffd2J\ufffd    end \ufffd")


def test_a_pipe_gets_the_final_text_once() -> None:
    pipe = io.StringIO()
    with redirect_stdout(pipe):
        text = AnswerText()
        for piece in (Written("Wrong"), Written("Right \x1b[1m", replaces=True)):
            text(piece)
        text.end(Answer("?", "Right \x1b[1m", "answered"))
    assert pipe.getvalue() == "Right \ufffd[1m\n"


def test_below_stand_remarks_then_places_with_their_quotations(capsys: pytest.CaptureFixture[str]) -> None:
    one = passage("## 2. Term\n\nSix months notice.", path="/d/v2.docx", line=None)
    answer = Answer("?", "Six. [1]", "answered", (Citation(1, one),), (Quote("Six months notice.", 1, 12, 30),))
    print_below(answer, DEFAULT_OPTIONS, ["/d/v2.docx"], Path())
    out, err = capsys.readouterr()
    assert out == '\nSources:\n  [1] /d/v2.docx, "2. Term"\n      "Six months notice."\n'
    assert err == "Changed or gone since it was indexed: /d/v2.docx.\n"
