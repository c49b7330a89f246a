"""Answer a question that counts or lists with what code has found in all documents; no model takes part."""

from local_rag.display import found_headline, times
from local_rag.records import Answer, Citation, Found


def answer_of(found: Found, seconds: float) -> Answer:
    """Return the number and the list as an answer that cites the best line of each document."""
    lines = [f"{found_headline(found)}{':' if found.places else '.'}"]
    for number, place in enumerate(found.places, start=1):
        often = times(place.occurrences)
        said = f"{place.passage.title}{f' ({often})' if often else ''}"
        lines.append(f"- {said}: \u201c{' '.join(place.passage.text.split())}\u201d [{number}]")
    passages = tuple(place.passage for place in found.places)
    return Answer(
        found.question,
        "\n".join([*lines, *found.notes]),
        "answered",
        citations=tuple(Citation(number, passage) for number, passage in enumerate(passages, start=1)),
        passages=passages,
        seconds=seconds,
        found=found,
    )
