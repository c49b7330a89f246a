"""A library of three documents."""

from pathlib import Path

import pytest

from tests.support import served


@pytest.fixture
def folder(documents: Path) -> Path:
    """The folder of a library of the three documents."""
    library = documents.parent / "lib"
    served.index(documents, library)
    return library
