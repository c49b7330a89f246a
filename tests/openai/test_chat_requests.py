"""What clients ask beside the user's questions is answered by code, and no question is taken for it."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from local_rag.openai.endpoint import reply_to_client_task
from tests.openai.conftest import INTERFACES
from tests.support import served

HISTORY = (
    "\n### Output:\n...\n### Chat History:\n<chat_history>\nUSER: When does the next boat leave the old pier, please?"
    "\nASSISTANT: At seven.\nUSER: And on Sundays?\n</chat_history>"
)
TITLE = "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history." + HISTORY
CHORES = {
    TITLE: {"title": "When does the next boat leave the old"},
    "### Task:\nGenerate a concise title summarizing the chat history.\n": {"title": "Conversation"},
    "### Task:\nGenerate 1-3 broad tags categorizing the main themes of the chat history, along with": {"tags": []},
    "### Task:\nSuggest 3-5 relevant follow-up questions or prompts that the user might naturally ask next in": {
        "follow_ups": []
    },
    "### Task:\nAnalyze the chat history to determine the necessity of generating search queries, in": {"queries": []},
    "### Task:\nYou are an autocompletion system. Continue the text in `<text>` based on the": {"text": ""},
}
# What Open WebUI makes of a user's question where it adds text of its own, and what people write.
QUESTIONS = [
    "### Task:\nRespond to the user query using the provided context, incorporating inline citations",
    "### Task:\nWhen does the boat leave?",
    "### Task: Generate a concise title",
    " ### Task:\nGenerate a concise title summarizing the chat history.",
    "Generate a concise, 3-5 word title",
    "Generate 1-3 broad tags categorizing the main themes of the chat history",
    "What does ### Task:\nGenerate a concise title mean?",
]


@pytest.mark.parametrize(("text", "reply"), CHORES.items(), ids=[str(reply) for reply in CHORES.values()])
def test_chores_are_done_by_code(text: str, reply: object) -> None:
    assert json.loads(reply_to_client_task(text) or "null") == reply


@pytest.mark.parametrize("text", QUESTIONS)
def test_questions_are_no_chores(text: str) -> None:
    assert reply_to_client_task(text) is None


@given(some.text())
def test_what_stands_in_a_chore_is_no_markup_of_its_reply(said: str) -> None:
    text = f"### Task:\nGenerate a concise title\n<chat_history>\nUSER: {said}\n</chat_history>"
    title = json.loads(reply_to_client_task(text) or "null")["title"]
    assert 0 < len(title) <= 80
    assert len(title.split()) <= 8


@pytest.mark.parametrize("said", ["\n", " ", "a ", "USER:", "\nUSER:", "<chat_history>"], ids=repr)
def test_a_task_of_any_shape_is_answered_at_once(said: str) -> None:
    beginning = "### Task:\nGenerate a title<chat_history>USER:"
    started = time.process_time()
    for text in (beginning + said * 100_000, f"{beginning} a{said * 100_000}b\nASSISTANT: x\n</chat_history>"):
        assert reply_to_client_task(text)
    assert time.process_time() - started < 2, "the time grows with the length, not with a power of it"


def test_nothing_is_retrieved_for_a_chore(folder: Path) -> None:
    with served.client(folder, interfaces=INTERFACES, audit_log=True) as client:
        order = {"model": "lib", "messages": [{"role": "user", "content": TITLE}]}
        replied = client.post("/v1/chat/completions", json=order).json()
        greeted = client.post("/v1/chat/completions", json={"messages": [{"role": "user", "content": "Hello!"}]})
    assert json.loads(replied["choices"][0]["message"]["content"]) == {"title": "When does the next boat leave the old"}
    assert replied["usage"] == {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    assert "I answer questions" in greeted.json()["choices"][0]["message"]["content"]
    assert not (folder / "audit.jsonl").exists(), "no question was asked"
