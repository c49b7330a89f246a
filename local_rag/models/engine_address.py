"""The address of an engine that already runs, such as Ollama or llama-server: `http://127.0.0.1:11434/v1#MODEL`."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from local_rag.errors import ModelError
from local_rag.offline import is_loopback
from local_rag.relay import open_relay
from local_rag.settings import Settings, own_settings_file


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """Where an engine listens, the path of its interface, and the model that it should use; empty: its only one."""

    tls: bool
    host: str
    port: int
    path: str
    model: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http{'s' * self.tls}://{host}:{self.port}{self.path}"


def is_engine(name: str) -> bool:
    """Return whether the name of a model is the address of an engine."""
    return name.startswith(("http://", "https://"))


def parse_engine(name: str) -> EngineAddress:
    """Parse the address of an engine; raise ModelError if it is none."""
    try:
        parts = urlsplit(name)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if not host or parts.query or parts.username or parts.password:
        raise ModelError(
            f"{name!r} is no address of an engine; write it as http://127.0.0.1:11434/v1#MODEL, without a password."
        )
    tls = parts.scheme == "https"
    return EngineAddress(tls, host, port or (443 if tls else 80), parts.path.rstrip("/") or "/v1", parts.fragment)


def permitted_engine(settings: Settings) -> EngineAddress | None:
    """Return the engine that the settings name, or None; raise ModelError if its host is not permitted."""
    if not is_engine(settings.answer_model):
        return None
    engine = parse_engine(settings.answer_model)
    if not is_loopback(engine.host) and engine.host not in settings.answer_hosts:
        raise ModelError(
            f"{engine.host} is another machine, and questions and passages would be sent there; if you want that, write"
            f' `answer_hosts = ["{engine.host}"]` into {own_settings_file()}.'
        )
    return engine


def open_engine_relay(settings: Settings) -> EngineAddress | None:
    """Let this process reach the engine that the settings name even after it is sealed; return it."""
    if engine := permitted_engine(settings):
        open_relay(engine.host, engine.port)
    return engine
