"""Write a question and a view as the tokens that the planner reads, and remember where each column stands."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from local_rag.tables.mentions import ROWS, Mention
from local_rag.tables.relation_set import RelationSet
from local_rag.tables.views import View, ViewColumn, values_of

CLS, SEP = 101, 102
# Marks that no text can hold: they are tokens of their own, which no tokenizer makes of words.
_TABLE, _OF_KIND = 1, {"number": 2, "date": 3, "text": 4}
_OF_MENTION = {"value": 5, "choice": 6, "number": 7, "time": 8, "limit": 9}
_LENGTH, _QUESTION, _TITLE, _NAME, _UNIT, _SAMPLE, _WORDS = 384, 96, 12, 10, 3, 4, 8  # tokens
_SAMPLES = 2


@dataclass(frozen=True, slots=True)
class Encoded:
    """The tokens of a question with a view; the places of the table and its columns, and of the mentions."""

    ids: tuple[int, ...]
    types: tuple[int, ...]
    columns: tuple[int, ...]
    mentions: tuple[int, ...]


def encode(
    tokenizer: Any, question: str, view: View, mentioned: Sequence[Mention], held: RelationSet
) -> Encoded | None:
    """Return the tokens, those of the question first; None if the view is too wide to be read."""

    def tokens(text: str, most: int) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids[:most]

    ids = [CLS, *tokens(question, _QUESTION), SEP]
    asked = len(ids)
    places, of_columns = dict[int, int](), list[int]()

    def add(at: int) -> None:
        for number, one in enumerate(mentioned):
            if one.column == at:
                places[number] = len(ids)
                ids.extend([_OF_MENTION[one.kind], *tokens(one.words, _WORDS)])

    of_columns.append(len(ids))
    ids += [_TABLE, *tokens(_title(view), _TITLE)]
    add(ROWS)
    for at, column in enumerate(view.columns):
        of_columns.append(len(ids))
        ids += [_OF_KIND[column.kind], *tokens(column.name, _NAME), *tokens(column.unit, _UNIT)]
        for text in _samples(column, held):
            ids += tokens(text, _SAMPLE)
        add(at)
    ids.append(SEP)
    if len(ids) > _LENGTH:
        return None
    types = [0] * asked + [1] * (len(ids) - asked)
    return Encoded(tuple(ids), tuple(types), tuple(of_columns), tuple(places[at] for at in range(len(mentioned))))


def _title(view: View) -> str:
    first = view.relations[0].stored
    return f"{view.label} {first.title}" if first.title != view.label else view.label


def _samples(column: ViewColumn, held: RelationSet) -> list[str]:
    if column.kind != "text":
        return []
    return [some[0] for some in islice(values_of(column, held).whole.values(), _SAMPLES)]
