"""Generate with an engine that already runs, through the interface of OpenAI: Ollama, llama-server, vLLM, LM Studio.

Such an engine has no tokens for us: prompts are cut into pieces of text that stand for tokens, and become messages
again. It cannot be told to keep the beginning of a prompt, and may not tell how probable its words were.
"""

import http.client
import json
import re
import secrets
import socket
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import ModelError, StoppedError
from local_rag.llama.generator import CLOSING, OPENING, Counts, Request, Stoppable, Token
from local_rag.models.engine_address import EngineAddress
from local_rag.relay import socket_of

_CONTEXT_TOKENS = 4096  # what Ollama has unless told otherwise; it cuts longer prompts without saying so
_MOST_TOKENS = 2**50
_SECONDS = 600.0
_STOP_SECONDS = 0.1
_MOST_BYTES = 4_000_000  # of one reply
_LOGPROBS = 20  # the most that the interface allows
_THOUGHT_TOKENS = 2048  # for a model that cannot be told not to think
_HEADROOM = 64
_PIECES_PER_TOKEN = 8  # the most that are read: an engine may write on beyond the tokens that it was asked for
_REFUSED = (http.HTTPStatus.BAD_REQUEST, http.HTTPStatus.UNPROCESSABLE_ENTITY)
# How engines are told not to think, and not to avoid words of the prompt: llama-cpp-python's server does so by default.
# Most ignore fields that they do not know; one that refuses them is asked with fewer.
_TEMPLATE: dict[str, Any] = {"chat_template_kwargs": {"enable_thinking": False}, "repeat_penalty": 1.0}
_WAYS: tuple[dict[str, Any], ...] = ({**_TEMPLATE, "reasoning_effort": "none"}, _TEMPLATE, {})
# Pieces are a little shorter than the tokens of most models, so that what fits here fits there.
_PIECE = re.compile(r" ?[A-Za-z]{1,5}|\d{1,3}|\s{1,8}|[^\W\d_]{1,2}|.", re.DOTALL)
_SYSTEM, _USER, _END = range(3)  # the pieces that stand for the parts of a chat


