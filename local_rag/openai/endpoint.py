"""The routes under /v1: the library as the only model, and its answers as chat completions.

A client sends a question and the conversation before it; or, beside the user's questions, a task of its own, which is
replied to without any model: titles, tags, follow-ups. A task is recognised by the exact words of the client's
template, with which no question begins. The prefix "### Task:" is not enough: Open WebUI also puts it before a user's
question when it adds text of its own.
"""

import json
import re
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from local_rag.answer_records import Answer, Written
from local_rag.asking import EVERYTHING, AskOptions, Filters, Turn, require_question
from local_rag.display import Name, one_line, passage_as_dict, printable, printable_json
from local_rag.errors import LocalRagError, MissingError, QuestionError
from local_rag.files import is_utf8
from local_rag.serving.answer_markdown import AnswerPieces, answer_as_markdown, escaped
from local_rag.serving.http import EventStream, caller_of, error_object, json_response, status_of, unless_gone
from local_rag.serving.job import Failure, Job, Ping, Result, failure
from local_rag.serving.requests import AskRequest, Caller, ServedAnswer, VerifyRequest
from local_rag.serving.service import Service
from local_rag.serving.verified_text import verified
from local_rag.understanding.question_reader import read_plan
from local_rag.understanding.replies import reply_to_small_talk
from local_rag.verification.report import verification_as_dict

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
    fields = _object_in(body, "a chat completion request")
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


@dataclass(frozen=True, slots=True)
class TextToVerify:
    """A text to check; `model` names the library as in a chat, `with_model` lets its own model decide what is open."""

    text: str
    model: str = ""
    with_model: bool = True


def read_verification(body: bytes) -> TextToVerify:
    """Read the body of a request to check a text; raise QuestionError if it holds none."""
    fields = _object_in(body, '{"text": ...}')
    if not isinstance(fields.get("text"), str):
        raise QuestionError('text must be a string; send `{"text": ...}`.')
    return TextToVerify(fields["text"], str(fields.get("model") or ""), fields.get("with_model") is not False)


