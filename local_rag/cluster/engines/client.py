"""A client of Qdrant that adds the key, turns errors into sentences and waits while the engine restarts."""

import time
from collections.abc import Callable
from typing import Any, TypeVar

from local_rag.cluster.engines.engine_access import DIRECT, KEY, Access
from local_rag.cluster.hosts import Engine, private_addresses
from local_rag.errors import ClusterError
from local_rag.files import extra_command

_TIMEOUT_SECONDS = 60
_PATIENCE_SECONDS = 40.0  # to wait for an engine that does not answer during a write
_NOT_FOUND, _CONFLICT, _SERVERS_FAULT = 404, 409, 500

Result = TypeVar("Result")


class Client:
    """Call Qdrant; `models` holds the records of its protocol."""

    def __init__(self, engine: Engine, access: Access = DIRECT, *, sleep: Callable[[float], None] = time.sleep) -> None:
        self.engine, self.sleep = engine, sleep
        private_addresses(engine.host)
        verification = access.verification(engine)
        try:
            import qdrant_client
            from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
            from qdrant_client.http import exceptions
        except ModuleNotFoundError as error:
            raise ClusterError(
                f"The setting `search_engine` needs {error.name}, which is not installed; run "
                f"`{extra_command('cluster')}`."
            ) from None
        # Without the version check it sends no request of its own. A proxy would be another host.
        self.models: Any = qdrant_client.models
        self._errors: Any = exceptions
        self._overloaded: Any = ResourceExhaustedResponse
        self._client = qdrant_client.QdrantClient(
            url=engine.url,
            api_key=access.key(),
            timeout=_TIMEOUT_SECONDS,
            check_compatibility=False,
            prefer_grpc=False,
            trust_env=False,
            verify=verification,
        )

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the client; raise ClusterError if the engine does not answer or refuses."""
        try:
            return getattr(self._client, method)(*arguments, **named)
        except self._errors.ResponseHandlingException as error:
            if refused := _refused(str(error)):
                raise ClusterError(f"The connection to {self.engine.url} is refused: {refused}.") from None
            raise EngineAwayError(
                f"No search engine answers at {self.engine.url} ({error}); start it, or correct the setting "
                "`search_engine`."
            ) from None
        except self._overloaded as error:
            raise EngineAwayError(
                f"The search engine at {self.engine.url} has too much to do ({error}); run the command again later."
            ) from None
        except self._errors.UnexpectedResponse as error:
            if error.status_code == _NOT_FOUND:
                raise NothingThereError(
                    f"The search engine at {self.engine.url} holds no library {self.engine.name}; run `local-rag "
                    "index`, or `local-rag cluster copy`."
                ) from None
            said = bytes(error.content or b"").decode(errors="replace")[:200]
            if error.status_code == _CONFLICT or "already exists" in said:
                raise AlreadyThereError(f"The search engine at {self.engine.url} has it already ({said}).") from None
            if (error.status_code or 0) >= _SERVERS_FAULT:
                raise EngineAwayError(
                    f"The search engine at {self.engine.url} cannot answer ({error.status_code} {said}); see its log."
                ) from None
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
                self.sleep(pause)
                waited, pause = waited + pause, min(2 * pause, 5.0)


# What OpenSSL says, and what it means here.
_REFUSALS = {
    "certificate has expired": "its certificate has expired; renew it on the server",
    "certificate is not yet valid": "its certificate is not valid yet; compare the clocks of both machines",
    "mismatch": "its certificate names another host; use that name in `search_engine`",
    "doesn't match": "its certificate names another host; use that name in `search_engine`",
    "CERTIFICATE_VERIFY_FAILED": "no authority that is trusted here has signed its certificate; set `search_engine_ca` "
    "to the certificate of the authority",
    "CERTIFICATE_REQUIRED": "it wants to know this machine; set `search_engine_certificate` and "
    "`search_engine_key_file`",
    "UNKNOWN_CA": "it does not know who signed `search_engine_certificate`; use one that it trusts",
    "WRONG_VERSION_NUMBER": "it does not speak TLS; correct the scheme in `search_engine`",
}


def _refused(said: str) -> str:
    """Return why TLS refuses a connection, empty if something else is wrong."""
    return next((meaning for words, meaning in _REFUSALS.items() if words in said), "")


class EngineAwayError(ClusterError):
    """The engine does not answer."""


class AlreadyThereError(ClusterError):
    """The engine already holds what it was to make."""


class NothingThereError(ClusterError):
    """The engine does not hold what was requested."""
