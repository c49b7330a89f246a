"""Answer the first messages of a client before the SDK is imported, which takes longer than some hosts wait.

The replies are those of the SDK, as tests check. Everything else is left to the SDK.
"""

import json
from collections.abc import Mapping
from typing import Any

from local_rag.mcp.shapes import listed_tools

# As in mcp_types.version: the versions with a handshake, the latest last, and the version whose requests stand alone.
HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSION = "2026-07-28"
_META = "io.modelcontextprotocol/"


class Greeting:
    """Reply to lines of a client until a line comes that only the SDK can answer.

    The SDK must see the `unanswered` lines; the ids of those already replied to are in `answered`.
    """

    def __init__(self, name: str, version: str, instructions: str, *, with_ask: bool) -> None:
        self._server, self._instructions, self._with_ask = {"name": name, "version": version}, instructions, with_ask
        self._shaken = self._over = False
        self.has_listed = False
        self.unanswered = list[bytes]()
        self.answered = set[str]()

    @property
    def is_enough(self) -> bool:
        """Whether every request so far is answered."""
        return not self._over

    def reply(self, line: bytes) -> bytes | None:
        """Return the reply to a line, None if it needs none or the SDK must reply."""
        message, result = _message(line), None
        if message is not None and not self._over:
            method, params = message["method"], message.get("params", {})
            if method == "initialize":
                result = self._shake_hands(params)
            elif method == "server/discover" and _is_modern(params):
                result = self._discover()
            elif method == "tools/list" and set(params) <= {"_meta"} and self._may_list(params):
                result = self._list(modern=_is_modern(params))
        if result is None:
            self._over = self._over or message is not None
            self.unanswered.append(line)
            return None
        assert message is not None
        if message["method"] == "initialize":  # the SDK must see it too
            self.unanswered.append(line)
            self.answered.add(json.dumps(message["id"]))
        return json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode() + b"\n"

    def _shake_hands(self, params: Mapping[str, Any]) -> dict[str, Any] | None:
        asked, client = params.get("protocolVersion"), params.get("clientInfo")
        is_whole = isinstance(client, dict) and isinstance(params.get("capabilities"), dict)
        named = is_whole and all(isinstance(client.get(name), str) for name in ("name", "version"))  # type: ignore[union-attr]
        if self._shaken or not named or not isinstance(asked, str):
            return None
        self._shaken = True
        return {
            "protocolVersion": asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": self._server,
            "instructions": self._instructions,
        }

    def _discover(self) -> dict[str, Any]:
        return {
            "supportedVersions": [MODERN_VERSION],
            "capabilities": {"tools": {"listChanged": False}},
            "instructions": self._instructions,
            **self._modern(),
        }

    def _list(self, *, modern: bool) -> dict[str, Any]:
        self.has_listed = True
        return {"tools": listed_tools(with_ask=self._with_ask), **(self._modern() if modern else {})}

    def _modern(self) -> dict[str, Any]:
        return {
            "resultType": "complete",
            "cacheScope": "private",
            "ttlMs": 0,
            "_meta": {f"{_META}serverInfo": self._server},
        }

    def _may_list(self, params: Mapping[str, Any]) -> bool:
        """Return whether the request for the list matches the way in which the conversation began."""
        return _is_modern(params) != self._shaken and (self._shaken or _is_modern(params))


def _message(line: bytes) -> dict[str, Any] | None:
    """Return the request in a line, None for anything else."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or not isinstance(message.get("method"), str):
        return None
    has_id = isinstance(message.get("id"), (int, str)) and not isinstance(message["id"], bool)
    return message if has_id and isinstance(message.get("params", {}), dict) else None


def _is_modern(params: Mapping[str, Any]) -> bool:
    """Return whether a request stands alone: it names its version and its client."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or meta.get(f"{_META}protocolVersion") != MODERN_VERSION:
        return False
    client = meta.get(f"{_META}clientInfo")
    named = isinstance(client, dict) and all(isinstance(client.get(name), str) for name in ("name", "version"))
    return named and isinstance(meta.get(f"{_META}clientCapabilities"), dict)
