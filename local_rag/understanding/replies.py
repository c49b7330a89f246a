"""What the program replies to small talk, which asks nothing of the documents."""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from local_rag.plan_records import Plan


@cache
def _replies() -> Mapping[str, str]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def reply_to_small_talk(plan: Plan) -> str:
    """Return the program's own reply to small talk, in its language or in English."""
    return _replies().get(plan.language, _replies()["en"])
