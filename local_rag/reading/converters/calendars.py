"""Read the entries of a calendar or an invitation: what, when, where, who, how often, and whether it is cancelled."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from local_rag.reading.converters.content_lines import ContentLine, content_lines, unescaped
from local_rag.reading.converters.converted import Converted, Sections
from local_rag.reading.decode import decode_with_notes
from local_rag.text.dates import DAY_NAMES

_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d)?(Z?)")
_DURATION = re.compile(r"(-?)P(?:(\d{1,4})W)?(?:(\d{1,4})D)?(?:T(?:(\d{1,4})H)?(?:(\d{1,4})M)?(?:\d{1,4}S)?)?")
_ENTRIES = {"VEVENT", "VTODO", "VJOURNAL"}
_TIMES = {"DTSTART", "DTEND", "DUE", "RDATE", "EXDATE", "RECURRENCE-ID"}
_PEOPLE = {"ORGANIZER", "ATTENDEE"}
_NAMES = {name: name.capitalize() for name in ("STATUS", "DUE", "DURATION", "LOCATION", "DESCRIPTION", *_PEOPLE)}
_NAMES |= {"SUMMARY": "Event", "DTSTART": "Start", "DTEND": "End", "RRULE": "Repeats", "RDATE": "Also on"}
_NAMES |= {"EXDATE": "Not on", "RECURRENCE-ID": "Instead of the one on"}
_UNITS = {
    "YEARLY": "year", "MONTHLY": "month", "WEEKLY": "week", "DAILY": "day", "HOURLY": "hour", "MINUTELY": "minute",
}  # fmt: skip
_DAYS = {name[:2].upper(): name for name in DAY_NAMES}
_DAY = re.compile(r"([+-]?\d{1,2})?(MO|TU|WE|TH|FR|SA|SU)")
_PLACES = {"1": "first ", "2": "second ", "3": "third ", "4": "fourth ", "5": "fifth ", "-1": "last "}


def convert_calendar(data: bytes) -> Converted:
    """Convert a calendar (.ics): each entry is a section; a file without entries is text."""
    text, notes = decode_with_notes(data)
    sections = Sections()
    names = add_entries(sections, text)
    if not names:
        return Converted(None, text, "text", notes=notes)
    return sections.converted(names[0] if len(names) == 1 else None, notes=notes)


def add_entries(sections: Sections, text: str) -> list[str]:
    """Add the entries of a calendar or an invitation, each below its name, and return the names."""
    names = []
    for entry in _entries(text):
        names.append(" ".join(entry.partition("\n")[0].removeprefix("Event: ").split()))
        # The entry names itself once more, as a sentence of it may be quoted without its heading.
        sections.add_named(names[-1], entry)
    return names


def _entries(text: str) -> Iterator[str]:
    """Yield the entries; what describes time zones and alarms is none."""
    open_parts: list[tuple[str, list[ContentLine]]] = []
    is_cancelled = False
    for name, parameters, value in content_lines(text):
        if name == "BEGIN":
            open_parts.append((value.strip().upper(), []))
        elif name == "END" and open_parts:
            yield from _entry(*open_parts.pop(), is_cancelled=is_cancelled)
        elif name == "METHOD":
            is_cancelled = value.strip().upper() == "CANCEL"
        elif open_parts and open_parts[-1][0] in _ENTRIES:
            open_parts[-1][1].append((name, parameters, value))
    for kind, unended in open_parts:
        yield from _entry(kind, unended, is_cancelled=is_cancelled)


def _entry(kind: str, lines: list[ContentLine], *, is_cancelled: bool) -> Iterator[str]:
    if is_cancelled and not any(name == "STATUS" for name, _, _ in lines):
        lines.insert(1, ("STATUS", {}, "CANCELLED"))
    start = next((_moment(line) for line in lines if line[0] == "DTSTART"), None)
    lines = [line for line in lines if line[0] != "DTEND" or not _is_within(_moment(line), start)]
    named = [(_NAMES[name], _value(name, options, value)) for name, options, value in lines if name in _NAMES]
    # Programs write the name of an entry anywhere: it comes first, or it would stand beside the times of the next.
    named.sort(key=lambda one: one[0] != "Event")
    written = [f"{name}: {value.strip()}" for name, value in named if value.strip()]
    if kind in _ENTRIES and written:
        yield "\n".join(written)


def _value(name: str, parameters: dict[str, str], value: str) -> str:
    if name in _TIMES:
        day = _last_day(value) if name == "DTEND" else ""
        return day or ", ".join(_time(one, parameters.get("TZID", "")) for one in value.split(","))
    if name in _PEOPLE:
        address = re.sub(r"(?i)^mailto:", "", value.strip())
        called = parameters.get("CN", "").strip()
        return f"{called} <{address}>" if called and called != address else address
    if name == "RRULE":
        return _rule(value)
    if name == "STATUS":
        return value.strip().lower().replace("-", " ")
    if name == "DURATION":
        return _duration(value)
    return unescaped(value)


def _moment(line: ContentLine) -> tuple[str, str | None] | None:
    """Return when a time is, as digits that can be compared, and in which zone, which a whole day does not have."""
    _, parameters, value = line
    found = _TIME.fullmatch(value.strip())
    if not found:
        return None
    *digits, utc = found.groups("")
    return "".join(digits).ljust(12, "0"), ("UTC" if utc else parameters.get("TZID", "")) if digits[-1] else None


def _is_within(end: tuple[str, str | None] | None, start: tuple[str, str | None] | None) -> bool:
    """Return whether an end is not after its start, as far as their zones can be compared: such an end says nothing."""
    if end is None or start is None:
        return False
    return end[0] <= start[0] and (None in {end[1], start[1]} or end[1] == start[1])


def _time(value: str, zone: str) -> str:
    """Write a time as `2024-05-03 10:00 UTC` or `2024-05-03 10:00 (Europe/Oslo)`; other values stay as they are."""
    begin, is_period, end = value.strip().partition("/")
    found = _TIME.fullmatch(begin)
    if not found:
        return value.strip()
    if is_period:
        until = f", {_duration(end)}" if end[:1] == "P" else f" to {_time(end, zone)}"
        return f"{_time(begin, zone)}{until}"
    year, month, day, hour, minute, utc = found.groups()
    if not hour:
        return f"{year}-{month}-{day}"
    place = " UTC" if utc else f" ({zone.lstrip('/')})" if zone else ""
    return f"{year}-{month}-{day} {hour}:{minute}{place}"


def _last_day(value: str) -> str:
    """Return the last day of an entry that takes whole days: its end is the day after (RFC 5545, 3.6.1)."""
    try:
        return str(datetime.strptime(value.strip(), "%Y%m%d").date() - timedelta(days=1))
    except (ValueError, OverflowError):
        return ""


def _duration(value: str) -> str:
    found = _DURATION.fullmatch(value.strip())
    if not found or found[1]:
        return value.strip()
    parts = zip(found.groups()[1:], ("week", "day", "hour", "minute"), strict=True)
    shown = ", ".join(f"{number} {unit}{'' if int(number) == 1 else 's'}" for number, unit in parts if number)
    return shown or value.strip()


def _rule(value: str) -> str:
    """Write how often an entry repeats: `every 2 weeks on Monday, 4 times`."""
    parts = dict(part.strip().upper().split("=", 1) for part in value.split(";") if "=" in part)
    unit = _UNITS.get(parts.pop("FREQ", ""))
    if unit is None:
        return value.strip()
    step = parts.pop("INTERVAL", "1")
    written = f"every {unit}" if step == "1" else f"every {step} {unit}s"
    if days := parts.pop("BYDAY", ""):
        written += f" on {', '.join(map(_day, days.split(',')))}"
    if days := parts.pop("BYMONTHDAY", ""):
        written += f" on day {days.replace(',', ', ')}"
    if months := parts.pop("BYMONTH", ""):
        written += f" in month {months.replace(',', ', ')}"
    count, until = parts.pop("COUNT", ""), parts.pop("UNTIL", "")
    parts.pop("WKST", None)
    written += "".join(f", {name.lower()} {other}" for name, other in parts.items())
    written += f", {count} {'time' if count == '1' else 'times'}" if count else ""
    return f"{written}, until {_time(until, '')}" if until else written


def _day(day: str) -> str:
    found = _DAY.fullmatch(day.strip())
    if not found:
        return day.strip()
    place = (found[1] or "").lstrip("+")
    return f"{_PLACES.get(place, f'{place}. ' if place else '')}{_DAYS[found[2]]}"
