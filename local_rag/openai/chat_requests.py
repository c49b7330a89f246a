"""What clients send: a question, the conversation before it, and what is ignored; or a task that is no question.

Chat clients send tasks beside the user's questions, which are replied to without any model: titles, tags, follow-ups. A
task is recognised by the exact words of the client's template, with which no question begins. The prefix "### Task:" is
not enough: Open WebUI also puts it before a user's question when it adds text of its own.
"""

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
_PLAIN = {"type": "text"}
_HARMLESS: Mapping[str, Any] = {"n": 1, "tools": [], "stop": [], "response_format": _PLAIN}
_MOST_IGNORED = 30
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_SYSTEM, _ROLES, _BEHIND, _OTHER_CONTENT = (
    "system messages",
    "messages of other roles",
    "messages behind the question",
    "content other than text",
)
_MOST_TURNS = 20  # of the conversation; only the last and the first are searched with
_TASK = "### Task:\n"
# The beginnings of Open WebUI's templates (backend/open_webui/config.py), each with the key of the JSON it wants.
_PREFIXES: Mapping[str, str] = {
    f"{_TASK}Generate a concise": "title",
    f"{_TASK}Generate a title": "title",
    f"{_TASK}Generate 1-3 broad tags": "tags",
    f"{_TASK}Suggest 3-5 relevant follow-up questions": "follow_ups",
    f"{_TASK}Analyze the chat history to determine the necessity of generating search queries": "queries",
    f"{_TASK}You are an autocompletion system.": "text",
    f"{_TASK}Generate a detailed prompt for am image generation task": "prompt",
}
_TITLE_WORDS, _LONGEST, _LOOKED_AT = 8, 80, 500  # words and characters of a title; characters that it is made of
_OPENING, _USER, _ENDS = "<chat_history>", "USER:", ("\nUSER:", "\nASSISTANT:", "</chat_history>")


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request: the `question` follows the `earlier` turns; `ignored` names the fields without effect.

    A `plain` answer is text in which nothing is escaped for Markdown.
    """

    model: str
    question: str
    earlier: tuple[Turn, ...] = ()
    stream: bool = False
    with_usage: bool = False
    plain: bool = False
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
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise QuestionError("messages must be a list of objects with role and content.")
    ignored = [name for name in fields if name not in _READ and fields[name] not in (None, _HARMLESS.get(name))]
    talk = [(str(message.get("role")), _text_of(message.get("content"), ignored)) for message in messages]
    roles = {role for role, _ in talk}
    ignored += [_SYSTEM] * bool(roles & {"system", "developer"})
    ignored += [_ROLES] * bool(roles - {"system", "developer", "user", "assistant"})
    last = max((position for position, (role, _) in enumerate(talk) if role == "user"), default=None)
    if last is None:
        raise QuestionError("There is no message of the role user; the last one is the question.")
    ignored += [_BEHIND] * (last + 1 < len(talk))
    options = fields.get("stream_options")
    return ChatRequest(
        model=str(fields.get("model") or ""),
        question=talk[last][1],
        earlier=_turns(talk[:last])[-_MOST_TURNS:],
        stream=fields.get("stream") is True,
        plain=fields.get("response_format") == _PLAIN,
        with_usage=isinstance(options, dict) and options.get("include_usage") is True,
        ignored=tuple(dict.fromkeys(_nameable(ignored))),
    )


def _text_of(content: Any, ignored: list[str]) -> str:
    """Return the text of a message, which may come in parts; parts without text are ignored."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
    if len(texts) < len(parts):
        ignored.append(_OTHER_CONTENT)
    return "\n".join(text for text in texts if isinstance(text, str))


def _turns(talk: Sequence[tuple[str, str]]) -> tuple[Turn, ...]:
    """Pair each question with its answer."""
    turns = list[Turn]()
    for role, text in talk:
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


def reply_to_client_task(text: str) -> str | None:
    """Return the reply to a client's task; None for anything that a user may have asked."""
    key = next((key for prefix, key in _PREFIXES.items() if text.startswith(prefix)), None)
    if key is None:
        return None
    if key == "title":
        return json.dumps({"title": _title(text)}, ensure_ascii=False)
    return json.dumps({key: "" if key in {"text", "prompt"} else []})


def _title(text: str) -> str:
    """Return the first words of the first question; the text, which may be anything, is gone through only once."""
    begun = text.partition(_OPENING)[2].lstrip()[: _LOOKED_AT + len(_USER)]
    asked = begun.removeprefix(_USER) if begun.startswith(_USER) else ""
    for mark in _ENDS:
        asked = asked.partition(mark)[0]
    return " ".join(asked.split()[:_TITLE_WORDS])[:_LONGEST] or "Conversation"
