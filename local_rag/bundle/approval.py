"""Write the documents for approval: the licences of all that is packed, and the list of all components.

The list is a CycloneDX 1.6 document, with what each component depends on. A component without a licence is an error.
"""

import hashlib
import json
import re
import tarfile
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from email.message import Message
from email.parser import HeaderParser
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any

from local_rag.bundle.archive import BundleError
from local_rag.bundle.packing_list import Item, item_of
from local_rag.bundle.wheels import commit
from local_rag.files import extra_command, licence_file, package_key
from local_rag.models.models_folder import default_models_directory
from local_rag.models.registry import ModelEntry

_NAMESPACE = uuid.UUID("8a5f1f6e-7a0e-4c6b-9d0c-3f3b6e1f4a11")
_BUILT = ("llama-cpp-python", "local-rag")  # by the packer, so no index has these files


def documents_for_approval(
    wheels: Mapping[str, Item], models: Sequence[ModelEntry], interpreter: Item | None
) -> Iterator[Item]:
    """Yield the licences of wheels, models and interpreter as items, then the list of all components."""
    texts = {name: licences_of_wheel(name, _path_of(item)) for name, item in wheels.items()}
    for entry in models:
        of_model = licences_of_model(entry, entry.folder(default_models_directory()))
        texts[f"model-{entry.name}"] = [("licence", entry.licence.encode()), *of_model]
    if interpreter:
        texts["python"] = licences_of_interpreter(_path_of(interpreter))
    for name, files in texts.items():
        blocks = [f"== {file}\n".encode() + text + b"\n" for file, text in files]
        yield item_of(f"licences/{name}.txt", "licence", b"\n".join(blocks))
    document = write_sbom(version("local-rag"), commit(), wheels, models, interpreter)
    yield item_of("sbom.cdx.json", "sbom", document)


def _path_of(item: Item) -> Path:
    assert isinstance(item.source, Path)
    return item.source


def write_sbom(
    release: str,
    revision: str,
    wheels: Mapping[str, Item],
    models: Iterable[ModelEntry],
    interpreter: Item | None = None,
) -> bytes:
    """Return the document; the same components give the same bytes."""
    try:
        from cyclonedx.contrib.license.factories import LicenseFactory
        from cyclonedx.model import HashAlgorithm, HashType, Property
        from cyclonedx.model.bom import Bom
        from cyclonedx.model.component import Component, ComponentType
        from cyclonedx.output.json import JsonV1Dot6
        from packageurl import PackageURL
    except ImportError:
        text = "Packing needs the packages of local-rag[bundle]"
        raise BundleError("platform", f"{text}; run `{extra_command('bundle')}`.") from None
    licences, bom = LicenseFactory(), Bom()

    def component(name: str, kind: Any, ref: str, sha256: str, licence: str, **fields: Any) -> Any:
        hashes = [HashType(alg=HashAlgorithm.SHA_256, content=sha256)] if sha256 else []
        properties = [Property(name=f"local-rag:{one}", value=value) for one, value in fields.pop("told", {}).items()]
        known = [licences.make_from_string(licence)] if licence else []
        return Component(
            name=name, type=kind, bom_ref=ref, hashes=hashes, licenses=known, properties=properties, **fields
        )

    told = {"commit": revision} if revision else {}
    program = component(
        "local-rag", ComponentType.APPLICATION, "local-rag", "", "Apache-2.0", version=release, told=told
    )
    bom.metadata.component = program
    parts, packages, wanted = list[Any](), dict[str, Any](), dict[str, list[str]]()
    for name, item in wheels.items():
        with zipfile.ZipFile(_path_of(item)) as wheel:
            metadata, native = metadata_of(wheel), sorted(_native(wheel))
        number = str(metadata["Version"])
        kind = "generic" if name in _BUILT else "pypi"
        library = component(
            name,
            ComponentType.LIBRARY,
            f"pkg:{kind}/{name}@{number}",
            item.sha256,
            spdx_of(name, metadata),
            version=number,
            purl=PackageURL(kind, None, name, number),
            told={"member": item.path},
        )
        inside = [
            component(file.rpartition("/")[2], ComponentType.LIBRARY, f"{library.bom_ref}#{file}", sha256, "")
            for file, sha256 in native
        ]
        packages[name] = library
        lines = metadata.get_all("Requires-Dist", [])
        wanted[name] = [package_key(re.split(r"[^A-Za-z0-9._-]", one)[0]) for one in lines]
        bom.register_dependency(library, inside)
        parts += [library, *inside]
    for name, library in packages.items():
        bom.register_dependency(library, [packages[one] for one in wanted[name] if one in packages])
    others = [
        component(
            entry.name,
            ComponentType.MACHINE_LEARNING_MODEL,
            f"model:{entry.name}",
            entry.weights.sha256,
            entry.licence,
            told={"weights": entry.weights.name},
        )
        for entry in models
    ]
    if interpreter:
        name = interpreter.path.rpartition("/")[2]
        others.append(
            component(name, ComponentType.APPLICATION, f"file:{interpreter.path}", interpreter.sha256, "PSF-2.0")
        )
    bom.components.update([*parts, *others])
    bom.register_dependency(program, [*(packages[one] for one in ("local-rag",) if one in packages), *others])
    document: dict[str, Any] = json.loads(JsonV1Dot6(bom).output_as_string())
    # Time stamp and random serial number would change the bytes for the same input.
    document["metadata"].pop("timestamp", None)
    document.pop("serialNumber", None)
    content = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(_NAMESPACE, content)}"
    return json.dumps(document, indent=1, sort_keys=True).encode()


def _native(wheel: zipfile.ZipFile) -> Iterator[tuple[str, str]]:
    """Yield path and SHA-256 of the shared libraries in a wheel that are no modules of Python."""
    for name in wheel.namelist():
        last = name.rpartition("/")[2]
        if re.fullmatch(r"lib.+\.(so|dylib)(\.[0-9.]+)?", last) and not re.search(r"\.(cpython|abi3)", last):
            yield name, hashlib.sha256(wheel.read(name)).hexdigest()


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


def licences_of_wheel(name: str, path: Path) -> Texts:
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
        is_named = inside in named or inside.removeprefix("licenses/") in named or inside.startswith("licenses/")
        if (is_named or _is_licence(info.filename)) and not info.is_dir() and info.file_size <= _LARGEST:
            yield info.filename


def licences_of_model(entry: ModelEntry, folder: Path) -> Texts:
    """Return the licences and notices in a model's folder, or the standard text; raise BundleError if none."""
    files = (path for path in sorted(folder.glob("*")) if path.is_file() and _is_licence(path.name))
    found = [(path.name, path.read_bytes()) for path in files]
    own = [(name, text) for name, text in found if not name.lower().startswith("model_card")]
    return found if own else found + _by_expression(entry.name, entry.licence, folder)


def _is_licence(path: str) -> bool:
    name = path.rpartition("/")[2]
    return Path(name).suffix.lower() in _TEXT and _NAMES.fullmatch(name) is not None


def licences_of_interpreter(path: Path) -> Texts:
    """Return the licences in an archive of an interpreter, but for those of packages; raise BundleError if none."""
    with tarfile.open(path) as packed:
        found = [
            (member.name, file.read())
            for member in packed
            if member.isfile() and "site-packages" not in member.name and _is_licence(member.name)
            if (file := packed.extractfile(member))
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
