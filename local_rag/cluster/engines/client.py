"""A client of Qdrant that adds the key, turns errors into sentences and waits while the engine restarts.

The engine is reached encrypted and known by its certificate; over http only where the settings name it.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local_rag.cluster.hosts import Engine, private_addresses
from local_rag.errors import ClusterError
from local_rag.files import needs_package
from local_rag.offline import is_loopback
from local_rag.settings import SearchEngineSettings

KEY, KEY_FILE = "LOCAL_RAG_QDRANT_KEY", "LOCAL_RAG_QDRANT_KEY_FILE"
DIRECT = SearchEngineSettings()  # with the certificates that the system trusts
_TIMEOUT_SECONDS = 60
_PATIENCE_SECONDS = 40.0  # to wait for an engine that does not answer during a write
_NOT_FOUND, _CONFLICT, _SERVERS_FAULT = 404, 409, 500


class Client:
    """Call Qdrant; `models` holds the records of its protocol. `access` says with which certificates."""

    def __init__(
        self, engine: Engine, access: SearchEngineSettings = DIRECT, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.engine, self.sleep = engine, sleep
        private_addresses(engine.host)
        verification = _verification(engine, access)
        try:
            import qdrant_client
            from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
            from qdrant_client.http import exceptions
        except ModuleNotFoundError as error:
            raise ClusterError(needs_package("The setting `search_engine.address`", error.name, "cluster")) from None
        # Without the version check it sends no request of its own. A proxy would be another host.
        self.models: Any = qdrant_client.models
        self._errors: Any = exceptions
        self._overloaded: Any = ResourceExhaustedResponse
        self._client = qdrant_client.QdrantClient(
            url=engine.url,
            api_key=_key(),
            timeout=_TIMEOUT_SECONDS,
            check_compatibility=False,
            prefer_grpc=False,
            trust_env=False,
            verify=verification,
        )

    def call(self, method: str, *arguments: Any, **named: Any) -> Any:
        """Call a method of the client; raise ClusterError if the engine does not answer or refuses."""
        engine = f"The search engine at {self.engine.url}"
        try:
            return getattr(self._client, method)(*arguments, **named)
        except self._errors.ResponseHandlingException as error:
            if refusal := next((meaning for words, meaning in _REFUSALS.items() if words in str(error)), ""):
                raise ClusterError(f"The connection to {self.engine.url} is refused: {refusal}.") from None
            raise EngineAwayError(
                f"No search engine answers at {self.engine.url} ({error}); start it, or correct the setting "
                "`search_engine.address`."
            ) from None
        except self._overloaded as error:
            raise EngineAwayError(f"{engine} has too much to do ({error}); run the command again later.") from None
        except self._errors.UnexpectedResponse as error:
            status = error.status_code or 0
            if status == _NOT_FOUND:
                raise NothingThereError(
                    f"{engine} holds no library {self.engine.name}; run `local-rag index`, or `local-rag cluster copy`."
                ) from None
            reply = bytes(error.content or b"").decode(errors="replace")[:200]
            if status == _CONFLICT or "already exists" in reply:
                raise AlreadyThereError(f"{engine} has it already ({reply}).") from None
            if status >= _SERVERS_FAULT:
                raise EngineAwayError(f"{engine} cannot answer ({status} {reply}); see its log.") from None
            hint = f"set the key in {KEY}" if status in {401, 403} else "see its log"
            raise ClusterError(f"{engine} refused ({error.status_code} {reply}); {hint}.") from None

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


class EngineAwayError(ClusterError):
    """The engine does not answer."""


class AlreadyThereError(ClusterError):
    """The engine already holds what it was to make."""


class NothingThereError(ClusterError):
    """The engine does not hold what was requested."""


# What OpenSSL says, and what it means here.
_REFUSALS = {
    "certificate has expired": "its certificate has expired; renew it on the server",
    "certificate is not yet valid": "its certificate is not valid yet; compare the clocks of both machines",
    **dict.fromkeys(
        ("mismatch", "doesn't match"), "its certificate names another host; use that name in `search_engine.address`"
    ),
    "CERTIFICATE_VERIFY_FAILED": "no authority that is trusted here has signed its certificate; set `search_engine.ca` "
    "to the certificate of the authority",
    "CERTIFICATE_REQUIRED": "it wants to know this machine; set `search_engine.certificate` and "
    "`search_engine.key_file`",
    "UNKNOWN_CA": "it does not know who signed `search_engine.certificate`; use one that it trusts",
    "WRONG_VERSION_NUMBER": "it does not speak TLS; correct the scheme in `search_engine.address`",
}


def _verification(engine: Engine, access: SearchEngineSettings) -> Any:
    """Return the TLS context for an engine, False for plain http; raise ClusterError where http is not allowed."""
    if engine.url.startswith("http:"):
        _require_named(engine, access)
        return False
    # Imported here because a Python without ssl can index too.
    import ssl

    import truststore

    context: ssl.SSLContext
    try:
        if access.ca:
            context = ssl.create_default_context(cafile=_existing("ca", access.ca))
        else:
            context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _identify(context, access)
    except ssl.SSLError as error:
        named = ", ".join(filter(None, (access.ca, access.certificate, access.key_file)))
        raise ClusterError(
            f"{named} cannot be used ({error.reason or error}); name PEM files in `search_engine.ca`, "
            "`search_engine.certificate` and `search_engine.key_file`, the key without a password."
        ) from None
    return context


def _require_named(engine: Engine, access: SearchEngineSettings) -> None:
    if is_loopback(engine.host):
        return
    if _key():
        raise ClusterError(f"The key would go to {engine.url} unencrypted; use https in `search_engine.address`.")
    if engine.host not in access.http:
        raise ClusterError(
            f"All texts would go to {engine.url} unencrypted; use https in `search_engine.address`, or name "
            f"{engine.host} in `search_engine.http` if its network is encrypted otherwise."
        )


def _identify(context: Any, access: SearchEngineSettings) -> None:
    if bool(access.certificate) != bool(access.key_file):
        raise ClusterError(
            "The settings `search_engine.certificate` and `search_engine.key_file` belong together; set both (the "
            f"engine's own key goes into a file that {KEY_FILE} names)."
        )
    if access.certificate:
        certificate, key = _existing("certificate", access.certificate), _existing("key_file", access.key_file)
        if key.stat().st_mode & 0o077:
            raise ClusterError(f"Other users may read the private key {key}; run `chmod 600 {key}`.")
        context.load_cert_chain(certificate, key, password=lambda: b"")


def _existing(setting: str, path: str) -> Path:
    file = Path(path).expanduser()
    try:
        file.open("rb").close()
    except OSError as error:
        raise ClusterError(
            f"{file} cannot be read ({error.strerror}); correct the setting `search_engine.{setting}`."
        ) from None
    return file


def _key() -> str | None:
    """Read the engine's key from the environment, or from the file that the environment names."""
    if key := os.environ.get(KEY, "").strip():
        return key
    if not (named := os.environ.get(KEY_FILE, "")):
        return None
    try:
        return Path(named).expanduser().read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise ClusterError(f"The key file {named} cannot be read ({error}); correct {KEY_FILE}.") from None
