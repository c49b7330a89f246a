"""Write an answer with its sources below it, in Markdown that every client shows."""

import re

from local_rag.display import Name, found_headline, one_line, printable, times
from local_rag.records import Answer, Found, Passage

# Characters that Markdown or HTML could take for markup in a title or a path.
_MARKS = re.compile(r"([\\`*_{}\[\]()<>#+!|~&-])")
_LONGEST = 300


def answer_as_markdown(answer: Answer, name: Name = str) -> str:
    """Return an answer, and below it its sources or the closest passages; quoted text cannot act as Markdown.

    Places are named by `name`.
    """
    text = answer.text
    if answer.outcome == "quoted":
        quoted = [_escaped(quote.text) for quote in answer.quotes]
        lines = [
            "\n".join(f"> {line}  " for line in f"{text} [{quote.citation}]".splitlines())
            for quote, text in zip(answer.quotes, quoted, strict=True)
        ]
        text = "\n\n".join([answer.text.partition("\n")[0], *lines, *_versions(answer)])
    elif answer.found:
        text = _listed(answer.found)
    return text + _sources(answer, name)


def _versions(answer: Answer) -> list[str]:
    """Return what the versions of a quoted document say; their lines cannot act as Markdown."""
    lines = list[str]()
    for one in answer.versions:
        said = f"\u201c{_escaped(one_line(one.text))}\u201d [{one.citation}]"
        lines.append(f"- {one.date} ({_plain(one.path.rpartition('/')[2])}): {said}")
    return ["\n".join(["The versions of this document differ, newest first:", "", *lines])] if lines else []


def _listed(found: Found) -> str:
    """Return what was found in all documents; lines of documents cannot act as Markdown."""
    lines = [f"{_escaped(found_headline(found))}{':' if found.places else '.'}", ""]
    for number, place in enumerate(found.places, start=1):
        often = times(place.occurrences)
        said = f"{_plain(place.passage.title)}{f' ({often})' if often else ''}"
        lines.append(f"- {said}: \u201c{_escaped(one_line(place.passage.text))}\u201d [{number}]")
    return "\n".join([*lines, *(f"\n{_escaped(note)}" for note in found.notes)])


def _sources(answer: Answer, name: Name) -> str:
    if answer.citations:
        lines = [f"- [{citation.number}] {_location(citation.passage, name)}" for citation in answer.citations]
        return "\n\nSources:\n\n" + "\n".join(lines)
    if answer.closest:
        return "\n\nClosest passages:\n\n" + "\n".join(f"- {_location(one, name)}" for one in answer.closest)
    return ""


def _location(passage: Passage, name: Name) -> str:
    return f"{_plain(passage.title)}, {_plain(name(passage.location))}"


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", printable(text))


def _plain(text: str) -> str:
    return _MARKS.sub(r"\\\1", one_line(text)[:_LONGEST])
