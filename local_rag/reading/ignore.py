"""Match paths against .gitignore patterns as git does, in bounded time for any pattern.

As one regular expression, a pattern with many stars would try every way to divide a name among them. Instead, names are
matched one by one with `fnmatch`, which does not backtrack into a star once the text after it was found. Of several
`**` between names only the last one is extended.
"""

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_MAX_PATTERN = 4096  # characters: no path is longer


@dataclass(frozen=True, slots=True)
class IgnorePattern:
    """A line of a .gitignore; `ignores` is false for a line with `!`, which includes files again.

    Each of `parts` except the last matches one name; None stands for `**`, any number of names. A pattern without a
    slash is compared with the last name only.
    """

    ignores: bool
    folders_only: bool
    has_slash: bool
    parts: tuple[Callable[[str], object] | None, ...]

    def matches(self, names: Sequence[str], *, is_folder: bool) -> bool:
        """Return whether the pattern matches a path relative to the folder of the .gitignore."""
        if self.folders_only and not is_folder:
            return False
        names = names if self.has_slash else names[-1:]
        part = name = 0
        backtrack: tuple[int, int] | None = None
        while name < len(names):
            match = self.parts[part]
            if match is None:
                part += 1
                backtrack = part, name
            elif match(names[name]):
                part, name = part + 1, name + 1
            elif backtrack:
                part, name = backtrack = backtrack[0], backtrack[1] + 1
            else:
                return False
        return part == len(self.parts) - 1


def parse_pattern(line: str) -> IgnorePattern | None:
    """Parse a line of a .gitignore; return None if it is empty, a comment or longer than any path."""
    text = line.rstrip(" ")
    if (len(text) - len(text.rstrip("\\"))) % 2 and text != line:
        text += " "
    ignores = not text.startswith("!")
    text = text.removeprefix("!") if text[:1] != "#" else ""
    if not text or len(text) > _MAX_PATTERN:
        return None
    globs = text.removesuffix("/").split("/")
    has_slash = len(globs) > 1
    parts = [_matcher(glob) for glob in (globs[1:] if has_slash and not globs[0] else globs)]
    inside = [bool] if parts[-1] is None else []  # a pattern that ends in ** does not match the folder itself
    return IgnorePattern(ignores, text.endswith("/"), has_slash, (*parts, *inside, lambda _name: False))


def _matcher(glob: str) -> Callable[[str], object] | None:
    """Return a function that matches a name, or None for `**`."""
    if glob == "**":
        return None
    glob = re.sub(r"\\(.)|\[\^", _as_fnmatch_writes, glob)
    return re.compile(fnmatch.translate(glob)).match if set(glob) & set("*?[") else glob.__eq__


def _as_fnmatch_writes(found: re.Match[str]) -> str:
    """Translate syntax that fnmatch does not know: a character after a backslash, and [^...]."""
    escaped = found[1]
    return "[!" if escaped is None else f"[{escaped}]" if escaped in "*?[" else escaped
