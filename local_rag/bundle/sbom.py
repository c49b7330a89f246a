"""List the packages and models of a bundle as a CycloneDX 1.6 document."""

import json
import re
import uuid
import zipfile
from collections.abc import Iterable, Mapping
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

from local_rag.bundle.archive import BundleError
from local_rag.bundle.plan import Item
from local_rag.models.registry import ModelEntry

_NAMESPACE = uuid.UUID("8a5f1f6e-7a0e-4c6b-9d0c-3f3b6e1f4a11")


def write_sbom(version: str, wheels: Mapping[str, Item], models: Iterable[ModelEntry]) -> bytes:
    """Return the document; the same packages and models give the same bytes."""
    try:
        from cyclonedx.contrib.license.factories import LicenseFactory
        from cyclonedx.model import HashAlgorithm, HashType, Property
        from cyclonedx.model.bom import Bom
        from cyclonedx.model.component import Component, ComponentType
        from cyclonedx.output.json import JsonV1Dot6
        from packageurl import PackageURL
    except ImportError:
        text = "Packing needs the packages of local-rag[bundle]"
        raise BundleError("platform", f"{text}; run `pip install 'local-rag[bundle]'`.") from None
    licences, bom = LicenseFactory(), Bom()
    program = Component(name="local-rag", version=version, type=ComponentType.APPLICATION, bom_ref="local-rag")
    bom.metadata.component = program
    packages, parts = dict[str, Component](), list[Component]()
    for name, item in wheels.items():
        metadata = _metadata(item)
        found = Component(
            name=name,
            version=metadata["version"],
            type=ComponentType.LIBRARY,
            bom_ref=f"pkg:pypi/{name}@{metadata['version']}",
            purl=PackageURL("pypi", None, name, metadata["version"]),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=item.sha256)],
            licenses=[licences.make_from_string(metadata["licence"])] if metadata["licence"] else [],
            properties=[Property(name="local-rag:member", value=item.path)],
        )
        packages[name] = found
        parts.append(found)
    for entry in models:
        parts += [
            Component(
                name=entry.name,
                type=ComponentType.MACHINE_LEARNING_MODEL,
                bom_ref=f"model:{entry.name}",
                hashes=[HashType(alg=HashAlgorithm.SHA_256, content=entry.weights.sha256)],
                licenses=[licences.make_from_string(entry.licence)],
                properties=[Property(name="local-rag:weights", value=entry.weights.name)],
            )
        ]
    bom.components.update(parts)
    bom.register_dependency(program, parts)
    document: dict[str, Any] = json.loads(JsonV1Dot6(bom).output_as_string())
    # Time stamp and random serial number would change the bytes for the same input.
    document["metadata"].pop("timestamp", None)
    document.pop("serialNumber", None)
    content = json.dumps(document, sort_keys=True)
    document["serialNumber"] = f"urn:uuid:{uuid.uuid5(_NAMESPACE, content)}"
    return json.dumps(document, indent=1, sort_keys=True).encode()


def _metadata(item: Item) -> dict[str, str]:
    """Read version and licence from a wheel."""
    assert isinstance(item.source, Path)
    with zipfile.ZipFile(item.source) as wheel:
        name = next(one for one in wheel.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", one))
        headers = HeaderParser().parsestr(wheel.read(name).decode("utf-8", "replace"))
    classifiers = [
        one.rpartition(" :: ")[2] for one in headers.get_all("Classifier", []) if one.startswith("License ::")
    ]
    licence = headers["License-Expression"] or headers["License"] or ""
    if "\n" in licence or not licence.strip():  # some packages put the whole text there
        licence = (classifiers or [""])[0]
    return {"version": headers["Version"], "licence": licence.strip()}
