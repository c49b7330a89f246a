"""Write an answer with all that belongs to it as Markdown, whole or in pieces; nothing in it acts as Markdown but ours.

Text of documents, models and names is escaped where Markdown would take it for markup, and shows as it is. For who
shows no Markdown, `printable` in the place of `escaped` leaves it as it is.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from local_rag.answer_records import SHOWN_TABLE_ROWS, Answer, Found, TableAnswer, Written
from local_rag.answering.remarks import SourceLines, remarks, sources_of, sources_title
from local_rag.answering.translations import translated
from local_rag.display import Name, cell_as_text, found_headline, one_line, printable, times, version_lines

Escape = Callable[[str], str]
_LONGEST = 300  # characters of a title
_STRUCK = "Correction: the text above did not pass the check against the documents and is struck. This stands:"
_NO_BREAK = "\u00a0"
# Markup by where it stands. An emphasis that nothing closes is none, so what could only open one stays. The characters
# up to the next letter decide, or up to the `;` of an entity: see _settled.
_MARKUP = re.compile(
    r"""
    (?P<dropped> (?<![ \t])[ \t]++(?=\n|\Z) )                      # blanks at the end of a line
  | (?P<indent> ^[ \t]++ )                                        # of code
  | (?P<first> ^[-=:|_*](?=[-=:|_*\ \t]*(?:\n|\Z)) | ^> | ^~(?=~) # rules, heads of tables, quotations, code
             | (?<=[^ \n\t])[*~] | ` | \](?=[(:])                 # the ends of an emphasis, code, links
             | <(?=[A-Za-z/!?]) | &(?=[#]?\w{1,31};)              # HTML
             | \\(?=[!-/:-@\[-`{-~]|[ \t]*(?:\n|\Z)) )             # escapes
  | (?P<mark> ^(?:[#]{1,6}|[-+*]|\d{1,9}[.)])(?=[ \t\n]|\Z) ) (?P<blank> [ \t]? )  # headings and items
  | (?P<low> _+ )                                                 # an emphasis, unless within a word
  | (?P<line> (?<!\n)\n(?!\n) )
    """,
    re.VERBOSE | re.MULTILINE,
)
_ENTITY = re.compile(r"&#?\w{0,31}\Z")
_LONGEST_ENTITY = 34  # characters


def escaped(text: str) -> str:
    """Return Markdown that shows a text as it is, each of its lines in one of its own."""
    return _MARKUP.sub(_as_text, printable(text))


def _as_text(markup: re.Match[str]) -> str:
    whole = markup[0]
    match markup.lastgroup:
        case "dropped":
            return ""
        case "indent":
            return _NO_BREAK * len(whole.expandtabs(4))
        case "first":
            return f"\\{whole}"
        case "blank":
            mark = markup["mark"]
            return f"{mark}{_NO_BREAK}" if markup["blank"] else f"{mark[:-1]}\\{mark[-1]}"
        case "low":
            before = markup.string[max(0, markup.start() - 1) : markup.start()]
            within_word = before.isalnum() and markup.string[markup.end() : markup.end() + 1].isalnum()
            return whole if within_word else "\\_" * len(whole)
    return "  \n"


class AnswerPieces:
    """Tell an answer in pieces of Markdown as it is written; what was told cannot be taken back, only corrected.

    Places are named by `name`.
    """

    def __init__(self, name: Name, escape: Escape = escaped) -> None:
        self._escape = escape
        self._name, self._text, self._told, self._begun = name, "", "", False

    def add(self, written: Written) -> str:
        """Return what can be told now, often nothing."""
        self._text = written.text if written.replaces else self._text + written.text
        if not self._begun:
            self._begun = True  # the first piece may be all there is, which has a form of its own
            return ""
        settled = self._escape(_settled(printable(self._text)))
        if not settled.startswith(self._told):
            return ""  # what is struck is told at the end, together with what stands then
        new, self._told = settled[len(self._told) :], settled
        return new

    def end(self, answer: Answer, changed: Sequence[str]) -> str:
        """Return the rest of the answer and what belongs to it, behind a correction if told text does not stand."""
        text = self._escape(answer.text)
        if self._told and text.startswith(self._told):
            return text[len(self._told) :] + _below(answer, self._name, changed, self._escape)
        whole = answer_as_markdown(answer, self._name, changed, self._escape)
        return f"\n\n{self._escape(translated(_STRUCK, answer.question))}\n\n{whole}" if self._told else whole


def _settled(text: str) -> str:
    """Return the beginning of a text that is escaped in the same way whatever follows it."""
    end = len(text)
    while True:
        while end and not text[end - 1].isalpha():
            end -= 1
        entity = text.rfind("&", max(0, end - _LONGEST_ENTITY), end)
        if entity < 0 or not _ENTITY.match(text, entity, end):
            return text[:end]
        end = entity


def answer_as_markdown(answer: Answer, name: Name = str, changed: Sequence[str] = (), escape: Escape = escaped) -> str:
    """Return an answer, below it remarks, and its sources or the closest passages with the text that matters.

    Places are named by `name`; `changed` are the paths of cited documents whose files have changed.
    """
    if answer.outcome == "quoted":
        quoted = [_quotation(f"{quote.text} [{quote.citation}]".splitlines(), escape) for quote in answer.quotes]
        versions = version_lines(answer.versions, lambda text: _inline(text, escape))
        text = "\n\n".join([escape(answer.text.partition("\n")[0]), *quoted, *versions])
    else:
        text = _listed(answer.found, escape) if answer.found else escape(answer.text)
        if answer.table:
            text += _rows(answer.table, escape)
    return text + _below(answer, name, changed, escape)


def _quotation(lines: Iterable[str], escape: Escape) -> str:
    return "\n".join(f"> {line}" for line in escape("\n".join(lines)).split("\n"))


def _listed(found: Found, escape: Escape) -> str:
    lines = [f"{_inline(found_headline(found), escape)}{':' if found.places else '.'}", ""]
    for number, place in enumerate(found.places, start=1):
        often = times(place.occurrences)
        title = f"{_inline(place.passage.title[:_LONGEST], escape)}{f' ({often})' if often else ''}"
        lines.append(f"- {title}: \u201c{_inline(place.passage.text, escape)}\u201d [{number}]")
    return "\n".join([*lines, *(f"\n{_inline(note, escape)}" for note in found.notes)])


def _rows(table: TableAnswer, escape: Escape) -> str:
    """Return the first rows of what was computed as a table of Markdown, and how many there are."""
    if not table.rows:
        return ""
    shown = [[cell_as_text(value) for value in row] for row in table.rows[:SHOWN_TABLE_ROWS]]
    rows = [[_inline(cell, escape).replace("|", "\\|") for cell in row] for row in ([*table.columns], *shown)]
    lines = [f"| {' | '.join(row)} |" for row in rows]
    more = f"\n\n{len(shown)} of {table.count:,} rows." if table.count > len(shown) else ""
    return "\n\n" + "\n".join([lines[0], f"|{' --- |' * len(table.columns)}", *lines[1:]]) + more


def _below(answer: Answer, name: Name, changed: Sequence[str], escape: Escape) -> str:
    blocks = [_inline(remark, escape) for remark in remarks(answer, name, changed)]
    if sources := [_source(source, escape) for source in sources_of(answer, name)]:
        blocks += [_inline(sources_title(answer), escape), "\n".join(sources)]
    return "".join(f"\n\n{block}" for block in blocks)


def _source(source: SourceLines, escape: Escape) -> str:
    number = "" if source.number is None else f"[{source.number}] "
    quotes = ["\n" + re.sub("^", "  ", _quotation(lines, escape), flags=re.MULTILINE) for lines in source.quotes]
    return "\n".join([f"- {number}{_inline(source.place, escape)}", *quotes])


def _inline(text: str, escape: Escape) -> str:
    """Escape a text within a line of ours, in front of which anything may stand."""
    return escape(f"x{one_line(text)}")[1:]
