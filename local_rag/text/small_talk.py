"""What people say to a program that is no question to documents: greetings, thanks, and what it can do."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path


@cache
def _replies() -> tuple[Mapping[str, str], frozenset[str]]:
    """Return the reply to each phrase, and the greetings; one that languages share is answered in the first of them."""
    said = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    replies = dict[str, str]()
    for one in (one for languages in said.values() for one in languages.values()):
        replies = dict.fromkeys(one["phrases"], one["reply"]) | replies
    return replies, frozenset(phrase for one in said["greeting"].values() for phrase in one["phrases"])


def reply_to_small_talk(text: str) -> str | None:
    """Return the program's own reply to what is no question to documents; None for any other text.

    The whole text must be such a phrase, perhaps behind a greeting, so a question is never taken for one.
    """
    replies, greetings = _replies()
    if len(text) > 2 * max(map(len, replies)):
        return None
    words = " ".join(re.findall(r"\w+", text.lower().replace("'", " ")))
    if words in replies:
        return replies[words]
    greeted = max((phrase for phrase in greetings if words.startswith(f"{phrase} ")), key=len, default="")
    return replies.get(words[len(greeted) + 1 :]) if greeted else None
