"""The tools as a server of the protocol: the only module that knows its SDK, together with stdio.py."""

import asyncio
import importlib.metadata
import json
import sys
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

from local_rag.errors import LocalRagError
from local_rag.library import Library
from local_rag.mcp.desk import Desk
from local_rag.mcp.fitting import as_text
from local_rag.mcp.instructions import RULES, write_instructions
from local_rag.mcp.shapes import SHAPES, Arguments, listed_tools
from local_rag.mcp.tools import HANDLERS

NAME = "local-rag"
_BREATH_SECONDS = 0.1


def make_server(desk: Desk, instructions: str, *, with_ask: bool = False) -> Server[Any]:
    """Return a server of the tools."""
    tools = [types.Tool.model_validate(tool) for tool in listed_tools(with_ask=with_ask)]
    names = {tool.name for tool in tools}

    async def list_tools(_context: Any, _asked: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        # Whoever lists the tools is about to call them; the list itself is not to wait.
        asyncio.get_running_loop().call_later(_BREATH_SECONDS, desk.wake)
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        if asked.name not in names:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {asked.name[:60]!r}.")
        desk.wake()
        try:
            arguments = SHAPES[asked.name].arguments.model_validate(asked.arguments or {})
            result = await HANDLERS[asked.name](desk, arguments, _client_of(context))
        except ValidationError as error:
            return _failed(_refusal(asked.name, error))
        except LocalRagError as error:
            return _failed(str(error))
        except Exception:  # noqa: BLE001  one call has failed; the server goes on
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


def http_face(desk: Desk, *, with_ask: bool = False) -> tuple[list[BaseRoute], Callable[[], Any]]:
    """Return the route of the protocol over HTTP, and what must be entered while it is served.

    Hosts, origins, the token and sizes are the business of whoever serves it. No session is kept: each request stands
    alone, and an answer that takes long is a stream of events.
    """
    manager = StreamableHTTPSessionManager(
        make_server(desk, instructions_of(desk.library), with_ask=with_ask), stateless=True
    )

    @asynccontextmanager
    async def life() -> AsyncIterator[None]:
        async with manager.run():
            yield

    class Endpoint:
        async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
            await manager.handle_request(scope, receive, send)

    return [Route("/mcp", Endpoint(), methods=["GET", "POST", "DELETE"])], life


def instructions_of(library: Library) -> str:
    """Return what a host is told of a library, of one that is not there yet the rules alone."""
    try:
        with library.reading() as store:
            return write_instructions(store)
    except LocalRagError:
        return RULES


def _failed(reason: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=reason)], is_error=True)


def _refusal(name: str, error: ValidationError) -> str:
    """Say in a sentence what is wrong with the arguments of a tool."""
    arguments: type[Arguments] = SHAPES[name].arguments
    takes = [field.alias or one for one, field in arguments.model_fields.items()]
    found = error.errors(include_url=False, include_input=False)
    unknown = sorted({str(one["loc"][0])[:60] for one in found if one["type"] == "extra_forbidden"})
    if unknown:
        return f"{name} takes no {', '.join(unknown)}; it takes {', '.join(takes) or 'nothing'}."
    first = found[0]
    field = str(first["loc"][0]) if first["loc"] else "arguments"
    return f"{name} cannot take this {field} ({first['msg']}); it takes {', '.join(takes)}."


def _client_of(context: Any) -> str:
    """Name the machine that asks, by its address; empty where the request came through a pipe."""
    client = getattr(getattr(context, "request", None), "client", None)
    return str(client.host) if client else ""
