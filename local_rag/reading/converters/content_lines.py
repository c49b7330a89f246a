"""Read the lines of calendars and contacts: a name, parameters and a value, perhaps folded (RFC 5545, 3.1)."""

import quopri
import re
from collections.abc import Iterator

_LINE = re.compile(r'(?:[\w-]{1,60}\.)?([A-Za-z-]{1,60})((?:;[^:;"]*(?:"[^"]*"[^:;"]*)*)*):(.*)', re.DOTALL)
_PARAMETER = re.compile(r';(?:([A-Za-z-]{1,60})=)?(?:"([^"]*)"|([^;:"]*))')
_FOLDED = re.compile(r"\n[ \t]")
_QUOTED = "QUOTED-PRINTABLE"
_ESCAPE = re.compile(r"\\([nN,;:\\])")

ContentLine = tuple[str, dict[str, str], str]
"""The name of a line in capitals, its parameters, and its value."""


def content_lines(text: str) -> Iterator[ContentLine]:
    """Yield the lines of a text; what is none is left out.

    A parameter without a name, as in `TEL;WORK:`, is a type (vCard 2.1). Several of one name are joined by commas.
    """
    lines = iter(_FOLDED.sub("", text).split("\n"))
    for line in lines:
        while line.endswith("=") and _QUOTED in line.upper():  # goes on in the next line (RFC 2045, 6.7)
            line = line.removesuffix("=") + next(lines, "")  # noqa: PLW2901
        if found := _LINE.fullmatch(line.strip()):
            parameters = dict[str, str]()
            for one in _PARAMETER.finditer(found[2]):
                name, value = (one[1] or "TYPE").upper(), one[2] or one[3]
                parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
            value = found[3]
            if _QUOTED in (parameters.get("ENCODING") or parameters.get("TYPE", "")).upper():
                value = _decoded(quopri.decodestring(value.encode()), parameters.get("CHARSET") or "utf-8")
            yield found[1].upper(), parameters, value


def unescaped(value: str) -> str:
    """Return a text without the escapes of these formats."""
    return _ESCAPE.sub(lambda one: "\n" if one[1] in "nN" else one[1], value)


def _decoded(data: bytes, charset: str) -> str:
    try:
        return data.decode(charset, errors="replace")
    except (LookupError, UnicodeError):  # no such encoding
        return data.decode(errors="replace")
