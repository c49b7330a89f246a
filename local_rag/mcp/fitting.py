"""Keep what a tool gives within so many tokens."""

from collections.abc import Callable, Sequence

from pydantic import BaseModel

from local_rag.mcp.shapes import Dense, FoundPassage, SearchResults
from local_rag.mcp.tokens import count_tokens, cut

MAX_SEARCH, MAX_FETCH = 2500, 8000  # tokens of the JSON that is given
_NEAR = 200  # characters, within which a text is cut where a word ends


def as_text(result: BaseModel) -> str:
    """Write a result as the JSON that the model at the other end reads."""
    return result.model_dump_json(by_alias=True)


def cost(result: BaseModel) -> int:
    """Return the tokens of a result."""
    return count_tokens(as_text(result))


def fit_text(text: str, within: Callable[[str], BaseModel], most: int) -> str:
    """Return as much of the beginning of a text as a result can hold; at least a character of it."""
    room = most
    while True:
        part = cut(text, room)
        if len(part) < len(text):
            ends = max(part.rfind(" "), part.rfind("\n")) + 1
            part = part[:ends] if ends > max(0, len(part) - _NEAR) else part
        if len(part) <= 1 or (used := cost(within(part))) <= most:
            return part or text[:1]
        room = min(room - 1, room * most // used)


def fit_passages(found: Sequence[FoundPassage], dense: Dense, note: str | None) -> SearchResults:
    """Return as many of the best passages as there is room for; the first is cut where it alone is too long."""

    def results(kept: Sequence[FoundPassage]) -> SearchResults:
        return SearchResults(results=list(kept), dense=dense, left_out=len(found) - len(kept), note=note)

    kept = list[FoundPassage]()
    for passage in found:
        if cost(results([*kept, passage])) > MAX_SEARCH:
            break
        kept.append(passage)
    if found and not kept:

        def begun(text: str) -> SearchResults:
            return results([found[0].model_copy(update={"text": text, "cut": True})])

        shortened = begun(fit_text(found[0].text, begun, MAX_SEARCH))
        return shortened if cost(shortened) <= MAX_SEARCH else results([])
    return results(kept)
