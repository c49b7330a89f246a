"""A client of Qdrant that adds the key, turns errors into sentences and waits while the engine restarts."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from local_rag.cluster.hosts import Engine, private_addresses
from local_rag.errors import ClusterError
from local_rag.offline import is_loopback

KEY, KEY_FILE = "LOCAL_RAG_QDRANT_KEY", "LOCAL_RAG_QDRANT_KEY_FILE"
_TIMEOUT_SECONDS = 60
_PATIENCE_SECONDS = 40.0  # to wait for an engine that does not answer during a write
_NOT_FOUND = 404

Result = TypeVar("Result")


def _key() -> str | None:
    """Read the key from the environment, or from the file that the environment names."""
    if key := os.environ.get(KEY, "").strip():
        return key
    named = os.environ.get(KEY_FILE, "")
    if not named:
        return None
    try:
        return Path(named).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise ClusterError(f"The key file {named} cannot be read ({error}); correct {KEY_FILE}.") from None


class Client:
    """Call Qdrant; `models` holds the records of its protocol."""

    def __init__(self, engine: Engine, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.engine, self._sleep = engine, sleep
        private_addresses(engine.host)
        key = _key()
        if key and engine.url.startswith("http:") and not is_loopback(engine.host):
            raise ClusterError(f"The key would go to {engine.url} unencrypted; use https in `search_engine`.")
        try:
            import qdrant_client
            from qdrant_client.http import exceptions
        except ModuleNotFoundError as error:
            raise ClusterError(
                f"The setting `search_engine` needs {error.name}, which is not installed; run "
                "`pip install 'local-rag[cluster]'`."
            ) from None
        # Without the version check it sends no request of its own. A proxy would be another host.
        self.models: Any = qdrant_client.models
        self._errors: Any = exceptions
        self._client = qdrant_client.QdrantClient(
            url=engine.url,
            api_key=key,
            timeout=_TIMEOUT_SECONDS,
            check_compatibility=False,
            prefer_grpc=False,
            trust_env=False,
        )

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the client; raise ClusterError if the engine does not answer or refuses."""
        try:
            return getattr(self._client, method)(*arguments, **named)
        except self._errors.ResponseHandlingException as error:
            raise EngineAwayError(
                f"No search engine answers at {self.engine.url} ({error}); start it, or correct the setting "
                "`search_engine`."
            ) from None
        except self._errors.UnexpectedResponse as error:
            if error.status_code == _NOT_FOUND:
                raise NothingThereError(
                    f"The search engine at {self.engine.url} holds no library {self.engine.name}; run `local-rag "
                    "index`, or `local-rag cluster copy`."
                ) from None
            said = bytes(error.content or b"").decode(errors="replace")[:200]
            hint = f"set the key in {KEY}" if error.status_code in {401, 403} else "see its log"
            raise ClusterError(
                f"The search engine at {self.engine.url} refused ({error.status_code} {said}); {hint}."
            ) from None

    def insist(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call, and retry for a while if the engine does not answer; use it only for writes that may be repeated."""
        waited, pause = 0.0, 0.5
        while True:
            try:
                return self.call(method, *arguments, **named)
            except EngineAwayError:
                if waited >= _PATIENCE_SECONDS:
                    raise
                self._sleep(pause)
                waited, pause = waited + pause, min(2 * pause, 5.0)


class EngineAwayError(ClusterError):
    """The engine does not answer."""


class NothingThereError(ClusterError):
    """The engine does not hold what was requested."""
