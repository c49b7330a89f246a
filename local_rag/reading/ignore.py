"""Match paths against the patterns of a .gitignore as git does, in a time that no pattern can make grow out of hand.

Made into one regular expression, a pattern of many stars tries every way to share a name among them. Here names are
matched one by one, by `fnmatch`, which never gives a star back once the text behind it is found; and of the `**`
between names only the last one ever takes more.
"""

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_MAX_PATTERN = 4096  # characters: no path is longer


@dataclass(frozen=True, slots=True)
class Pattern:
    """A line of a .gitignore: whether it ignores what it matches or takes it back, and what it matches.

    Each of `parts` but the last matches a name, or is None: `**`, any number of names. Without a slash in the pattern
    they are held against the last name alone.
    """

    ignores: bool
    folders_only: bool
    has_slash: bool
    parts: tuple[Callable[[str], object] | None, ...]

    def matches(self, names: Sequence[str], *, is_folder: bool) -> bool:
        """Tell whether a path, relative to the folder of the .gitignore, is matched itself."""
        if self.folders_only and not is_folder:
            return False
        names = names if self.has_slash else names[-1:]
        part = name = 0
        again: tuple[int, int] | None = None
        while name < len(names):
            match = self.parts[part]
            if match is None:
                part += 1
                again = part, name
            elif match(names[name]):
                part, name = part + 1, name + 1
            elif again:
                part, name = again = again[0], again[1] + 1
            else:
                return False
        return part == len(self.parts) - 1


def parse(line: str) -> Pattern | None:
    """Make a pattern of a line of a .gitignore; None where it is empty, a comment or longer than any path."""
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
    inside = [bool] if parts[-1] is None else []  # what ends in ** does not match the folder itself
    return Pattern(ignores, text.endswith("/"), has_slash, (*parts, *inside, _nothing))


def _matcher(glob: str) -> Callable[[str], object] | None:
    """Return what tells whether a name matches, None for `**`."""
    if glob == "**":
        return None
    glob = re.sub(r"\\(.)|\[\^", _as_fnmatch_writes, glob)
    return re.compile(fnmatch.translate(glob)).match if set(glob) & set("*?[") else glob.__eq__


def _as_fnmatch_writes(found: re.Match[str]) -> str:
    """Translate what fnmatch does not know: a character after a backslash, and [^...]."""
    escaped = found[1]
    return "[!" if escaped is None else f"[{escaped}]" if escaped in "*?[" else escaped


def _nothing(_name: str) -> bool:
    """Match no name, at the end of every pattern."""
    return False
