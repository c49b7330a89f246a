"""Talk to a server of the tools as a host does, with the SDK's own client, in this process."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
from mcp import Client

from local_rag.library import Library, Parts
from local_rag.mcp.desk import AskServer, OwnDesk
from local_rag.mcp.server import instructions_of, make_server
from tests.support import served

ERAS = ["legacy", "auto"]


def no_server(_order: Mapping[str, Any]) -> None:
    """Say that no server is running."""


def own_desk(folder: Path, made_of: Parts | None = None, ask_server: AskServer = no_server, **how: Any) -> OwnDesk:
    """Hold a library with fakes."""
    is_served = how.pop("is_served", lambda: False)
    return OwnDesk(Library(folder, parts=made_of or served.parts(), **how), ask_server, is_served)


def loaded(desk: OwnDesk) -> OwnDesk:
    """Wait until the models are loaded."""
    desk.wake()
    served.wait_until(lambda: not desk.loading)
    return desk


def talk(desk: OwnDesk, work: Callable[[Client], Awaitable[Any]], *, era: str = "auto", with_ask: bool = False) -> Any:
    """Do something as a client of a server that this desk is behind."""

    async def run() -> Any:
        server = make_server(desk, instructions_of(desk.library), with_ask=with_ask)
        async with Client(server, mode=era) as client:
            return await work(client)

    try:
        return anyio.run(run)
    finally:
        assert desk.close(30)


def call(desk: OwnDesk, name: str, arguments: dict[str, Any], *, era: str = "auto", with_ask: bool = False) -> Any:
    """Call a tool; return its structured result, or the text of its error."""

    async def work(client: Client) -> Any:
        result = await client.call_tool(name, arguments)
        return result.content[0].text if result.is_error else result.structured_content  # type: ignore[union-attr]

    return talk(desk, work, era=era, with_ask=with_ask)
