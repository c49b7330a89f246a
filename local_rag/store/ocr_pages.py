"""The folder in which the pages are kept that OCR has read: for each file a folder named by its SHA-256."""

import shutil
from collections.abc import Collection
from pathlib import Path


def ocr_folder(library: Path) -> Path:
    """Return the folder of a library; it may not exist."""
    return library / "ocr"


def prune_ocr_pages(library: Path, kept: Collection[str]) -> None:
    """Delete the pages of files whose SHA-256 is not in `kept`."""
    folder = ocr_folder(library)
    for pages in folder.iterdir() if folder.is_dir() else ():
        if pages.name not in kept:
            shutil.rmtree(pages)
