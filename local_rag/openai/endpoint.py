"""The routes under /v1: the library as the only model, and its answers as chat completions."""

import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from local_rag.asking import EVERYTHING, AskOptions, Filters
from local_rag.display import Name, one_line, passage_as_dict, printable, printable_json
from local_rag.errors import LocalRagError, MissingError
from local_rag.files import is_utf8
from local_rag.openai.chat_requests import ChatRequest, read_request, reply_to_client_task
from local_rag.records import Answer, Written
from local_rag.serving.answer_markdown import AnswerPieces, answer_as_markdown, escaped
from local_rag.serving.http import EventStream, caller_of, error_object, json_response, status_of, unless_gone
from local_rag.serving.job import Failure, Job, Ping, Result, failure
from local_rag.serving.requests import AskRequest, Caller, ServedAnswer
from local_rag.serving.service import Service
from local_rag.text.small_talk import reply_to_small_talk

IGNORED_HEADER = "x-local-rag-ignored"
_COMPLETIONS = "/v1/chat/completions"
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
        name = await service.aside(service.library_for(caller.person).place_names)
        completion = Completion(service, asked, caller, name, filters)
        headers = {IGNORED_HEADER: ", ".join(asked.ignored)} if asked.ignored else {}
        if asked.stream:
            return completion.stream(headers)
        return json_response(await completion.whole(request.receive), headers=headers)

    async def nothing(request: Request) -> Response:
        raise MissingError(f"There is nothing at {request.method} {one_line(request.url.path)[:100]} here.")

    return [
        Route("/v1/models", _reported(models), methods=["GET"]),
        Route("/v1/models/{model:path}", _reported(one_model), methods=["GET"]),
        Route(_COMPLETIONS, _reported(completions), methods=["POST"]),
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
        reply = reply_to_client_task(question) or reply_to_small_talk(question)
        return Answer(question, reply, "answered") if reply else None

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
