"""Find the headings of texts that are neither Markdown nor code: reStructuredText, AsciiDoc, LaTeX, Org."""

import re
from collections.abc import Callable, Iterator, Mapping

from local_rag.records import Heading

_LONGEST = 300  # characters of a heading
_RULE = re.compile(r"([!-/:-@\[-`{-~])\1{2,}[ \t]*")
_ASCIIDOC = re.compile(
    r"^(?:(?P<block>-{4,}|\.{4,}|\+{4,}|/{4,})[ \t]*|(?P<level>={1,6})[ \t]+(?P<title>\S[^\n]{0,300}))$", re.MULTILINE
)
_ORG = re.compile(r"^(\*{1,8})[ \t]+(\S[^\n]{0,300})$", re.MULTILINE)
_LATEX_LEVELS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph", "subparagraph")
_LATEX = re.compile(rf"^[ \t]*\\({'|'.join(_LATEX_LEVELS)})\*?(?:\[[^\]\n]{{0,300}}\])?\{{", re.MULTILINE)
_LATEX_COMMAND = re.compile(r"\\[A-Za-z]+\*?|[{}]|\\(?=\W)")


def find_outline(text: str, suffix: str) -> tuple[Heading, ...]:
    """Return the headings of a text by its suffix; none for a suffix without a known markup."""
    finder = _FINDERS.get(suffix)
    return tuple(finder(text)) if finder else ()


def _of_rst(text: str) -> Iterator[Heading]:
    """Yield titles with a line of punctuation below, perhaps above too; levels are in the order of their first use."""
    levels: list[str] = []
    start, above, above_start, before = 0, "", 0, ""
    previous_start = 0
    for line in text.split("\n"):
        rule = _RULE.fullmatch(line)
        title = above.strip()
        is_title = (
            bool(title) and not _RULE.fullmatch(above) and len(title) <= _LONGEST and len(line.rstrip()) >= len(title)
        )
        overlined = bool(_RULE.fullmatch(before)) and before.rstrip() == line.rstrip()
        if rule and is_title and (overlined or (not before.strip() and not above[:1].isspace())):
            style = f"{line[0]}{overlined}"
            if style not in levels:
                levels.append(style)
            yield Heading(levels.index(style) + 1, title, previous_start if overlined else above_start)
        before, above = above, line
        previous_start, above_start = above_start, start
        start += len(line) + 1


def _of_asciidoc(text: str) -> Iterator[Heading]:
    """Yield lines that begin with equals signs, except those in listings."""
    block = ""
    for found in _ASCIIDOC.finditer(text):
        if fence := found["block"]:
            block = "" if fence == block else block or fence
        elif not block:
            level = found["level"]
            yield Heading(len(level), found["title"].strip().removesuffix(level).strip(), found.start())


def _of_org(text: str) -> Iterator[Heading]:
    for found in _ORG.finditer(text):
        yield Heading(len(found[1]), found[2].strip(), found.start())


def _of_latex(text: str) -> Iterator[Heading]:
    """Yield the titles of sections; commands within them are dropped."""
    for found in _LATEX.finditer(text):
        depth, end = 1, found.end()
        while depth and end < min(len(text), found.end() + _LONGEST):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        title = " ".join(_LATEX_COMMAND.sub("", text[found.end() : end - 1]).replace("~", " ").split())
        if title and not depth:
            yield Heading(_LATEX_LEVELS.index(found[1]) + 1, title, text.index("\\", found.start()))


_FINDERS: Mapping[str, Callable[[str], Iterator[Heading]]] = {
    ".rst": _of_rst,
    ".rest": _of_rst,
    ".adoc": _of_asciidoc,
    ".asciidoc": _of_asciidoc,
    ".org": _of_org,
    ".tex": _of_latex,
    ".ltx": _of_latex,
}