class TextVocabulary:
    """Pieces of text in the place of tokens."""

    context_length = _CONTEXT_TOKENS

    def __init__(self, path: Path) -> None:
        self.path = path
        # Nothing in a document can equal these marks.
        self._marks = [f"\ue000{secrets.token_hex(8)}{name}\ue001" for name in ("system", "user", "end")]
        self._special = re.compile(f"({'|'.join(map(re.escape, self._marks))})")
        self._texts = ["", "", ""]
        self._ids: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Return the pieces of a text; with `special`, also the marks of `chat_frame`."""
        if not special:
            return [self._id(piece) for piece in _PIECE.findall(text)]
        tokens = list[int]()
        for part in self._special.split(text):
            tokens += [self._marks.index(part)] if part in self._marks else self.tokenize(part)
        return tokens

    def detokenize(self, tokens: Sequence[int]) -> str:
        """Return the text of pieces."""
        return "".join(self._texts[token] for token in tokens)

    def chat_frame(self, system: str) -> tuple[str, str]:
        """Return marks that become the messages of a chat."""
        first, user, end = self._marks
        return f"{first}{system}{user}", end

    def messages(self, tokens: Sequence[int]) -> list[dict[str, str]]:
        """Return the messages of a prompt."""
        tokens = list(tokens)
        user, end = tokens.index(_USER), tokens.index(_END)
        return [
            {"role": "system", "content": self.detokenize(tokens[:user]).strip()},
            {"role": "user", "content": self.detokenize(tokens[user:end])},
        ]

    def _id(self, piece: str) -> int:
        if piece not in self._ids:
            self._ids[piece] = len(self._texts)
            self._texts.append(piece)
        return self._ids[piece]


class Thoughts:
    """Skip the thoughts before an answer: they are no part of it, and are never counted or kept.

    Takes a text piece by piece and gives back what is no thought. Only a thought at the very beginning is one.
    """

    def __init__(self) -> None:
        self._held, self.inside = "", False
        self._begun = self._said = False

    def skip(self, text: str) -> str:
        """Return what of the text so far is now known to belong to the answer."""
        if self._begun and not self.inside:
            text = text if self._said else text.lstrip()  # thought and answer are some empty lines apart
            self._said |= bool(text)
            return text
        self._held += text
        if not self.inside:
            beginning = self._held.lstrip()
            if OPENING.startswith(beginning[: len(OPENING)]) and len(beginning) < len(OPENING):
                return ""  # it may still become the mark
            self._begun = True
            if not beginning.startswith(OPENING):
                answer, self._held, self._said = self._held, "", True
                return answer
            self.inside, self._held = True, beginning[len(OPENING) :]
        _, closed, answer = self._held.partition(CLOSING)
        if not closed:
            self._held = self._held[-len(CLOSING) :]
            return ""
        self.inside, self._held = False, ""
        return self.skip(answer)

    def rest(self) -> str:
        """Return what was held back when the text ended: an unfinished mark is text, an unfinished thought is none."""
        return "" if self.inside else self._held


class ExternalEngine(Stoppable):
    """Ask an engine for one completion after another."""

    def __init__(self, address: EngineAddress, *, context_tokens: Callable[[int, int], int]) -> None:
        super().__init__()
        self._address = address
        self._name, most_tokens = self._ask_abilities()
        self.counts = Counts()
        self.context_tokens = context_tokens(most_tokens, 1)
        self.model = TextVocabulary(Path(self._name))
        self.tells_odds: bool | None = None  # None: not asked yet
        self._ways = list(_WAYS)
        self._thought_tokens = 0

    def stream(self, requests: Iterable[Request]) -> Generator[Token]:
        """Yield every piece as it arrives, and one last `Token` with None for each request."""
        for request in requests:
            prompt = [*request.prefix[: request.start], *request.suffix]
            self.counts.prompt += len(prompt)
            self.counts.suffix += len(prompt)
            whole, said, most = False, False, (request.max_tokens + _HEADROOM) * _PIECES_PER_TOKEN
            for attempt in range(2):
                thought = False
                for text, reason, thinks in self._chat(prompt, request.max_tokens):
                    thought |= thinks
                    whole = reason == "stop" if reason else whole
                    tokens = self.model.tokenize(text)[: max(0, most)]
                    most -= len(tokens)
                    for token in tokens:
                        said = True
                        self.counts.generated += 1
                        yield Token(request.key, token)
                    if most <= 0:
                        break
                if said or not thought or attempt:
                    break
                self._thought_tokens = _THOUGHT_TOKENS  # it thinks whatever it is told: leave room for that
            yield Token(request.key, None, whole)

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[str, list[int], bool]]:
        """Yield (key, pieces, ended by itself) for each request."""
        tokens = list[int]()
        for event in self.stream(requests):
            if event.token is None:
                yield event.key, tokens, event.whole
                tokens = []
            else:
                tokens.append(event.token)

    def log_probabilities(self, prefix: Sequence[int], suffix: Sequence[int]) -> np.ndarray | None:
        """Return the log probabilities of the next piece, those that are not told as high as they can be; or None."""
        if self.tells_odds is False or self._thought_tokens:
            return None
        body = {"max_tokens": 1, "logprobs": True, "top_logprobs": _LOGPROBS}
        try:
            lines = self._lines(self._body([*prefix, *suffix], **body))
            reply = _parse(b"\n".join(lines), self._address)
            content = reply["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
            found = [(str(one["token"]), float(one["logprob"])) for one in content]
        except (ModelError, LookupError, TypeError, ValueError):
            self.tells_odds = False
            return None
        self.tells_odds = True
        ids = [(self.model.tokenize(text), chance) for text, chance in found]
        likely = np.full(len(self.model) + _HEADROOM, min(chance for _, chance in found))
        for tokens, chance in ids:
            if len(tokens) == 1:
                likely[tokens[0]] = max(likely[tokens[0]], chance)
        return likely

    def _body(self, prompt: Sequence[int], **fields: Any) -> dict[str, Any]:
        return {
            "model": self._name,
            "messages": self.model.messages(prompt),
            "temperature": 0,
            **self._ways[0],
            **fields,
        }

    def _chat(self, prompt: Sequence[int], max_tokens: int) -> Iterator[tuple[str, str, bool]]:
        """Yield (text, reason to end, is thinking) for each piece of a reply as it arrives."""
        thoughts = Thoughts()
        body = self._body(prompt, max_tokens=max_tokens + self._thought_tokens, stream=True)
        for line in self._lines(body):
            if not line.startswith(b"data:") or line[5:].strip() == b"[DONE]":
                continue
            choice = _first_choice(_parse(line[5:], self._address))
            delta = _fields(choice.get("delta"))
            hidden = bool(delta.get("reasoning_content") or delta.get("reasoning"))
            text = thoughts.skip(_text(delta.get("content")))
            yield text, str(choice.get("finish_reason") or ""), hidden or thoughts.inside
        yield thoughts.rest(), "", False

    def _lines(self, body: dict[str, Any]) -> Iterator[bytes]:
        with self._posted(body) as response:
            held, total = b"", 0
            while data := self._read(response):
                if (total := total + len(data)) > _MOST_BYTES:
                    raise ModelError(f"The engine at {self._address} did not stop writing; ask again.")
                *lines, held = (held + data).split(b"\n")
                yield from lines
            yield held

    @contextmanager
    def _posted(self, body: dict[str, Any]) -> Iterator[http.client.HTTPResponse]:
        """Post a request to chat; if the fields beyond the standard are refused, try the next."""
        while True:
            with self._asked("POST", "/chat/completions", body) as response:
                if response.status == http.HTTPStatus.OK:
                    yield response
                    return
                if response.status not in _REFUSED or len(self._ways) == 1:
                    said = " ".join(response.read(2000).decode("utf-8", "replace").split())[:200]
                    raise ModelError(
                        f"The engine at {self._address} answered {response.status} ({said}); see its own log."
                    )
            refused = self._ways.pop(0)
            body = {name: value for name, value in body.items() if name not in refused} | self._ways[0]

    def _read(self, response: http.client.HTTPResponse, most: int = 0) -> bytes:
        """Return what has arrived, or with `most` the whole reply up to so many bytes."""
        try:
            return response.read(most) if most else response.read1(65536)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise self._lost(error) from error

    def _lost(self, error: Exception) -> Exception:
        if self.stop():
            return StoppedError("The answer was stopped.")
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        return ModelError(
            f"The engine at {self._address} cannot be reached ({reason}); start it, or name another model."
        )

    @contextmanager
    def _asked(self, method: str, path: str, body: dict[str, Any] | None = None) -> Iterator[http.client.HTTPResponse]:
        """Send a request; it ends as soon as `stop` says so, also while the engine is still reading the prompt."""
        connection, done = _Connection(self._address), threading.Event()

        def watch() -> None:
            while not done.wait(_STOP_SECONDS):
                if self.stop():
                    connection.interrupt()

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        try:
            try:
                connection.request(method, self._address.path + path, json.dumps(body) if body else None, headers)
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                raise self._lost(error) from error
            with response:
                yield response
            if self.stop():
                raise StoppedError("The answer was stopped.")
        finally:
            done.set()
            watcher.join()
            connection.close()

    def _ask_abilities(self) -> tuple[str, int]:
        """Return the name of the engine's model and the tokens that it reads.

        Raise ModelError if the engine is not there or has not the model that is named.
        """
        with self._asked("GET", "/models") as response:
            content = self._read(response, _MOST_BYTES)
        if response.status != http.HTTPStatus.OK:
            raise ModelError(
                f"{self._address} answered {response.status} and is no engine with the interface of OpenAI; its address"
                " usually ends in /v1."
            )
        rows = _parse(content, self._address).get("data")
        listed = rows if isinstance(rows, list) else []
        offered = {_text(row.get("id")): row for row in listed if isinstance(row, dict)}
        wanted = self._address.model
        fitting = [name for name in offered if name in {wanted, f"{wanted}:latest"}]
        name = fitting[0] if fitting else next(iter(offered)) if len(offered) == 1 and not wanted else ""
        if not name:
            raise ModelError(
                f"The engine at {self._address} has {'no model ' + repr(wanted) if wanted else 'several models'}; name "
                f"one of {', '.join(sorted(offered)[:20]) or 'none'} after a #, as in {self._address}#MODEL."
            )
        tokens = offered[name].get("max_model_len") or _fields(offered[name].get("meta")).get("n_ctx")
        return name, tokens if isinstance(tokens, int) and 0 < tokens < _MOST_TOKENS else _CONTEXT_TOKENS


class _Connection(http.client.HTTPConnection):
    """A connection to an engine: through this process's relay if it has one, without any proxy."""

    def __init__(self, address: EngineAddress) -> None:
        super().__init__(address.host, address.port, timeout=_SECONDS)
        self._address = address
        self._opened: socket.socket | None = None  # `sock` is given up once the reply begins

    def interrupt(self) -> None:
        """End what waits for this connection, from another thread."""
        if self._opened is not None:
            with suppress(OSError):
                self._opened.shutdown(socket.SHUT_RDWR)

    def connect(self) -> None:
        """Connect the socket."""
        relay = socket_of(self._address.host, self._address.port)
        if relay:
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(_SECONDS)
            self.sock.connect(str(relay))
        else:
            super().connect()
        if self._address.tls:
            import ssl  # a Python behind an air gap may lack it, and no other engine needs it

            self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self._address.host)
        self._opened = self.sock


def _parse(content: bytes, address: EngineAddress) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ModelError(f"What the engine at {address} answered is not JSON; is that its address?")
    if found.get("error"):
        raise ModelError(f"The engine at {address} reported an error ({str(found['error'])[:200]}); see its own log.")
    return found


def _first_choice(reply: dict[str, Any]) -> dict[str, Any]:
    choices = reply.get("choices")
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}


def _fields(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    """Return text that can be written, empty if it is none: an engine may send half of a surrogate pair."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""
