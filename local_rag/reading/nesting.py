"""Find what is nested in configuration and data files, line by line: YAML, indented JSON, TOML, INI."""

import re
from dataclasses import dataclass, field

from local_rag.document_records import Heading

NESTED = {"ini", "json", "toml", "yaml"}  # languages
_NAMING = {"id", "name", "title"}  # keys whose values tell items apart
_WITH_SECTIONS = {"ini", "toml"}
_SECTION_COLUMN = -1
_COMMENT = re.compile(r"#|;|//")
_DOCUMENT = re.compile(r"---(?:\s|\Z)")
_SECTION = re.compile(r"(\[\[?)[ \t]*+([^\[\],\n]{1,200})\]\]?[ \t]*+(?:[#;].*)?\Z")
_ITEM = re.compile(r"-(?:[ \t]++|\Z)|(?=\{)")
_QUOTED_KEY = r"""(?:"([^"\n]{1,200})"|'([^'\n]{1,200})')[ \t]*+"""
_KEY_WITH_COLON = re.compile(rf"(?:{_QUOTED_KEY}:|([^\s\"'#&*!|>{{}}\[\],:][^#:\n]{{0,200}}):(?=\s|\Z))")
_KEY_WITH_SIGN = re.compile(rf"(?:{_QUOTED_KEY}|([\w.][^#=:\n]{{0,200}}))[=:]")
_SCALAR = re.compile(
    r"""[ \t]*+(?:"([^"\n]{1,100})"|'([^'\n]{1,100})'|([^\s"'&*!|>{}\[\]#,][^#,\n]{0,100}))(?:,|\s#|\Z)"""
)
_TEXT_BELOW = re.compile(r"[|>][-+\d]{0,2}(?:\s+#.*)?\Z")


@dataclass(slots=True)
class Entry:
    """A section, an item or a key with all that belongs to it, from the comment above it on.

    `depth` counts the entries around it; `line` is the offset of its first line below the comment. `is_long` is true if
    something of it stands below that line, and `is_scalar` if no entry can. `pairs` are the keys and values of an item.
    """

    start: int
    line: int
    column: int
    depth: int
    key: str = ""
    is_item: bool = False
    end: int = 0
    is_long: bool = False
    is_scalar: bool = False
    pairs: list[tuple[str, str]] = field(default_factory=list)

    @property
    def title(self) -> str:
        """Return its key, and for an item what tells it from the others, such as `id: 7`; empty if nothing does."""
        named = next((pair for pair in self.pairs if pair[0].lower() in _NAMING), next(iter(self.pairs), ()))
        return ", ".join(filter(None, (self.key, ": ".join(named))))


def find_nested(text: str, language: str) -> tuple[Heading, ...]:
    """Return what has something below it as headings, which put a chunk under `fridges > id: F1`."""
    entries = find_entries(text, language)
    return tuple(Heading(one.depth + 1, one.title, one.start, one.end) for one in entries if one.is_long and one.title)


def find_entries(text: str, language: str) -> list[Entry]:
    """Return the entries of a text, or of a part of it; none for one without the sections that its language has."""
    walk = _Walk(language)
    start = 0
    for line in text.split("\n"):
        walk.read(start, line)
        start += len(line) + 1
    for entry in walk.open:
        entry.end = len(text)
    has_sections = any(one.column == _SECTION_COLUMN for one in walk.entries)
    return walk.entries if has_sections or language not in _WITH_SECTIONS else []


class _Walk:
    """Collect the entries of lines; a line of another form belongs to the entry above it."""

    def __init__(self, language: str) -> None:
        self._has_sections = language in _WITH_SECTIONS
        self._key = _KEY_WITH_SIGN if self._has_sections else _KEY_WITH_COLON
        self._comment: int | None = None  # where the comment above a line begins
        self._text: int | None = None  # the column of the entry whose text stands below it
        self.entries: list[Entry] = []
        self.open: list[Entry] = []

    def read(self, start: int, line: str) -> None:
        """Read a line that starts at an offset."""
        rest = line.strip()
        column = len(line) - len(line.lstrip())
        if self._text is not None and (not rest or column > self._text):
            return
        self._text = None
        if not rest or _COMMENT.match(rest):
            self._comment = None if not rest else start if self._comment is None else self._comment
            return
        section = _SECTION.match(rest) if self._has_sections else None
        if section:
            self._enter_section(start, section[2].strip(), is_item=section[1] == "[[")
        elif _DOCUMENT.match(line):
            self._enter(start, _SECTION_COLUMN)
        else:
            self._enter_items(start, column, rest)
        self._comment = None

    def _enter_items(self, start: int, column: int, rest: str) -> None:
        while not self._has_sections and (item := _ITEM.match(rest)):
            if rest[0] != "{" or column:  # what has no indentation is the whole file
                self._enter(start, 2 * column + 1, is_item=True)
            column, rest = column + max(1, item.end()), rest[max(1, item.end()) :]
        if found := self._key.match(rest):
            self._enter_key(start, column, _first(found).strip(), rest[found.end() :])
        elif self.open and _TEXT_BELOW.match(rest):
            self._text, self.open[-1].is_long = column - 1, True

    def _enter_key(self, start: int, column: int, key: str, value: str) -> None:
        entry = self._enter(start, 2 * column, key)
        if scalar := _SCALAR.match(value):
            entry.is_scalar = True
            if len(self.open) > 1 and self.open[-2].is_item:
                self.open[-2].pairs.append((key, _first(scalar).strip()))
        elif _TEXT_BELOW.match(value.strip()):
            self._text, entry.is_long = column, True

    def _enter_section(self, start: int, name: str, *, is_item: bool) -> None:
        begin = start if self._comment is None else self._comment
        while self.open and not (self.open[-1].column < 0 and name.startswith(f"{self.open[-1].key}.")):
            self.open.pop().end = begin
        self._add(begin, start, _SECTION_COLUMN, name, is_item)

    def _enter(self, start: int, column: int, key: str = "", *, is_item: bool = False) -> Entry:
        """Enter what stands at a column, which is counted twice, so that items are within the key above them."""
        begin = start if self._comment is None else self._comment
        while self.open and (self.open[-1].column >= column or self.open[-1].is_scalar):
            self.open.pop().end = begin
        return self._add(begin, start, column, key, is_item)

    def _add(self, begin: int, line: int, column: int, key: str, is_item: bool) -> Entry:
        if self.open and self.open[-1].line < line:
            self.open[-1].is_long = True
        entry = Entry(begin, line, column, len(self.open), key, is_item)
        self.entries.append(entry)
        self.open.append(entry)
        return entry


def _first(found: re.Match[str]) -> str:
    return next(filter(None, found.groups()), "")
