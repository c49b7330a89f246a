"""List all components of a bundle as a CycloneDX 1.6 document, with what each of them depends on."""

import json
import re
import uuid
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from local_rag.bundle.archive import BundleError
from local_rag.bundle.licences import metadata_of, spdx_of
from local_rag.bundle.plan import Item
from local_rag.files import extra_command
from local_rag.models.registry import ModelEntry

_NAMESPACE = uuid.UUID("8a5f1f6e-7a0e-4c6b-9d0c-3f3b6e1f4a11")
_BUILT = ("llama-cpp-python", "local-rag")  # by the packer, so no index has these files


def write_sbom(
    version: str,
    commit: str,
    wheels: Mapping[str, Item],
    models: Iterable[ModelEntry],
    copies: Iterable[Item] = (),
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

    told = {"commit": commit} if commit else {}
    program = component(
        "local-rag", ComponentType.APPLICATION, "local-rag", "", "Apache-2.0", version=version, told=told
    )
    bom.metadata.component = program
    parts, packages, wanted = list[Any](), dict[str, Any](), dict[str, list[str]]()
    for name, item in wheels.items():
        assert isinstance(item.source, Path)
        with zipfile.ZipFile(item.source) as wheel:
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
        wanted[name] = [_normal(re.split(r"[^A-Za-z0-9._-]", one)[0]) for one in metadata.get_all("Requires-Dist", [])]
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
    others += [component(one.path, ComponentType.FILE, f"file:{one.path}", one.sha256, "") for one in copies]
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
    import hashlib

    for name in wheel.namelist():
        last = name.rpartition("/")[2]
        if re.fullmatch(r"lib.+\.(so|dylib)(\.[0-9.]+)?", last) and not re.search(r"\.(cpython|abi3)", last):
            yield name, hashlib.sha256(wheel.read(name)).hexdigest()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()
