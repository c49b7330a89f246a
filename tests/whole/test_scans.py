"""Scanned documents in a library: told while OCR is missing, read once it is installed, cited as read by OCR."""

import json
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from local_rag import Library
from local_rag.display import passage_as_dict
from local_rag.store.housekeeping import ocr_folder, prune_ocr_pages
from tests.fakes import QUICK, InstantWorkers
from tests.reading.test_ocr import SCANNED, read_as, scan


class Recognizing(InstantWorkers):
    """Workers whose OCR reads the same words of every page."""

    @staticmethod
    def recognize(_page: object, _number: int) -> object:  # type: ignore[override]
        return read_as(SCANNED, 0.87)


WITHOUT = replace(QUICK, make_workers=Recognizing)
WITH = replace(WITHOUT, ocr_engine=lambda: "fake-1")


def test_scans_wait_for_ocr_and_are_read_by_the_next_index(tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    (documents / "scan.pdf").write_bytes(scan(SCANNED, SCANNED))
    (documents / "mixed.pdf").write_bytes(scan("=Words of the text layer", SCANNED))
    (documents / "plain.txt").write_text("Nothing is scanned here.")
    with Library(tmp_path / "library", parts=WITHOUT, profile="tiny", context="headings") as library:
        report = library.index([documents])
        assert report.waiting_for_ocr == 3
        notes = {note.path.name: note.note for note in report.notes}
        assert notes["mixed.pdf"].startswith("1 of 2 pages waits for OCR")
        (skipped,) = report.skipped
        assert (skipped.path.name, skipped.waiting) == ("scan.pdf", 2)
        assert "2 of 2 pages wait for OCR" in skipped.reason
        assert {note.path.name for note in library.status().notes} == {"mixed.pdf", "scan.pdf"}
        again = library.index([documents])
        assert (again.changed, again.added, again.unchanged, again.waiting_for_ocr) == (0, 0, 2, 3)
    with Library(tmp_path / "library", parts=WITH, profile="tiny", context="headings") as library:
        report = library.index([documents])
        assert (report.changed, report.added, report.unchanged, report.waiting_for_ocr) == (1, 1, 1, 0)
        assert report.notes == []
        assert library.status().notes == ()
        found = {Path(one.path).name: one for one in library.search("boat to Alke", rerank=False) if one.page}
        assert found["scan.pdf"].location.endswith(", read by OCR, 87 % sure")
        assert passage_as_dict(found["scan.pdf"])["ocr"] is True
        plain = next(one for one in library.search("text layer", rerank=False) if one.page == 1 and "layer" in one.text)
        assert passage_as_dict(plain)["ocr"] is False
        assert library.index([documents]).unchanged == 3


def test_kept_pages_of_a_document_go_with_it(tmp_path: Path) -> None:
    for name in ("kept", "gone"):
        (ocr_folder(tmp_path) / name).mkdir(parents=True)
        (ocr_folder(tmp_path) / name / "rapidocr-0.json").write_text(json.dumps({}))
    prune_ocr_pages(tmp_path, {"kept"})
    assert [folder.name for folder in ocr_folder(tmp_path).iterdir()] == ["kept"]


def test_erasing_a_document_deletes_the_pages_that_ocr_has_read(tmp_path: Path) -> None:
    documents = tmp_path / "documents"
    documents.mkdir()
    for name in ("scan.pdf", "other.pdf"):
        (documents / name).write_bytes(scan(SCANNED if name == "scan.pdf" else "Another page."))
    with Library(tmp_path / "library", parts=WITH, profile="tiny", context="headings") as library:
        library.index([documents])
        pages = ocr_folder(library.folder)
        for name in ("scan.pdf", "other.pdf"):
            (pages / sha256((documents / name).read_bytes()).hexdigest()).mkdir(parents=True)
        library.remove([documents / "scan.pdf"], erase=True)
        assert [kept.name for kept in pages.iterdir()] == [sha256((documents / "other.pdf").read_bytes()).hexdigest()]
