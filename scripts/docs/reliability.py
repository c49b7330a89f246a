"""docs/reliability.md, from docs/measurements/reliability-*.json.

Each file has a title, lines (sentences with figures), perhaps a table (header and rows) and the raw figures.
"""

from scripts.docs.markdown import measured, prose

ORDER = ("crash", "soak", "inputs", "injection")
HEAD = """\
# Reliability

How we tried to make local-rag lose or leak something. Written by `scripts/write_docs.py` from
`measurements/reliability-*.json`; do not edit it."""


def reliability_page() -> str:
    """Return docs/reliability.md."""
    sections = [part for name in ORDER for part in _section(f"reliability-{name}.json")]
    return "\n\n".join([HEAD, *sections]) + "\n"


def _section(file: str) -> list[str]:
    found = measured(file)
    parts = [f"## {found['title']}", "\n".join(prose(line, "- ") for line in found["lines"])]
    if "table" in found:
        parts.append(f"[All figures](measurements/{file})")
    return parts
