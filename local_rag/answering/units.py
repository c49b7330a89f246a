"""Split passages into the units that a model is shown and that an answer quotes: sentences, list items, rows, code."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from pathlib import PurePath

from local_rag.answering.blocks import ENDED, Block, Kind, speakers_in, split_blocks, title_of
from local_rag.answering.row_texts import header_above, row_text, sheet_rows_of
from local_rag.document_records import heading_path
from local_rag.passage_records import Passage
from local_rag.reading.formats import format_of, is_mail, kind_of_source
from local_rag.text.heading_lines import heading_lines
from local_rag.text.list_labels import Outline
from local_rag.text.pipe_rows import cells_of
from local_rag.text.sentences import split_sentences
from local_rag.text.sheet_rows import COLUMNS

_NO_DIGIT = re.compile(r"\D")
_SHORT_CLAUSE = 400  # characters of one that is a single unit; a longer one is split into its sentences


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, list item, clause, table row or block of code.

    `passage` is the index of its passage, and `start` and `end` its span there. `text` is what the model is shown: that
    of a row has the heads of its columns. `paragraph` is the same for the units of a paragraph, a list or a table.
    `heading` is the nearest heading above it within the passage. `label` is what a clause or item is numbered with, and
    `lead` where the unit begins that introduces it in the passage, -1 if none does: the line above its list or table,
    or the item that it belongs to. For a question, `rank` is its place among all units, 0 for the best, and `logit` the
    reader's, None without one.
    """

    passage: int
    kind: Kind
    text: str
    start: int
    end: int
    paragraph: int
    heading: str = ""
    label: str = ""
    lead: int = -1
    rank: int = 0
    logit: float | None = None


def split_units(passages: Sequence[Passage]) -> list[Unit]:
    """Return the units of passages, in their order; headings and the rules of tables are none."""
    return [unit for index, passage in enumerate(passages) for unit in _Splitter(index, passage).units()]


def headings_of(passage: Passage) -> str:
    """Return the title of a passage and the headings above it as one line, after what names its document."""
    path = heading_path(passage.title, tuple(dict.fromkeys(passage.headings)))
    return " ".join((f"{' '.join(passage.names)}: {path}" if passage.names else path).split())


def own_day(passage: Passage) -> str:
    """Return the date that a document tells of itself; of a sheet, that is often only the day of an export."""
    return "" if kind_of_source(passage.path) == "sheet" else passage.provenance.date


def source_heading(passage: Passage) -> str:
    """Return the headings of a passage with the kind and the date of its document, where they are known and not said.

    A date is written as `9 May 2024`, which takes fewer tokens than 2024-05-09. A model would take the day of an export
    for one of the rows.
    """
    heading, day, kind = headings_of(passage), own_day(passage), kind_of_source(passage.path)
    writer = passage.provenance.author.partition("<")[0].strip(" \"'") if kind == "mail" else ""
    is_said = day.replace("-", "") in _NO_DIGIT.sub("", heading)
    written = "" if is_said else _written(day)
    known = ", ".join(filter(None, (f"{kind} from {writer}" if writer else kind, written)))
    return f"{heading} ({known})" if known else heading


def _written(day: str) -> str:
    with suppress(ValueError):
        return f"{date.fromisoformat(day):%-d %B %Y}"
    return day


