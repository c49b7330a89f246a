"""Talk to a server of the tools as a host does, with the SDK's own client, in this process."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from mcp import Client

from local_rag.asking import HOST
from local_rag.library import Library, Parts
from local_rag.mcp.server import instructions_of, make_server
from local_rag.serving.service import AskServer, LocalService
from local_rag.serving.worker import LibraryWorker
from tests.support import served

ERAS = ["legacy", "auto"]


def no_server(_request: Any, _stop: Any) -> None:
    """Say that no server is running."""


def local_service(
    folder: Path, made_of: Parts | None = None, ask_server: AskServer = no_server, **how: Any
) -> LocalService:
    """Hold a library with fakes, as `local-rag mcp` does."""
    is_served = how.pop("is_served", lambda: False)
    worker = LibraryWorker(lambda: Library(folder, parts=made_of or served.parts(), **how), answering=False)
    worker.start()
    service = LocalService(worker, ask_server, is_served)
    service.patience = 0.2
    return service


def loaded(service: LocalService) -> LocalService:
    """Wait until the models are loaded."""
    service.wake()
    served.wait_until(lambda: not service.loading)
    return service


def talk(
    service: LocalService, work: Callable[[Client], Awaitable[Any]], *, era: str = "auto", with_ask: bool = False
) -> Any:
    """Do something as a client of a server of this service."""

    async def run() -> Any:
        server = make_server(service, instructions_of(service.library_for(HOST)), with_ask=with_ask)
        async with Client(server, mode=era) as client:
            return await work(client)

    try:
        return anyio.run(run)
    finally:
        assert service.worker.close(30)


def call(
    service: LocalService, name: str, arguments: dict[str, Any], *, era: str = "auto", with_ask: bool = False
) -> Any:
    """Call a tool; return its structured result, or the text of its error."""

    async def work(client: Client) -> Any:
        result = await client.call_tool(name, arguments)
        return result.content[0].text if result.is_error else result.structured_content  # type: ignore[union-attr]

    return talk(service, work, era=era, with_ask=with_ask)
