"""Blank out the comments of a markup language: remarks of a writer that the finished document does not show."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

_ORG, _ORG_BLOCK = (
    re.compile(r"\s*#(?:\s|$)"),
    re.compile(r"\A\s*#\+BEGIN_(COMMENT|SRC|EXAMPLE|EXPORT)\b", re.IGNORECASE),
)
_ASCIIDOC, _ASCIIDOC_BLOCK = re.compile(r"//(?!/)"), re.compile(r"\A(-{4,}|\.{4,}|\+{4,}|/{4,}|`{3,})\s*$")
# What begins in another way is a directive, a note, a target, or a word that stands for another one.
_RST = re.compile(r"\.\.(?:\s*$|\s+(?![\[_|]|[\w+:.-]{1,60}::))")
_LATEX_BLOCK = re.compile(r"\A\s*\\begin\{(comment|verbatim|Verbatim|lstlisting|minted)\}")
_LATEX = re.compile(r"(\\(?:url|href|path)\{[^{}]{0,2000}\}|\\verb\*?([^\w\s*]).{0,200}?\2|\\.)|%.*")


def blank_remarks(text: str, suffix: str) -> str:
    """Blank out the comments in a text by its suffix; it keeps its length and lines."""
    if not (finder := _FINDERS.get(suffix)):
        return text
    lines = text.split("\n")
    for at, start in list(finder(lines)):
        lines[at] = lines[at][:start] + " " * (len(lines[at]) - start)
    return "\n".join(lines)


def _of_org(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    for at, line, is_comment in _outside_blocks(lines, _ORG_BLOCK, lambda name: f"#+end_{name.lower()}", "comment"):
        if is_comment or _ORG.match(line):
            yield at, 0


def _of_asciidoc(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    for at, line, is_comment in _outside_blocks(lines, _ASCIIDOC_BLOCK, str, "////"):
        if is_comment or _ASCIIDOC.match(line):
            yield at, 0


def _of_latex(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    for at, line, is_comment in _outside_blocks(
        lines, _LATEX_BLOCK, lambda name: f"\\end{{{name.lower()}}}", "comment"
    ):
        signs = (one.start() for one in _LATEX.finditer(line) if one[1] is None)
        if (start := 0 if is_comment else next(signs, None)) is not None:
            yield at, start


def _of_rst(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the lines of comments that stand in no other block: what is indented below one belongs to it."""
    is_within = False
    for at, line in enumerate(lines):
        if found := _RST.match(line):
            is_within = found.end() < len(line) or bool("".join(lines[at + 1 : at + 2]).strip())
            yield at, 0
        elif is_within and line[:1].strip():
            is_within = False
        elif is_within:
            yield at, 0


def _outside_blocks(
    lines: Sequence[str], opening: re.Pattern[str], closing: Callable[[str], str], comment: str
) -> Iterator[tuple[int, str, bool]]:
    """Yield the place of each line outside blocks of code, and the line; and say of those of a `comment` that they are.

    A comment that nothing closes is none.
    """
    end, is_comment, waiting = "", False, list[tuple[int, str, bool]]()
    for at, line in enumerate(lines):
        if end:
            waiting += [(at, line, True)] * is_comment
            if line.strip().lower().startswith(end):
                yield from waiting
                end, waiting = "", []
        elif found := opening.match(line):
            end, is_comment = closing(found[1]), found[1].lower().startswith(comment)
            waiting = [(at, line, True)] * is_comment
        else:
            yield at, line, False


_FINDERS: Mapping[str, Callable[[Sequence[str]], Iterator[tuple[int, int]]]] = {
    ".org": _of_org,
    ".adoc": _of_asciidoc,
    ".asciidoc": _of_asciidoc,
    ".rst": _of_rst,
    ".rest": _of_rst,
    ".tex": _of_latex,
    ".ltx": _of_latex,
}