class _Splitter:
    """Split a passage block by block.

    `before` is where the last unit below the same heading begins, `intro` and `caption` where the unit begins that
    introduces the list or the table in which the block is; each is -1 for none.
    """

    def __init__(self, index: int, passage: Passage) -> None:
        self._index, self._passage, self._text = index, passage, passage.text
        written = format_of(PurePath(passage.path))
        # Other converters mark headings, as Markdown does.
        is_plain = written.kind == "text" and (not written.converter or passage.page is not None)
        titles = heading_lines(passage.text) if is_plain else frozenset[int]()
        self._blocks = list(split_blocks(passage.text, titles, in_code=written.kind == "code"))
        self._speakers = speakers_in(passage.text, self._blocks) if is_mail(passage.path) else {}
        self._sheet_rows = sheet_rows_of(passage.text, self._blocks)
        self._head, self._continued = header_above(passage)
        self._outline, self._heading = Outline(), ""
        self._before = self._intro = self._caption = -1

    def units(self) -> Iterator[Unit]:
        """Yield the units, in order."""
        for number, block in enumerate(self._blocks):
            above = self._blocks[number - 1] if number else None
            self._heading = self._speakers.get(block.start, self._heading)
            if block.kind == "heading":
                title = title_of(self._text[block.start : block.end])
                known = {self._passage.title, *self._passage.headings}
                self._heading, self._before, self._head = "" if title in known else title, -1, []
                self._outline.clear()
            elif block.kind == "row" or (above is None and self._continued):
                yield from self._row(block, above, self._blocks[number + 1 : number + 2])
            elif block.kind != "rule":
                self._head = []
                for one in _parts(self._introduced(self._unit(block, block.kind), block, above)):
                    yield one
                    self._before = self._before if one.text.startswith(COLUMNS) else one.start

    def _unit(self, block: Block, kind: Kind) -> Unit:
        text = self._text[block.start : block.end]
        return Unit(self._index, kind, text, block.start, block.end, block.paragraph, self._heading)

    def _introduced(self, unit: Unit, block: Block, above: Block | None) -> Unit:
        """Return a unit with what introduces it, and enter its item."""
        if block.kind == "code":
            return replace(unit, lead=self._before)
        if block.label is None or block.kind == "sentence":
            self._outline.clear()
            return unit
        if not self._outline.style:
            self._intro = self._before if above and self._introduces(above) else -1
        lead = self._outline.enter(block.label, block.start)
        return replace(unit, label=block.label.said, lead=self._intro if lead is None else lead)

    def _row(self, block: Block, above: Block | None, following: Sequence[Block]) -> Iterator[Unit]:
        unit = self._unit(block, "row")
        if above is None and self._continued:
            # The passage begins within a long row: the header of its table says in which one.
            rest = row_text(self._head, cells_of(unit.text), cut=True) if self._head else " ".join(unit.text.split())
            label = self._continued + ("" if self._continued.endswith(":") else ";")
            yield replace(unit, text=f"{label} {rest}")
            return
        if above and above.kind not in {"row", "rule"}:
            self._caption = self._before if self._introduces(above) else -1
        unit = replace(unit, lead=self._caption)
        if block.start in self._sheet_rows:
            yield replace(unit, text=self._sheet_rows[block.start])
        elif following and following[0].kind == "rule" and not self._head:
            self._head = cells_of(unit.text)
        else:
            cut = bool(self._passage.table_header) and not unit.text.endswith("|")
            yield replace(unit, text=row_text(self._head, cells_of(unit.text), cut=cut))

    def _introduces(self, block: Block) -> bool:
        """Return whether a block ends like what introduces a list or a table: with a colon, or as a caption."""
        return block.kind not in {"row", "rule"} and not ENDED.search(self._text, block.start, block.end)


def _parts(unit: Unit) -> Iterator[Unit]:
    """Yield a unit, or the sentences of a paragraph or a long clause."""
    if unit.kind != "sentence" and (unit.kind != "clause" or len(unit.text) <= _SHORT_CLAUSE):
        yield unit
        return
    for number, (first, last) in enumerate(_sentences(unit.text, unit.start)):
        text = unit.text[first - unit.start : last - unit.start]
        part = replace(unit, kind="sentence", text=text, start=first, end=last)
        yield replace(part, label="", lead=unit.start) if number and unit.label else part


def _sentences(text: str, start: int) -> Iterator[tuple[int, int]]:
    """Yield the spans of the sentences of a text that begins at an offset."""
    # Lines that are only wrapped belong together; a space is as long as a line break.
    for part in split_sentences(text.replace("\n", " ")):
        first = start + len(part) - len(part.lstrip())
        start += len(part)
        if kept := part.strip():
            yield first, first + len(kept)
