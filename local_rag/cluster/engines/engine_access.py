"""How a search engine is reached: encrypted, known by its certificate, with a key; or over http where that is named."""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local_rag.cluster.hosts import Engine
from local_rag.errors import ClusterError
from local_rag.offline import is_loopback
from local_rag.settings import Settings

KEY, KEY_FILE = "LOCAL_RAG_QDRANT_KEY", "LOCAL_RAG_QDRANT_KEY_FILE"


@dataclass(frozen=True, slots=True)
class Access:
    """The files and hosts that the settings name; an empty path stands for none."""

    ca: str = ""
    certificate: str = ""
    key_file: str = ""
    http: frozenset[str] = field(default_factory=frozenset)

    @classmethod
    def of(cls, settings: Settings) -> "Access":
        """Return what the settings say."""
        return cls(
            settings.search_engine_ca,
            settings.search_engine_certificate,
            settings.search_engine_key_file,
            frozenset(settings.search_engine_http),
        )

    def verification(self, engine: Engine) -> Any:
        """Return the TLS context for an engine, False for plain http; raise ClusterError where http is not allowed."""
        if engine.url.startswith("http:"):
            self._require_named(engine)
            return False
        # Imported here because a Python without ssl can index too.
        import ssl

        import truststore

        context: ssl.SSLContext
        try:
            if self.ca:
                context = ssl.create_default_context(cafile=_existing("search_engine_ca", self.ca))
            else:
                context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._identify(context)
        except ssl.SSLError as error:
            named = ", ".join(one for one in (self.ca, self.certificate, self.key_file) if one)
            raise ClusterError(
                f"{named} cannot be used ({error.reason or error}); name PEM files in `search_engine_ca`, "
                "`search_engine_certificate` and `search_engine_key_file`, the key without a password."
            ) from None
        return context

    def _require_named(self, engine: Engine) -> None:
        if is_loopback(engine.host):
            return
        if self.key():
            raise ClusterError(f"The key would go to {engine.url} unencrypted; use https in `search_engine`.")
        if engine.host not in self.http:
            raise ClusterError(
                f"All texts would go to {engine.url} unencrypted; use https in `search_engine`, or name {engine.host} "
                "in `search_engine_http` if its network is encrypted otherwise."
            )

    def _identify(self, context: Any) -> None:
        """Let the context show the certificate of this machine."""
        if bool(self.certificate) != bool(self.key_file):
            raise ClusterError(
                "The settings `search_engine_certificate` and `search_engine_key_file` belong together; set both (the "
                f"engine's own key goes into a file that {KEY_FILE} names)."
            )
        if self.certificate:
            certificate = _existing("search_engine_certificate", self.certificate)
            key = _existing("search_engine_key_file", self.key_file)
            if key.stat().st_mode & 0o077:
                raise ClusterError(f"Other users may read the private key {key}; run `chmod 600 {key}`.")
            context.load_cert_chain(certificate, key, password=lambda: b"")

    @staticmethod
    def key() -> str | None:
        """Read the engine's key from the environment, or from the file that the environment names."""
        if key := os.environ.get(KEY, "").strip():
            return key
        named = os.environ.get(KEY_FILE, "")
        if not named:
            return None
        try:
            return Path(named).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, ValueError) as error:
            raise ClusterError(f"The key file {named} cannot be read ({error}); correct {KEY_FILE}.") from None


DIRECT = Access()  # with the certificates that the system trusts


def _existing(setting: str, path: str) -> Path:
    """Return the path of a readable file; raise ClusterError for any other."""
    file = Path(path).expanduser()
    try:
        file.open("rb").close()
    except OSError as error:
        raise ClusterError(f"{file} cannot be read ({error.strerror}); correct the setting `{setting}`.") from None
    return file
