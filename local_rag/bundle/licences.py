"""Collect the licence texts and notices of what is packed; a component without one is an error."""

import re
import tarfile
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import HeaderParser
from importlib import resources
from pathlib import Path

from local_rag.bundle.archive import BundleError
from local_rag.files import licence_file
from local_rag.models.registry import ModelEntry

Texts = list[tuple[str, bytes]]
_NAMES = re.compile(r"(licen[cs]es?|copying|notices?|third.?party|copyright|authors|model_card)([^/]*)", re.IGNORECASE)
_TEXT = ("", ".txt", ".md", ".rst", ".html")
_LARGEST = 4 * 1024 * 1024
# What packages write instead of an identifier of SPDX.
_SPDX = {
    "mit license": "MIT",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "the bsd 2-clause license": "BSD-2-Clause",
    "3-clause bsd license": "BSD-3-Clause",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "mit, bsd": "MIT AND BSD-3-Clause",
    "bsd-3-clause, apache-2.0, dependency licenses": "BSD-3-Clause AND Apache-2.0",
    "psfl": "PSF-2.0",
}
# Packages that name only a family: what their sources say.
_BY_NAME = {"cobble": "BSD-2-Clause", "olefile": "BSD-2-Clause", "scipy": "BSD-3-Clause", "jinja2": "BSD-3-Clause"}
_LLAMA_CPP = "MIT License\n\nCopyright (c) 2023-2026 The ggml authors\n\n"


def metadata_of(wheel: zipfile.ZipFile) -> Message:
    """Return the headers of a wheel's METADATA."""
    name = next(one for one in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", one))
    return HeaderParser().parsestr(wheel.read(name).decode("utf-8", "replace"))


def spdx_of(name: str, metadata: Message) -> str:
    """Return the licence of a package as an SPDX expression where one is known, else in its own words, else empty."""
    if expression := metadata["License-Expression"]:
        return str(expression).strip()
    classifiers = [
        one.rpartition(" :: ")[2] for one in metadata.get_all("Classifier", []) if one.startswith("License ::")
    ]
    said = str(metadata["License"] or "").strip()
    if "\n" in said or not said:  # some packages put the whole text there
        said = " AND ".join(_SPDX.get(one.lower(), one) for one in classifiers)
    return _BY_NAME.get(name) or _SPDX.get(said.lower(), said)


def of_wheel(name: str, path: Path) -> Texts:
    """Return the licences and notices in a wheel, or the standard text of its licence; raise BundleError if none."""
    with zipfile.ZipFile(path) as wheel:
        found = [(one, wheel.read(one)) for one in _licences(wheel)]
        expression = spdx_of(name, metadata_of(wheel))
    if name == "llama-cpp-python":  # its wheel lacks the licence of the library that it contains
        found.append(("llama.cpp", _LLAMA_CPP.encode() + (_standard("MIT") or b"")))
    return found or _by_expression(name, expression)


def _licences(wheel: zipfile.ZipFile) -> Iterator[str]:
    metadata = metadata_of(wheel)
    named = {one.strip() for one in metadata.get_all("License-File", [])}
    for info in sorted(wheel.infolist(), key=lambda one: one.filename):
        inside = info.filename.partition(".dist-info/")[2]
        last = info.filename.rpartition("/")[2]
        is_text = Path(last).suffix.lower() in _TEXT and _NAMES.fullmatch(last)
        is_named = inside in named or inside.removeprefix("licenses/") in named or inside.startswith("licenses/")
        if (is_named or is_text) and not info.is_dir() and info.file_size <= _LARGEST:
            yield info.filename


def of_model(entry: ModelEntry, folder: Path) -> Texts:
    """Return the licences and notices in a model's folder, or the standard text; raise BundleError if none."""
    found = [(path.name, path.read_bytes()) for path in sorted(folder.glob("*")) if _is_licence(path)]
    own = [(name, text) for name, text in found if not name.lower().startswith("model_card")]
    return found if own else found + _by_expression(entry.name, entry.licence, folder)


def _is_licence(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() in _TEXT and _NAMES.fullmatch(path.name) is not None


def of_interpreter(path: Path) -> Texts:
    """Return the licences in an archive of an interpreter, but for those of packages; raise BundleError if none."""
    with tarfile.open(path) as packed:
        found = [
            (member.name, file.read())
            for member in packed
            if member.isfile()
            and "site-packages" not in member.name
            and _NAMES.fullmatch(Path(member.name).name)
            and Path(member.name).suffix.lower() in _TEXT
            and (file := packed.extractfile(member))
        ]
    if not found:
        raise BundleError("platform", f"{path} contains no licence of the interpreter; choose another with --python.")
    return found


def _by_expression(name: str, expression: str, folder: Path | None = None) -> Texts:
    """Return the standard text of a licence that is told by its identifier alone."""
    identifiers = re.split(r" (?:AND|OR|WITH) |[()]", expression)
    texts = [(one, _standard(one)) for one in identifiers if one.strip()]
    if not texts or not all(text for _, text in texts):
        where = f"put its text as LICENSE into {folder}" if folder else "pack another version of it"
        said = f" but {expression!r}" if expression else ""
        raise BundleError("platform", f"No licence text of {name} is known{said}; {where}.")
    return [(f"{one} (standard text; {name} has none of its own)", text) for one, text in texts if text]


def _standard(identifier: str) -> bytes | None:
    if identifier == "Apache-2.0":
        return licence_file().read_bytes()
    file = resources.files("local_rag.bundle") / "licences" / f"{identifier}.txt"
    return file.read_bytes() if re.fullmatch(r"[A-Za-z0-9.-]+", identifier) and file.is_file() else None
