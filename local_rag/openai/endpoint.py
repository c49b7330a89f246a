"""The routes under /v1: the models, of which the library is the only one, and its answers."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from local_rag.answering.conversation import reply_to_greeting
from local_rag.display import one_line, passage_as_dict, printable_json
from local_rag.errors import BusyError, LocalRagError, QuestionError
from local_rag.files import DEFAULT_FOLDER
from local_rag.library import Library
from local_rag.openai.client_tasks import reply_to_chore
from local_rag.openai.markdown import sources_as_markdown
from local_rag.openai.requests import Order, read_order
from local_rag.records import Answer, Turn

IGNORED_HEADER = "x-local-rag-ignored"
_PING_SECONDS = 10.0
_BODY_SECONDS = 20.0


class UnknownModelError(LocalRagError):
    """Report a model that is not the library."""


_STATUS: dict[type[Exception], int] = {QuestionError: 400, UnknownModelError: 404, BusyError: 429}


class Desk(Protocol):
    """What is needed of whoever holds the library."""

    @property
    def library(self) -> Library:
        """Return the library."""

    async def ask(
        self,
        question: str,
        *,
        client: str,
        earlier: Sequence[Turn] = (),
        on_text: Callable[[str], None] = ...,
        receive: Callable[[], Any] | None = ...,
    ) -> Answer:
        """Answer a question; `on_text` is called with the answer as it is written.

        `receive`, of a request, tells when whoever asked has gone away.
        """


def chat_face(desk: Desk) -> tuple[list[BaseRoute], Callable[[], AbstractAsyncContextManager[None]]]:
    """Return the routes, and nothing that must be entered while they are served."""
    started = int(time.time())

    async def models(_request: Request) -> Response:
        model = {"id": model_name(desk.library), "object": "model", "created": started, "owned_by": "local-rag"}
        return _json({"object": "list", "data": [model]})

    async def completions(request: Request) -> Response:
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                body = await request.body()
        except TimeoutError:
            return _error("The request did not arrive in time; send it again.", 408)
        try:
            order = read_order(body)
            name = model_name(desk.library)
            if order.model not in ("", name):
                raise UnknownModelError(f"There is no model {order.model[:60]!r} here; the library is {name!r}.")
            completion = Completion(desk, order, client=request.client.host if request.client else "unknown")
            headers = {IGNORED_HEADER: ", ".join(order.ignored)} if order.ignored else {}
            if order.stream:
                headers |= {"x-accel-buffering": "no"}
                return StreamingResponse(completion.events(), headers=headers, media_type="text/event-stream")
            return _json(await completion.whole(request.receive), headers=headers)
        except LocalRagError as error:
            code = "model_not_found" if isinstance(error, UnknownModelError) else None
            return _error(str(error), _STATUS.get(type(error), 503), code)

    return [
        Route("/v1/models", models, methods=["GET"]),
        Route("/v1/chat/completions", completions, methods=["POST"]),
    ], nullcontext


def model_name(library: Library) -> str:
    """Name a library as a model: after its folder, or where that has the usual name after the one it lies in."""
    folder = library.folder.parent if library.folder.name == DEFAULT_FOLDER.name else library.folder
    return one_line(folder.name) or "library"


class Completion:
    """Answer one request, whole or as a stream of events."""

    def __init__(self, desk: Desk, order: Order, *, client: str) -> None:
        self._desk, self._order, self._client = desk, order, client
        self._model = model_name(desk.library)
        self._id, self._created = f"chatcmpl-{secrets.token_hex(12)}", int(time.time())
        if not order.question.strip():
            raise QuestionError("The question is empty.")

    async def whole(self, receive: Callable[[], Any]) -> dict[str, Any]:
        """Return the completion; where `receive` tells that whoever asked has gone away, the answer is stopped."""
        answer = await self._answer(lambda _text: None, receive)
        message = {"role": "assistant", "content": answer.text + sources_as_markdown(answer)}
        choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
        return self._object("chat.completion", [choice], usage=_usage(answer), citations=_citations(answer))

    async def events(self) -> AsyncIterator[bytes]:
        """Yield the completion piece by piece; whoever stops reading stops the answer."""
        told: asyncio.Queue[str | None] = asyncio.Queue()
        asking = asyncio.ensure_future(self._answer(told.put_nowait))
        asking.add_done_callback(lambda _answer: told.put_nowait(None))
        try:
            yield self._chunk({"role": "assistant", "content": ""})
            while True:
                try:
                    async with asyncio.timeout(_PING_SECONDS):
                        text = await told.get()
                except TimeoutError:
                    yield b": still at work\n\n"
                    continue
                if text is None:
                    break
                yield self._chunk({"content": text})
            answer = await asking
            if sources := sources_as_markdown(answer):
                yield self._chunk({"content": sources})
            yield self._chunk({}, finish_reason="stop", citations=_citations(answer))
            if self._order.with_usage:
                yield _event(self._object("chat.completion.chunk", [], usage=_usage(answer)))
        except LocalRagError as error:
            yield _event(_error_object(str(error)))
        except Exception:
            yield _event(_error_object("The answer failed; see what `local-rag serve` has printed."))
            raise
        finally:
            asking.cancel()
        yield b"data: [DONE]\n\n"

    async def _answer(self, on_text: Callable[[str], None], receive: Callable[[], Any] | None = None) -> Answer:
        """Answer what a person asks from the documents, and all else by code."""
        question = self._order.question
        if reply := reply_to_chore(question) or reply_to_greeting(question):
            on_text(reply)
            return Answer(question, reply, answered=True)
        earlier = self._order.earlier
        return await self._desk.ask(question, client=self._client, earlier=earlier, on_text=on_text, receive=receive)

    def _chunk(self, delta: dict[str, Any], finish_reason: str | None = None, **more: Any) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason, "logprobs": None}
        return _event(self._object("chat.completion.chunk", [choice], **more))

    def _object(self, kind: str, choices: Sequence[Any], **more: Any) -> dict[str, Any]:
        named = {"id": self._id, "object": kind, "created": self._created, "model": self._model}
        return named | {"choices": choices} | more


def _usage(answer: Answer) -> dict[str, int]:
    """Count the tokens that the model has read and those of its answer; where code has answered there are none."""
    return {
        "prompt_tokens": answer.tokens,
        "completion_tokens": answer.written,
        "total_tokens": answer.tokens + answer.written,
    }


def _citations(answer: Answer) -> list[dict[str, Any]]:
    return [{"number": citation.number, **passage_as_dict(citation.passage)} for citation in answer.citations]


def _event(value: object) -> bytes:
    return f"data: {printable_json(value)}\n\n".encode()


def _json(value: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(printable_json(value) + "\n", status, headers, media_type="application/json")


def _error_object(message: str, code: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


def _error(message: str, status: int, code: str | None = None) -> Response:
    return _json(_error_object(message, code), status)
