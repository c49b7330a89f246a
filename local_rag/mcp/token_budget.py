"""Keep the results of tools within a number of tokens, counted without any model's tokenizer."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

from pydantic import BaseModel

from local_rag.mcp.tool_results import Dense, FoundPassage, SearchResults

Record = TypeVar("Record", bound=BaseModel)
Results = TypeVar("Results", bound=BaseModel)

MAX_SEARCH, MAX_FETCH = 2500, 8000  # tokens of the JSON that is given
_NEAR = 200  # characters before the limit, in which a text is cut at the end of a word
# A run of letters, a run of blanks, or any other character. A digit may be a token of its own.
_PIECE = re.compile(r"[A-Za-z]+|[ \t]+|[^A-Za-z \t]")
_LETTERS = 4  # per token, in a word that no vocabulary holds


def as_text(result: BaseModel) -> str:
    """Return a result as the JSON that the client's model reads."""
    return result.model_dump_json(by_alias=True)


def cost(result: BaseModel) -> int:
    """Return the tokens of a result."""
    return count_tokens(as_text(result))


def fit_text(text: str, within: Callable[[str], BaseModel], most: int) -> str:
    """Return the beginning of a text that fits into a result, at least one character."""
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
    """Return as many of the best passages as fit; the first is cut if it does not fit alone."""

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


def fit_list(found: Results, name: str) -> Results:
    """Return as many of the records in the list of this name as fit, and how many are `left_out`."""
    records: Sequence[BaseModel] = getattr(found, name)
    used, kept = cost(found.model_copy(update={name: [], "left_out": len(records)})), 0
    for record in records:
        used += cost(record) + 1
        if used > MAX_SEARCH:
            break
        kept += 1
    return found.model_copy(update={name: list(records[:kept]), "left_out": len(records) - kept})


def fit_page(records: Sequence[Record], page: Callable[[Sequence[Record]], Results]) -> Results:
    """Return a page with as many of the records as fit, at least the first."""
    for shown in range(len(records), 1, -1):
        if cost(whole := page(records[:shown])) <= MAX_SEARCH:
            return whole
    return page(records[:1])


def count_tokens(text: str) -> int:
    """Return about how many tokens a text has; a language model's tokenizer makes no more of usual text."""
    return sum(_tokens(piece) for piece in _PIECE.findall(text))


def _tokens(piece: str) -> int:
    if piece == " ":
        return 0  # it is part of the next word
    if piece[0].isascii():
        return -(-len(piece) // _LETTERS)
    return max(1, len(piece.encode("utf-8", "replace")) - 1)


def cut(text: str, tokens: int) -> str:
    """Return the beginning of a text, with at most this number of tokens."""
    used = 0
    for piece in _PIECE.finditer(text):
        used += _tokens(piece[0])
        if used > tokens:
            return text[: piece.start()]
    return text