def _object_in(body: bytes, wanted: str) -> dict[str, Any]:
    """Return the JSON object that a body is; raise QuestionError for another one, saying what is `wanted`."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise QuestionError(f"The body is not JSON; send {wanted}.") from None
    if not isinstance(fields, dict):
        raise QuestionError(f"The body is not a JSON object; send {wanted}.")
    return fields


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


IGNORED_HEADER = "x-local-rag-ignored"
_COMPLETIONS, _VERIFY = "/v1/chat/completions", "/v1/verify"
_PING_SECONDS = 10.0
_DONE = b"data: [DONE]\n\n"


class UnknownModelError(MissingError):
    """Report that the client asks for another model than the library."""


def chat_interface(
    service: Service,
) -> tuple[list[BaseRoute], Callable[[], AbstractAsyncContextManager[None]]]:
    """Return the routes; nothing must be entered while they are served."""
    started = int(time.time())

    def model() -> dict[str, Any]:
        return {"id": service.name, "object": "model", "created": started, "owned_by": "local-rag"}

    def filters_in(name: str) -> Filters:
        """Return the filter behind the library's name in that of a model; raise UnknownModelError for another."""
        own, slash, pattern = service.name, *name.removeprefix(service.name).partition("/")[1:]
        if name not in (own, f"{own}/{pattern}"):
            raise UnknownModelError(f"There is no model {name[:60]!r} here; the library is {own!r}.")
        return Filters(within=(pattern,)) if slash and pattern else EVERYTHING

    async def models(_request: Request) -> Response:
        return json_response({"object": "list", "data": [model()]})

    async def one_model(request: Request) -> Response:
        filters_in(request.path_params["model"])
        return json_response(model() | {"id": request.path_params["model"]})

    async def completions(request: Request) -> Response:
        body = await request.body()
        asked = await service.aside(lambda: read_request(body))
        filters = filters_in(asked.model) if asked.model else EVERYTHING
        caller = caller_of(request.scope, _COMPLETIONS)
        name = await service.aside(service.library_for(caller.person).documents.place_names)
        completion = Completion(service, asked, caller, name, filters)
        headers = {IGNORED_HEADER: ", ".join(asked.ignored)} if asked.ignored else {}
        if asked.stream:
            return completion.stream(headers)
        return json_response(await completion.whole(request.receive), headers=headers)

    async def verify(request: Request) -> Response:
        body = await request.body()
        asked = await service.aside(lambda: read_verification(body))
        limits = filters_in(asked.model) if asked.model else EVERYTHING
        caller = caller_of(request.scope, _VERIFY)
        wanted = VerifyRequest(text=asked.text, filters=limits, model=asked.with_model)
        found = await unless_gone(request.receive, verified(service, wanted, caller))
        name = await service.aside(service.library_for(caller.person).documents.place_names)
        return json_response(await service.aside(lambda: verification_as_dict(found, name)))

    async def nothing(request: Request) -> Response:
        raise MissingError(f"There is nothing at {request.method} {one_line(request.url.path)[:100]} here.")

    return [
        Route("/v1/models", _reported(models), methods=["GET"]),
        Route("/v1/models/{model:path}", _reported(one_model), methods=["GET"]),
        Route(_COMPLETIONS, _reported(completions), methods=["POST"]),
        Route(_VERIFY, _reported(verify), methods=["POST"]),
        Route("/v1/{path:path}", _reported(nothing), methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
    ], nullcontext


def _reported(handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Report the errors of a handler as clients of OpenAI's models read them."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except LocalRagError as error:
            code = "model_not_found" if isinstance(error, UnknownModelError) else None
            return json_response(error_object(str(error), code), status_of(error))

    return handle


class Completion:
    """Answer one request, whole or as a stream of events."""

    def __init__(
        self,
        service: Service,
        asked: ChatRequest,
        caller: Caller,
        name: Name = str,
        filters: Filters = EVERYTHING,
    ) -> None:
        self._service, self._asked, self._caller, self._name = service, asked, caller, name
        self._model, self._options = asked.model or service.name, AskOptions(filters=filters)
        self._escape = printable if asked.plain else escaped
        self._id, self._created = f"chatcmpl-{secrets.token_hex(12)}", int(time.time())

    async def whole(self, receive: Callable[[], Any]) -> dict[str, Any]:
        """Return the completion; once `receive` tells that the client has gone, the answer is stopped."""
        if reply := self._own_reply():
            answer, content = reply, reply.text
        else:
            served = await unless_gone(receive, self._ask().outcome())
            answer, content = served.answer, answer_as_markdown(served.answer, self._name, served.changed, self._escape)
        message = {"role": "assistant", "content": content}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return self._object("chat.completion", [choice], usage=_usage(answer), citations=self._citations(answer))

    def stream(self, headers: Mapping[str, str]) -> Response:
        """Return the completion piece by piece; raise what refuses the question before anything is sent."""
        if reply := self._own_reply():
            whole = [self._begin(), *self._end(reply, reply.text), _DONE]
            return Response(b"".join(whole), headers=dict(headers), media_type="text/event-stream")
        job = self._ask()
        return EventStream(job, self._events(job), headers)

    async def _events(self, job: Job[ServedAnswer]) -> AsyncGenerator[bytes]:
        """Yield the completion of a job; a client that stops reading stops the answer."""
        yield self._begin()
        pieces = AnswerPieces(self._name, self._escape)
        try:
            async with aclosing(job.events(_PING_SECONDS)) as events:
                async for happened in events:
                    match happened:
                        case Ping():
                            yield b": still at work\n\n"
                        case Written() as written:
                            if piece := pieces.add(written):
                                yield self._chunk({"content": piece})
                        case Result(served):
                            for event in self._end(served.answer, pieces.end(served.answer, served.changed)):
                                yield event
                        case Failure():
                            yield _event(error_object(happened.message))
        except Exception as error:  # noqa: BLE001  a result could not be written
            yield _event(error_object(failure(error).message))
        yield _DONE

    def _begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def _end(self, answer: Answer, rest: str) -> Iterator[bytes]:
        """Yield the rest of the text of an answer, its citations and usage."""
        yield self._chunk({"content": rest})
        yield self._chunk({}, finish_reason="stop", citations=self._citations(answer))
        if self._asked.with_usage:
            yield _event(self._object("chat.completion.chunk", [], usage=_usage(answer)))

    def _citations(self, answer: Answer) -> list[dict[str, Any]]:
        return [
            {"number": citation.number, **passage_as_dict(citation.passage, self._name)}
            for citation in answer.citations
        ]

    def _own_reply(self) -> Answer | None:
        """Return the reply of the code to a client's task or a greeting, None to what a user asks."""
        question = self._asked.question
        if not is_utf8(question):
            return None  # what it is asked with refuses it
        if reply := reply_to_client_task(question):
            return Answer(question, reply, "answered")
        require_question(question)
        plan = read_plan(question)
        return Answer(question, reply_to_small_talk(plan), "answered", plan=plan) if plan.kind == "chat" else None

    def _ask(self) -> Job[ServedAnswer]:
        asked = AskRequest(question=self._asked.question, options=self._options, earlier=self._asked.earlier)
        return self._service.ask(asked, self._caller)

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return _event(self._object("chat.completion.chunk", [choice], **more))

    def _object(self, kind: str, choices: Sequence[Any], **more: Any) -> dict[str, Any]:
        named = {"id": self._id, "object": kind, "created": self._created, "model": self._model}
        return named | {"choices": choices} | more


def _usage(answer: Answer) -> dict[str, int]:
    """Return the tokens that the model read and wrote; a reply of the code has none."""
    return {
        "prompt_tokens": answer.tokens,
        "completion_tokens": answer.written,
        "total_tokens": answer.tokens + answer.written,
    }


def _event(value: object) -> bytes:
    return f"data: {printable_json(value)}\n\n".encode()
