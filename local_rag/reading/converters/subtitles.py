"""Convert subtitles and transcripts (.vtt, .srt): what was said, in paragraphs with their time."""

import re
from collections.abc import Iterator, Sequence
from html import unescape

from local_rag.reading.converters.converted import Converted
from local_rag.reading.decode import clean, decode_with_notes
from local_rag.text.words import join_lines

_TIMES = re.compile(r"(?:(\d+):)?(\d\d):(\d\d)[.,]\d{1,3}[ \t]*-->[ \t]*(?:(\d+):)?(\d\d):(\d\d)[.,]\d{1,3}.*")
_SPEAKER = re.compile(r"<v(?:\.[^ \t<>]*+)?[ \t]++([^<>]*+)>", re.IGNORECASE)
_MARKUP = re.compile(r"</?[a-z][^>\n]{0,200}>|<\d[\d:.]*>|\{\\[^}\n]{0,80}\}", re.IGNORECASE)
_PAUSE, _LONGEST = 4, 60  # seconds: a pause begins a paragraph, and so does the time that the last one has taken
_ROLLING = 1  # seconds between cues that roll
_NOT_SPOKEN = ("NOTE", "STYLE", "REGION", "WEBVTT")


def convert_subtitles(data: bytes) -> Converted:
    """Join cues; a paragraph begins with its time, and with the name of its speaker if it is known."""
    text, notes = decode_with_notes(data)
    paragraphs: list[str] = []
    begun = ended = 0
    speaker = ""
    shown: list[str] = []  # the lines of the cue before
    for block in _blocks(clean(text).strip("\ufeff\n")):
        lines = block.strip("\n").split("\n")
        at = _place_of_times(lines)
        if at is None:
            if not lines[0].startswith(_NOT_SPOKEN) and any(map(str.isalpha, block)):
                paragraphs.append(block)  # not in the format, but perhaps text
            elif lines[0].startswith("NOTE") and (remark := block.removeprefix("NOTE").strip()):
                paragraphs.append(remark)
            continue
        found = _TIMES.fullmatch(lines[at].strip())
        assert found is not None
        hour, minute, second, *until = (int(number or 0) for number in found.groups())
        start, end = 3600 * hour + 60 * minute + second, 3600 * until[0] + 60 * until[1] + until[2]
        spoken = "\n".join(lines[at + 1 :])
        named = next(iter(_SPEAKER.findall(spoken)), "").strip()
        plain = unescape(_MARKUP.sub("", _SPEAKER.sub("", spoken))).split("\n")
        now = [line for line in (" ".join(one.split()) for one in plain) if line]
        said = join_lines(_new_lines(shown, now) if start - ended <= _ROLLING else now)
        shown = now or shown
        if not said:
            ended = end
            continue
        if not paragraphs or named != speaker or start - ended >= _PAUSE or start - begun >= _LONGEST:
            begun = start
            name = f"{named}: " if named else ""
            paragraphs.append(f"[{start // 3600:02}:{start // 60 % 60:02}:{start % 60:02}] {name}{said}")
        else:
            paragraphs[-1] += f" {said}"
        speaker, ended = named, end
    return Converted(None, "\n\n".join(paragraphs), "text", notes=notes)


def _blocks(text: str) -> Iterator[str]:
    """Yield the parts between blank lines; a blank line below a time belongs to its cue."""
    waiting = ""
    for block in re.split(r"\n[ \t]*\n", text):
        has_times = _place_of_times(block.strip("\n").split("\n")) is not None
        if waiting and not has_times and not block.startswith(_NOT_SPOKEN):
            yield f"{waiting}\n{block}"
            waiting = ""
            continue
        if waiting:
            yield waiting
        waiting = ""
        if has_times and _TIMES.fullmatch(block.rstrip().rpartition("\n")[2].strip()):
            waiting = block.rstrip()
        else:
            yield block
    if waiting:
        yield waiting


def _place_of_times(lines: Sequence[str]) -> int | None:
    return next((number for number, line in enumerate(lines[:2]) if _TIMES.fullmatch(line.strip())), None)


def _new_lines(shown: Sequence[str], now: Sequence[str]) -> Sequence[str]:
    """Return what a cue adds to the one before: captions that roll repeat its last lines, or go on with them."""
    for count in range(min(len(shown), len(now)), 0, -1):
        if list(shown[-count:]) == list(now[:count]):
            return now[count:]
    if shown and now and now[0].startswith(f"{shown[-1]} "):
        return [now[0].removeprefix(f"{shown[-1]} "), *now[1:]]
    return now
