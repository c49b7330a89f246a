"""Calendars: each entry begins with its name, wherever a program has written that."""

from pathlib import Path

import pytest

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


@pytest.mark.parametrize(
    ("start", "end", "says"),
    [
        ("DTSTART:20240503", "DTEND:20240503", False),
        ("DTSTART;VALUE=DATE:20240503", "DTEND;VALUE=DATE:20240505", True),
        ("DTSTART:20240503T100000Z", "DTEND:20240503T100000Z", False),
        ("DTSTART;TZID=Europe/Oslo:20240503T100000", "DTEND;TZID=Europe/Oslo:20240503T093000", False),
        ("DTSTART:20240503T100000", "DTEND;VALUE=DATE:20240503", False),
        ("DTSTART;VALUE=DATE:20240503", "DTEND:20240503T100000", True),
        ("DTSTART;TZID=Asia/Tokyo:20240503T100000", "DTEND;TZID=America/New_York:20240503T060000", True),
    ],
)
def test_an_end_that_is_not_after_the_start_is_not_said(start: str, end: str, says: bool) -> None:
    for lines in ((start, end), (end, start)):
        text = calendar("SUMMARY:Watch\n" + "".join(f"{line}\n" for line in lines)).text
        assert "Start: 2024-05-03" in text
        assert ("End: " in text) is says
