"""Read fields of a form, a query or a JSON object: texts, numbers and filters; and write filters back."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

from local_rag.asking import Filters
from local_rag.errors import QuestionError

Fields = Mapping[str, Any]
SOURCE, DOCUMENT = "source", "document"  # a folder or document that was chosen, of which there may be several
_MOST_SOURCES = 300
_MOST_FIELDS = 50  # with different names
_MOST_VALUES = 2000
_LARGEST_ID = 10**18 - 1  # SQLite holds larger ones, no library has them
_MOST_CHARACTERS = 2000  # of the values of a filter
BETWEEN = ".."  # the first day and the one after the last, in the field `when`
_PART = re.compile(r'\s*"[^"]*"|[^,]+')  # a value that holds a comma stands in quotation marks


def read_form(body: bytes, *, is_json: bool) -> dict[str, Any]:
    """Return the fields of a form or of a JSON object; raise QuestionError for anything else."""
    try:
        if is_json:
            fields = json.loads(body or b"{}")
            json.dumps(fields, ensure_ascii=False).encode()  # half a surrogate pair can be written nowhere
            if isinstance(fields, dict):
                return fields
            raise QuestionError('The body is not a JSON object; send `{"question": ...}`.')
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MOST_VALUES)
        fields = query_fields(pairs)
        if len(fields) > _MOST_FIELDS:
            raise QuestionError(f"The form has more than {_MOST_FIELDS} fields.")
        return fields
    except (ValueError, RecursionError) as error:
        raise QuestionError("The form cannot be read; send UTF-8 as a form or as JSON.") from error


def query_fields(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the fields of a form or an address; all that were chosen as sources or documents are one list."""
    chosen = {one: [value for name, value in pairs if name == one and value] for one in (SOURCE, DOCUMENT)}
    return dict(pairs) | {name: values for name, values in chosen.items() if len(values) > (name == DOCUMENT)}


def list_field(fields: Fields, name: str) -> list[str]:
    """Return all values of a field."""
    value = fields.get(name) or []
    return list(map(str, value)) if isinstance(value, list) else [str(value)]


def text_field(fields: Fields, name: str) -> str:
    """Return a field that is text, empty if there is none."""
    value = fields.get(name, "")
    return value if isinstance(value, str) else ""


def number_field(fields: Fields, name: str, largest: int = 1000) -> int | None:
    """Return a field that is a number from 1 to `largest`, None if there is none; raise QuestionError for others."""
    text = str(fields.get(name) or "")
    if not text:
        return None
    number = parse_number(text, largest)
    if not number:
        raise QuestionError(f"The field {name} is {text[:20]!r}; give a number from 1 to {largest:,}.")
    return number


def parse_number(text: str, largest: int = _LARGEST_ID) -> int | None:
    """Return a number in ASCII digits from 0 to `largest`, None for any other text."""
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(largest))):
        return None
    return int(text) if int(text) <= largest else None


def local_address(text: str) -> str:
    """Return an address to go to if it lies on this server: a browser takes two slashes for another host."""
    return text if text.startswith("/") and text[1:2] not in ("/", "\\") and text.isprintable() else "/"


def filters_of(fields: Fields) -> Filters:
    """Return the filters in the fields; commas separate values, except in quotes and in what was chosen."""
    sources = list_field(fields, SOURCE)
    if len(sources) > _MOST_SOURCES or sum(map(len, sources)) > _MOST_CHARACTERS * 10:
        raise QuestionError(f"More than {_MOST_SOURCES} sources are chosen; choose folders in their place.")
    since, _, before = str(fields.get("when") or "").partition(BETWEEN)
    return Filters.parse(
        within=list(dict.fromkeys([*sources, *_values(fields, "in")])),
        types=_values(fields, "type"),
        since=str(fields.get("since") or "") or since,
        before=str(fields.get("before") or "") or before,
        tags=_values(fields, "tag"),
        as_of=str(fields.get("as_of") or ""),
    )


def as_pairs(filters: Filters) -> list[tuple[str, str]]:
    """Return filters as the fields of a form or an address, without those that are empty."""
    sources = [(SOURCE, one) for one in filters.within]
    return [*sources, *((name, text) for name, text in as_fields(filters).items() if text and name != "in")]


def as_fields(filters: Filters) -> dict[str, str]:
    """Return filters as fields; a field without a filter is empty."""
    return {
        "in": _joined(filters.within),
        "type": _joined(filters.types),
        "since": str(filters.since or ""),
        "before": str(filters.before or ""),
        "tag": _joined(filters.tags),
        "as_of": str(filters.as_of or ""),
    }


def as_query(name: str, question: str, filters: Filters) -> str:
    """Return a question and filters as the query of an address."""
    return urlencode([(name, question), *as_pairs(filters)])


def _values(fields: Fields, name: str) -> list[str]:
    given = fields.get(name) or ""
    texts = list(map(str, given)) if isinstance(given, list) else [text.strip() for text in _PART.findall(str(given))]
    texts = [text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text for text in texts]
    if sum(map(len, texts)) > _MOST_CHARACTERS:
        raise QuestionError(f"The field {name} is longer than {_MOST_CHARACTERS:,} characters; name fewer.")
    return texts


def _joined(values: Iterable[str]) -> str:
    return ", ".join(f'"{value}"' if "," in value else value for value in values)
