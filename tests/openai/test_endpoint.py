"""The library as a chat's model: through the real client of OpenAI, and what others send."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from markdown_it import MarkdownIt
from starlette.applications import Starlette
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from local_rag.asking import HOST
from local_rag.errors import BusyError
from local_rag.library import Library
from local_rag.openai.endpoint import IGNORED_HEADER, chat_interface
from local_rag.serving.http import set_person
from local_rag.serving.job import Job
from local_rag.serving.requests import AskRequest, Caller, ServedAnswer
from local_rag.serving.service import Service
from local_rag.serving.worker import LibraryWorker
from local_rag.web.app import make_app
from local_rag.web.gate.authentication import Access
from local_rag.web.listening import allowed_hosts
from tests.fakes import FakeEmbedder, FakeGenerator, generating
from tests.openai.conftest import INTERFACES
from tests.support import served

ANSWER = "The boat leaves the harbour at seven. [1]"
USER: Any = [{"role": "user", "content": served.QUESTION}]
SECRET = "a-token-of-the-owner"


@contextmanager
def real_client(folder: Path, *, token: str = "") -> Iterator[openai.OpenAI]:
    """Serve on a port of this machine, and yield the client that people use."""
    allowed = {f"127.0.0.1:{port}" for port in range(1, 65536)}  # the port is not known before it is taken
    app = make_app(served.worker(folder), hosts=allowed, access=Access(token), interfaces=INTERFACES)
    with (
        served.server(app) as address,
        openai.OpenAI(base_url=f"{address}/v1", api_key=token or "none", max_retries=0) as client,
    ):
        yield client


def test_the_client_of_openai_gets_answers(folder: Path) -> None:
    with real_client(folder) as client:
        models = [model.id for model in client.models.list()]
        whole = client.chat.completions.create(model="lib", messages=USER)
        stream = client.chat.completions.create(
            model="lib",
            messages=USER,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks = list(stream)
        with pytest.raises(openai.NotFoundError, match="There is no model 'gpt-4' here"):
            client.chat.completions.create(model="gpt-4", messages=USER)
    assert models == ["lib"]
    text = whole.choices[0].message.content or ""
    assert text.startswith(ANSWER)
    assert 'Sources:\n\n- [1] documents/boat.txt:1\n\n  > "The boat leaves the harbour at seven."' in text
    assert whole.choices[0].finish_reason == "stop"
    said = whole.model_extra or {}
    assert said["citations"][0]["number"] == 1
    assert said["citations"][0]["text"].startswith("The boat leaves")
    assert whole.usage
    assert whole.usage.prompt_tokens > 50
    # A token of the fake's is a character: the text that the model wrote, without the list of sources.
    assert whole.usage.completion_tokens == len(text.split("\n\nSources:")[0].replace("\\", ""))
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == text
    assert chunks[0].choices[0].delta.role == "assistant"
    *_, last, usage = chunks
    assert last.choices[0].finish_reason == "stop"
    assert (last.model_extra or {})["citations"] == said["citations"]
    assert usage.usage == whole.usage
    assert {chunk.id for chunk in chunks} == {chunks[0].id}


def test_words_are_sent_as_they_come_and_struck_ones_corrected(folder: Path) -> None:
    held = LibraryWorker(lambda: served.Streaming(folder, parts=served.parts()))
    app = make_app(held, hosts=allowed_hosts("127.0.0.1", served.PORT, ()), interfaces=INTERFACES)
    with TestClient(app, base_url=served.ADDRESS) as client:
        served.wait_until(lambda: client.get("/healthz").json()["ready"])
        streamed = ask(client, USER, stream=True).text
        whole = ask(client, USER).json()["choices"][0]["message"]["content"]
    lines = [line.removeprefix("data: ") for line in streamed.splitlines() if line.startswith("data: {")]
    deltas = [json.loads(line)["choices"][0]["delta"].get("content", "") for line in lines]
    *words, last = filter(None, deltas)
    assert len(words) > 5
    assert "".join(words) == "The boat leaves the harbour at seven. [1] It carries 99 people"
    assert last.startswith("\n\nCorrection: the text above did not pass the check")
    assert last.endswith(f"This stands:\n\n{whole}")


def test_it_is_off_unless_it_is_asked_for(folder: Path) -> None:
    with served.client(folder) as client:
        assert client.get("/v1/models").status_code == 404
        assert ask(client, USER).status_code == 404


@pytest.mark.parametrize(
    ("headers", "status"), [({"host": "attacker.example"}, 400), ({"origin": "http://attacker.example"}, 403)]
)
def test_hosts_and_origins_of_others_are_refused(client: TestClient, headers: dict[str, str], status: int) -> None:
    assert client.get("/v1/models", headers=headers).status_code == status
    order = {"model": "lib", "messages": USER}
    assert client.post("/v1/chat/completions", json=order, headers=headers).status_code == status


def test_the_token_is_the_key(folder: Path) -> None:
    with real_client(folder, token=SECRET) as client:
        assert [model.id for model in client.models.list()] == ["lib"]
        with pytest.raises(openai.AuthenticationError):
            client.with_options(api_key="wrong").models.list()


def ask(client: TestClient, messages: Any, **fields: Any) -> Any:
    return client.post("/v1/chat/completions", json={"model": "lib", "messages": messages, **fields})


def test_what_is_ignored_is_named(client: TestClient) -> None:
    messages = [{"role": "system", "content": "Answer in French."}, *USER]
    fields = {"temperature": 0.2, "n": 3, "tools": [{"type": "function"}], "max_tokens": 5, "a b\r\nx: y": 1}
    named = ask(client, messages, **fields)
    assert named.status_code == 200
    assert named.json()["choices"][0]["message"]["content"].startswith(ANSWER)
    assert set(named.headers[IGNORED_HEADER].split(", ")) == {
        "temperature", "n", "tools", "max_tokens", "system messages", "other fields",
    }  # fmt: skip
    assert IGNORED_HEADER not in ask(client, USER, n=1, tools=None, stream=False).headers
    streamed = ask(client, USER, stream=True, temperature=1)
    assert streamed.headers[IGNORED_HEADER] == "temperature"
    assert streamed.text.endswith("data: [DONE]\n\n")


def test_the_last_question_goes_on_the_conversation(folder: Path) -> None:
    first, last = "Who gets parental leave in Norway?", "Who gets sick leave in Norway?"
    prompts = FakeGenerator(lambda _prompt: ANSWER, context_tokens=100_000)
    parts = replace(served.parts(), open_engine=generating(prompts))
    with served.client(folder, parts, interfaces=INTERFACES) as client:
        conversation = [
            {"role": "user", "content": first},
            {"role": "assistant", "content": "Parents. [1]"},
            {"role": "user", "content": [{"type": "text", "text": last}, {"type": "image_url"}]},
        ]
        replied = ask(client, conversation)
    assert replied.headers[IGNORED_HEADER] == "content other than text"
    asked = prompts.prompts[-1]
    assert asked.index(f"Question: {first}") < asked.index(f"Question: {last}")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"no JSON", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"[" * 50_000, "not JSON"),
        (b"{}", "messages must be a list"),
        (b'{"messages": [1]}', "messages must be a list"),
        (b'{"messages": []}', "no message of the role user"),
        (b'{"messages": [{"role": "system", "content": "x"}]}', "no message of the role user"),
        (b'{"messages": [{"role": "user", "content": " "}]}', "The question is empty"),
        (b'{"messages": [{"role": "user", "content": {"a": 1}}]}', "The question is empty"),
        (b'{"messages": [{"role": "user", "content": "\\ud800"}]}', "not UTF-8"),
        (b'{"messages": [{"role": "user", "content": "### Task:\\nGenerate a title \\ud800"}]}', "not UTF-8"),
        (json.dumps({"messages": [{"role": "user", "content": "x" * 5000}]}).encode(), "ask in fewer words"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_wrong_is_an_error_as_clients_know_it(client: TestClient, body: bytes, message: str) -> None:
    refused = client.post("/v1/chat/completions", content=body)
    assert refused.status_code == 400
    assert message in refused.json()["error"]["message"]
    assert set(refused.json()["error"]) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("streams", [False, True])
def test_where_too_many_wait_a_client_is_told_to_come_again(folder: Path, streams: bool) -> None:
    class BusyService(Service):
        def ask(self, request: AskRequest, caller: Caller) -> Job[ServedAnswer]:
            raise BusyError("Too many questions are waiting.")

    service = BusyService(LibraryWorker(lambda: Library(folder)))
    app = Starlette(routes=chat_interface(service)[0])

    async def known(scope: Scope, receive: Receive, send: Send) -> None:
        set_person(scope, HOST)
        await app(scope, receive, send)

    with TestClient(known) as busy:
        refused = ask(busy, USER, stream=streams)
    assert (refused.status_code, refused.json()["error"]["message"]) == (429, "Too many questions are waiting.")


def test_a_stream_is_refused_by_its_status_before_it_begins(client: TestClient) -> None:
    for question in ("x" * 5000, " "):
        refused = ask(client, [{"role": "user", "content": question}], stream=True)
        assert refused.status_code == 400
        assert refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models/lib", 200),
        ("GET", "/v1/models/gpt-4", 404),
        ("POST", "/v1/embeddings", 404),
        ("GET", "/v1/nothing/at/all", 404),
        ("GET", "/v1/chat/completions", 404),
    ],
)
def test_programs_get_what_is_not_there_as_they_know_it(
    client: TestClient, method: str, path: str, status: int
) -> None:
    told = client.request(method, path, headers={"accept": "text/html"})
    assert told.status_code == status
    if status == 200:
        assert (told.json()["id"], told.json()["object"]) == ("lib", "model")
    else:
        assert set(told.json()["error"]) == {"message", "type", "param", "code"}


def test_what_was_said_before_is_cut_before_anything_reads_it(folder: Path) -> None:
    terms = list[int]()

    class Counting(FakeEmbedder):
        def embed_query(self, text: str) -> np.ndarray:
            terms.append(len(text.split()))
            return super().embed_query(text)

    long = " ".join(f"word{number}" for number in range(90_000))
    parts = replace(served.parts(), load_embedder=Counting)
    with served.client(folder, parts, interfaces=INTERFACES) as client:
        said = [{"role": "user", "content": long}, {"role": "assistant", "content": "No."}]
        assert ask(client, [*said, *USER]).status_code == 200
    assert max(terms) < 200


def test_long_conversations_are_read_and_longer_ones_refused(client: TestClient) -> None:
    long = [{"role": "user", "content": "x" * 3000}, {"role": "assistant", "content": "y" * 3000}] * 20
    assert ask(client, [*long, *USER]).status_code == 200
    assert ask(client, [{"role": "user", "content": "x" * 1_100_000}]).status_code == 413


def test_a_doubtful_answer_is_a_quotation_that_is_no_markup(documents: Path) -> None:
    hostile = "The boat ![x](http://192.0.2.1) leaves the <img src=x> *harbour* at seven."
    (documents / "boat.txt").write_text(f"{hostile}\n")
    served.index(documents, documents.parent / "lib")
    unsure = served.parts(lambda _prompt: "It leaves at eight.", holds=lambda _prompt: False)
    with served.client(documents.parent / "lib", unsure, interfaces=INTERFACES) as client:
        replied = ask(client, USER).json()
        streamed = ask(client, USER, stream=True).text
    text = replied["choices"][0]["message"]["content"]
    assert text.startswith("Not sure. This is what the documents say:\n\n> The boat ")
    assert "Sources:\n\n- [1] documents/boat.txt:1" in text
    assert "eight" not in text
    assert replied["citations"][0]["text"] == hostile
    assert json.dumps(text, ensure_ascii=False) in streamed
    tokens = MarkdownIt("commonmark").parse(text.partition("Sources:")[0])
    kinds = {child.type for token in tokens for child in token.children or ()}
    assert kinds <= {"text", "softbreak", "hardbreak"}
    quoted = [token.content for token in tokens if token.type == "inline" and token.level > 1]
    first = MarkdownIt("commonmark").parseInline(quoted[0])[0].children or []
    assert "".join(child.content for child in first) == f"{hostile} [1]"


def test_without_an_answer_the_closest_passages_are_named(folder: Path) -> None:
    with served.client(folder, served.parts(holds=lambda _prompt: False), interfaces=INTERFACES) as client:
        replied = ask(client, [{"role": "user", "content": "Do zebras sleep?"}]).json()
    text = replied["choices"][0]["message"]["content"]
    assert text.startswith("The documents do not answer this question.\n\nClosest:\n\n- documents/")
    assert replied["citations"] == []
    assert replied["usage"]["completion_tokens"] > 0


def test_titles_and_places_are_no_markup(documents: Path) -> None:
    (documents / "boat.txt").unlink()
    (documents / "[x](javascript:a)<b>.md").write_text(
        "# The *boat* <img src=x> [click](http://192.0.2.1)\n\nThe boat leaves the harbour at seven.\n"
    )
    served.index(documents, documents.parent / "lib")
    with served.client(documents.parent / "lib", interfaces=INTERFACES) as client:
        text = ask(client, USER).json()["choices"][0]["message"]["content"]
    listed = MarkdownIt("commonmark").parse(text.partition("Sources:")[2])
    assert "<img src=x>" in "".join(child.content for token in listed for child in token.children or ())
    kinds = {child.type for token in listed for child in token.children or ()}
    assert kinds <= {"text", "softbreak"}


def test_an_answer_nobody_waits_for_any_more_ends(folder: Path) -> None:
    talker = served.Talker()
    parts = replace(served.parts(), open_engine=generating(talker))
    allowed = {f"127.0.0.1:{port}" for port in range(1, 65536)}
    app = make_app(served.worker(folder, parts), hosts=allowed, interfaces=INTERFACES)
    with served.server(app) as address, openai.OpenAI(base_url=f"{address}/v1", api_key="none") as client:
        question: Any = [{"role": "user", "content": served.ENDLESS}]
        stream = client.chat.completions.create(model="lib", messages=question, stream=True)
        assert next(iter(stream)).choices[0].delta.role == "assistant"
        assert talker.going.wait(30)
        stream.close()
        assert talker.stopped.wait(30)


def test_a_text_is_checked(client: TestClient) -> None:
    text = "The boat leaves the harbour at eight."
    told = client.post("/v1/verify", json={"text": text, "with_model": False}).json()
    (one,) = told["statements"]
    assert (one["text"], one["verdict"]) == (text, "contradicted")
    assert one["quotes"][0]["path"] == "documents/boat.txt"
    limited = client.post("/v1/verify", json={"text": text, "model": "lib/nothing/**", "with_model": False}).json()
    assert limited["statements"][0]["verdict"] == "not in these documents"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b"no", 400, "The body is not JSON"),
        (b'{"text": 3}', 400, "text must be a string"),
        (b'{"text": " "}', 400, "The text is empty"),
        (b'{"text": "\\ud800 leaves"}', 400, "not UTF-8"),
        (b'{"text": "Boats leave.", "model": "gpt-4"}', 404, "There is no model"),
    ],
)
def test_a_text_that_cannot_be_checked_is_refused(client: TestClient, body: bytes, status: int, said: str) -> None:
    refused = client.post("/v1/verify", content=body)
    assert refused.status_code == status
    assert said in refused.json()["error"]["message"]
