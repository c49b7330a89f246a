"""Reply, without any model, to tasks that chat clients send beside the user's questions: titles, tags, follow-ups.

A task is recognised by the exact words of the client's template, with which no question begins. The prefix
"### Task:" is not enough: Open WebUI also puts it before a user's question when it adds text of its own.
"""

import json
from collections.abc import Mapping

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
_OPENING, _ENDS = "<chat_history>", ("\nUSER:", "\nASSISTANT:", "</chat_history>")


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
    said = text.partition(_OPENING)[2].lstrip()[: _LOOKED_AT + len("USER:")]
    if not said.startswith("USER:"):
        return "Conversation"
    said = said.removeprefix("USER:")
    end = min((found for mark in _ENDS if (found := said.find(mark)) >= 0), default=len(said))
    return " ".join(said[:end].split()[:_TITLE_WORDS])[:_LONGEST] or "Conversation"
