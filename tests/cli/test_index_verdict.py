"""`index` lists what a person must look at first, and its last line says whether everything is fine."""

from pathlib import Path

from local_rag.cli.index import _as_text
from local_rag.document_records import Note, Skipped
from local_rag.indexing.indexer import IndexReport
from local_rag.settings import Settings


def lines(report: IndexReport) -> list[str]:
    return _as_text(report, Settings()).split("\n")


def test_everything_is_fine_although_some_files_are_no_documents() -> None:
    report = IndexReport(skipped=[Skipped(Path("/a/song.mp3"), "audio or video, not a document")], published=True)
    report.documents, report.chunks = 1, 2
    report.notes = [Note(Path("/a/b.docx"), "1 chart is left out")]
    said = lines(report)
    assert said[-1] == 'Everything is fine: 1 document, 2 chunks, 0 s. Next: local-rag ask "your question"'
    assert said.index("Read, with a remark (1):") < said.index("Nothing to read in (1):")


def test_not_everything_is_fine_where_nothing_was_found_to_read() -> None:
    song, locked = (
        Skipped(Path("/a/song.mp3"), "audio or video, not a document"),
        Skipped(Path("/a/b.pdf"), "encrypted"),
    )
    assert lines(IndexReport(skipped=[song]))[-1] == "Nothing was found to read; the library holds no documents, 0 s."
    said = lines(IndexReport(skipped=[locked], to_look_at=1))[-1]
    assert said == "Please look at: 1 file that is not read; the library holds no documents, 0 s."


def test_what_must_be_looked_at_comes_first_and_is_counted_at_the_end() -> None:
    locked, empty = Skipped(Path("/a/locked.pdf"), "encrypted PDF"), Skipped(Path("/a/b.txt"), "empty")
    report = IndexReport(skipped=[locked, empty], to_look_at=1, waiting_for_ocr=2, unreachable=[Path("/gone")])
    report.published = True
    report.documents, report.chunks, report.seconds = 3, 9, 4.2
    report.notes = [Note(Path("/a/b.docx"), "1 chart is left out")]
    said = lines(report)
    assert said[-1] == (
        "Please look at: 1 file that is not read, 2 pages that wait for OCR, 1 folder that is not reachable. "
        'Everything else is fine: 3 documents, 9 chunks, 4 s. Next: local-rag ask "your question"'
    )
    places = [next(at for at, line in enumerate(said) if part in line) for part in ("locked.pdf", "b.docx", "b.txt")]
    assert places == sorted(places)


def test_long_lists_are_cut() -> None:
    report = IndexReport(skipped=[Skipped(Path(f"/a/{n}.gif"), "image, not a document") for n in range(30)])
    said = lines(report)
    assert "Nothing to read in (30):" in said
    assert "  and 10 more; `--json` lists all" in said


def test_a_run_without_changes_lists_only_what_a_person_must_look_at() -> None:
    locked, song = Skipped(Path("/a/locked.pdf"), "encrypted PDF"), Skipped(Path("/a/song.mp3"), "audio or video")
    text = "\n".join(lines(IndexReport(skipped=[locked, song], to_look_at=1, documents=1)))
    assert "locked.pdf" in text
    assert "song.mp3" not in text
    assert "The index is up to date." in text


def test_a_scan_is_counted_once() -> None:
    report = IndexReport(skipped=[Skipped(Path("/a/scan.pdf"), "no text layer", waiting=2)], to_look_at=1)
    report.waiting_for_ocr, report.documents = 2, 1
    assert lines(report)[-1].startswith("Please look at: 2 pages that wait for OCR. Everything else")
