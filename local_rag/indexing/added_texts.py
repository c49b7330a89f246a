"""Texts that are no files of the user: each is kept as a Markdown file in a folder beside the library.

So whatever holds for documents holds for them: they are split again after the settings change, and a repaired library
reads them again.
"""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from local_rag.errors import LibraryError
from local_rag.files import is_utf8, write_whole

_LONGEST = 200  # bytes of a name; a file's may have 255


def texts_folder(library: Path) -> Path:
    """Return the folder beside a library for added texts: they outlast its index."""
    return library.parent / f"{library.name.lstrip('.') or 'library'}-texts"


def text_file(library: Path, name: str) -> Path:
    """Return the file of the text with a name; raise LibraryError for a name that no file can have."""
    is_usable = name.isprintable() and name == name.strip() and not name.startswith(".") and "/" not in name
    if not name or not is_usable or len(name.encode(errors="replace")) > _LONGEST:
        raise LibraryError(
            f"A text cannot be named {name[:60]!r}; give it a printable name of at most {_LONGEST} bytes that contains "
            "no slash and begins with no dot."
        )
    return texts_folder(library) / f"{name}.md"


def write_text(library: Path, name: str, text: str, tags: Sequence[str]) -> Path:
    """Write a text with its name as the title, in the place of an earlier one of this name; return its file."""
    path = text_file(library, name)
    if not text.strip():
        raise LibraryError(f"The text {name!r} is empty; there is nothing to find in it.")
    if not is_utf8(text + "".join(tags)):
        raise LibraryError(f"The text {name!r} is not valid Unicode, because it contains half of a surrogate pair.")
    fields = {"title": name, **({"tags": list(tags)} if tags else {})}
    lines = [f"{field}: {json.dumps(value, ensure_ascii=False)}" for field, value in fields.items()]
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_whole(path, "\n".join(["---", *lines, "---", "", text]), durable=True)
    return path


def delete_texts(library: Path, paths: Iterable[Path | str]) -> None:
    """Delete the files among these that hold added texts."""
    folder = texts_folder(library)
    for path in map(Path, paths):
        if path.parent == folder:
            with suppress(FileNotFoundError):
                path.unlink()
