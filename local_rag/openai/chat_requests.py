"""Read a request for a chat completion: the question, the conversation before it, and what is ignored."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local_rag.asking import Turn
from local_rag.errors import QuestionError
from local_rag.files import is_utf8

_READ = {"model", "messages", "stream", "stream_options"}
# Values that ask for what is done in any case.
_HARMLESS: Mapping[str, Any] = {"n": 1, "tools": [], "stop": []}
_MOST_IGNORED = 30
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_SYSTEM, _ROLES, _BEHIND, _OTHER_CONTENT = _OWN_WORDS = (
    "system messages",
    "messages of other roles",
    "messages behind the question",
    "content other than text",
)
_MOST_TURNS = 20  # of the conversation; only the last and the first are searched with


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request: the `question` follows the `earlier` turns; `ignored` names the fields without effect."""

    model: str
    question: str
    earlier: tuple[Turn, ...] = ()
    stream: bool = False
    with_usage: bool = False
    ignored: tuple[str, ...] = ()


def read_request(body: bytes) -> ChatRequest:
    """Read the body of a request; raise QuestionError if it holds no question."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise QuestionError("The body is not JSON; send a chat completion request.") from None
    if not isinstance(fields, dict):
        raise QuestionError("The body is not a JSON object; send a chat completion request.")
    messages = fields.get("messages")
    if not isinstance(messages, list) or not all(isinstance(one, dict) for one in messages):
        raise QuestionError("messages must be a list of objects with role and content.")
    ignored = [name for name in fields if name not in _READ and fields[name] not in (None, _HARMLESS.get(name))]
    said = [(str(one.get("role")), _text_of(one.get("content"), ignored)) for one in messages]
    if any(role in {"system", "developer"} for role, _ in said):
        ignored.append(_SYSTEM)
    if any(role not in {"system", "developer", "user", "assistant"} for role, _ in said):
        ignored.append(_ROLES)
    last = max((position for position, (role, _) in enumerate(said) if role == "user"), default=None)
    if last is None:
        raise QuestionError("There is no message of the role user; the last one is the question.")
    if last + 1 < len(said):
        ignored.append(_BEHIND)
    options = fields.get("stream_options")
    return ChatRequest(
        model=str(fields.get("model") or ""),
        question=said[last][1],
        earlier=_turns(said[:last])[-_MOST_TURNS:],
        stream=fields.get("stream") is True,
        with_usage=isinstance(options, dict) and options.get("include_usage") is True,
        ignored=tuple(dict.fromkeys(_nameable(ignored))),
    )


def _text_of(content: Any, ignored: list[str]) -> str:
    """Return the text of a message, which may come in parts; parts without text are ignored."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [one.get("text") for one in parts if isinstance(one, dict) and one.get("type") == "text"]
    if len(texts) < len(parts):
        ignored.append(_OTHER_CONTENT)
    return "\n".join(text for text in texts if isinstance(text, str))


def _turns(said: Sequence[tuple[str, str]]) -> tuple[Turn, ...]:
    """Pair each question with its answer."""
    turns = list[Turn]()
    for role, text in said:
        if role == "user" and text.strip() and is_utf8(text):
            turns.append(Turn(text))
        elif role == "assistant" and turns:
            turns[-1] = Turn(turns[-1].question, text)
    return tuple(turns)


def _nameable(ignored: Sequence[str]) -> list[str]:
    """Return the names that may stand in a header, and one name for all others."""
    known = [name for name in ignored if _NAME.fullmatch(name) or (" " in name and name.replace(" ", "").isalpha())]
    kept = known[:_MOST_IGNORED]
    return kept + (["other fields"] if len(kept) < len(ignored) else [])
