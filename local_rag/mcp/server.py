"""The tools as a server of the protocol; only this module and stdio.py use its SDK."""

import asyncio
import importlib.metadata
import itertools
import json
import sys
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from local_rag.asking import HOST
from local_rag.display import shortened
from local_rag.errors import LocalRagError
from local_rag.mcp.shapes import RULES, SHAPES, listed_tools, write_instructions
from local_rag.mcp.token_budget import as_text
from local_rag.mcp.tool_arguments import Arguments
from local_rag.mcp.tools import HANDLERS
from local_rag.serving.http import caller_of, person_of
from local_rag.serving.requests import Caller
from local_rag.serving.service import Service
from local_rag.view import View

NAME = "local-rag"
_ROUTE = "/mcp"
_WAKE_SECONDS = 0.1
_LONGEST_MESSAGE = 2000  # characters of what a host is told while it waits


def make_server(service: Service, instructions: str, *, with_ask: bool = False) -> Server[Any]:
    """Return a server of the tools."""
    tools = [types.Tool.model_validate(tool) for tool in listed_tools(with_ask=with_ask)]
    names = {tool.name for tool in tools}

    async def list_tools(_context: Any, _asked: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        # A client that lists the tools is about to call one. The list itself must not wait for the models.
        asyncio.get_running_loop().call_later(_WAKE_SECONDS, service.wake)
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        number = itertools.count(1)

        async def tell(message: str) -> None:
            """Tell a message, whose number is what progresses; how many will follow is not known."""
            await context.session.report_progress(next(number), None, shortened(message, _LONGEST_MESSAGE))

        if asked.name not in names:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {asked.name[:60]!r}.")
        service.wake()
        try:
            arguments = SHAPES[asked.name].arguments.model_validate(asked.arguments or {})
            result = await HANDLERS[asked.name](service, arguments, _caller_of(context), tell)
        except ValidationError as error:
            return _failed(_refusal(asked.name, error))
        except LocalRagError as error:
            return _failed(str(error))
        except Exception:  # noqa: BLE001  only this call has failed
            traceback.print_exc(file=sys.stderr)
            return _failed(f"{asked.name} failed; see what local-rag has printed to stderr.")
        text = as_text(result)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)], structured_content=json.loads(text)
        )

    return Server(
        NAME,
        version=importlib.metadata.version(NAME),
        instructions=instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def http_interface(
    service: Service, *, with_ask: bool = False, fresh_seconds: float = 5.0
) -> tuple[list[BaseRoute], Callable[[], Any]]:
    """Return the route of the protocol over HTTP, and what must be entered while it is served.

    The web server checks hosts, origins, the token and sizes. No session is kept: each request stands alone, and an
    answer that takes long is a stream of events. What a host is told of the library is at most `fresh_seconds` old.
    """
    server, other = (make_server(service, RULES, with_ask=with_ask) for _ in range(2))
    manager = StreamableHTTPSessionManager(server, stateless=True)
    # Who may not see the whole library is told nothing of it.
    of_others = StreamableHTTPSessionManager(other, stateless=True)
    told = -fresh_seconds

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        async with manager.run(), of_others.run():
            yield

    class Endpoint:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            nonlocal told
            if person_of(scope).limits:
                await of_others.handle_request(scope, receive, send)
                return
            if time.monotonic() - told >= fresh_seconds:  # each request may begin a conversation
                server.instructions, told = (
                    await service.aside(lambda: instructions_of(service.library_for(HOST))),
                    time.monotonic(),
                )
            await manager.handle_request(scope, receive, send)

    # Nothing is ever sent but answers, so there is no stream to GET and no session to DELETE.
    return [Route(_ROUTE, Endpoint(), methods=["POST"])], running


def instructions_of(library: View) -> str:
    """Return the instructions for a host; if the library cannot be read, only the rules."""
    try:
        contents = library.documents.contents()
    except LocalRagError:
        return RULES
    return write_instructions(contents.documents, contents.roots)


def _failed(reason: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=reason)], is_error=True)


def _refusal(name: str, error: ValidationError) -> str:
    """Return what is wrong with the arguments of a tool, as a sentence."""
    arguments: type[Arguments] = SHAPES[name].arguments
    fields = sorted(arguments.model_fields.items(), key=lambda one: not one[1].is_required())
    takes = [field.alias or one for one, field in fields]
    problems = error.errors(include_url=False, include_input=False)
    unknown = sorted({str(one["loc"][0])[:60] for one in problems if one["type"] == "extra_forbidden"})
    if unknown:
        return f"{name} takes no {', '.join(unknown)}; it takes {', '.join(takes) or 'nothing'}."
    first = problems[0]
    field = str(first["loc"][0]) if first["loc"] else "arguments"
    return f"{name} cannot take this {field} ({first['msg']}); it takes {', '.join(takes)}."


def _caller_of(context: Any) -> Caller:
    """Return who calls a tool: over HTTP whom the web server knows, through a pipe the user of this machine."""
    request = getattr(context, "request", None)
    return caller_of(request.scope, _ROUTE) if request is not None else Caller("", _ROUTE)
