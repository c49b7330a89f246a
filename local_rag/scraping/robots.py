"""Parse robots.txt as in RFC 9309."""

import re

from protego import Protego

PRODUCT = "local-rag"
MAX_BYTES = 1_000_000  # the rest is ignored; the RFC requires at least 500 KiB
_AGENT = re.compile(r"^\s*user[-\s]*agent\b[\s:]*(\*(?=[\s#]|$)|[\w-]*).*", re.IGNORECASE)


def parse_robots(body: bytes) -> Protego:
    """Parse the rules for this program and for all robots."""
    lines = body.decode("utf-8-sig", errors="replace").splitlines()
    return Protego.parse("\n".join(_AGENT.sub(_rename_others, line) for line in lines))


def _rename_others(line: re.Match[str]) -> str:
    """Give all other robots the same name.

    Protego stores a copy of the rules for each robot of a group, so a hostile file could fill the memory. It would also
    apply rules for "local" to this program, and ignore those for "local-rag/2.0".
    """
    name = line[1].lower()
    return f"User-agent: {name if name in ('*', PRODUCT) else 'other'}"
