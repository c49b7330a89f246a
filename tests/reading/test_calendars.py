"""Calendars: each entry begins with its name, wherever a program has written that."""

from pathlib import Path

from local_rag.answering.units import split_units
from local_rag.document_records import Document
from local_rag.reading.read import parse
from tests.fakes import passage

OPEN_DAY = "DTSTART:20260613T110000Z\nSUMMARY:Open day\nLOCATION:Garden\n"
FIRE_DRILL = "DTSTART:20260528T170000Z\nDTEND:20260528T190000Z\nSUMMARY:Fire drill\nDESCRIPTION:Leave. Do not run.\n"


def calendar(*entries: str) -> Document:
    parts = "".join(f"BEGIN:VEVENT\n{entry}END:VEVENT\n" for entry in entries)
    return parse(Path("events.ics"), f"BEGIN:VCALENDAR\n{parts}END:VCALENDAR\n".encode())


def test_each_entry_is_a_section_that_begins_with_its_name() -> None:
    document = calendar(OPEN_DAY, FIRE_DRILL, "DTSTART:20260701\n")
    assert document.text.split("\n\n") == [
        "# Open day",
        "Event: Open day\nStart: 2026-06-13 11:00 UTC\nLocation: Garden",
        "# Fire drill",
        "Event: Fire drill\nStart: 2026-05-28 17:00 UTC\nEnd: 2026-05-28 19:00 UTC\nDescription: Leave. Do not run.",
        "# Start: 2026-07-01",
        "Start: 2026-07-01",
    ]
    assert [one.title for one in document.headings] == ["Open day", "Fire drill", "Start: 2026-07-01"]
    assert document.title == "Events"
    assert calendar(FIRE_DRILL).title == "Fire drill"


def test_each_unit_says_of_which_entry_it_is() -> None:
    [opening, drill, rule] = split_units([passage(calendar(OPEN_DAY, FIRE_DRILL).text)])
    assert (opening.heading, opening.text) == (
        "Open day",
        "Event: Open day\nStart: 2026-06-13 11:00 UTC\nLocation: Garden",
    )
    assert (
        drill.text == "Event: Fire drill\nStart: 2026-05-28 17:00 UTC\nEnd: 2026-05-28 19:00 UTC\nDescription: Leave."
    )
    assert (rule.heading, rule.text) == ("Fire drill", "Do not run.")
