"""Decode many completions together over prefixes that are each evaluated once.

A prefix (instructions and document) has a KV cache sequence of its own. A request copies that sequence or its
beginning, which moves no data in a unified KV cache. It then evaluates its own suffix and decodes. When a request ends,
the next one takes its slot at once, so the batch stays full across chunks and documents. Prefixes and suffixes of
waiting requests are evaluated in the same batches, because a token costs less in a larger batch.

A recurrent or hybrid model keeps one state of all that it has read, which can be copied and read on from, but not cut.
Its requests therefore share whole prefixes only, which is enough to answer.
"""

import ctypes
import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import ModelError, StoppedError
from local_rag.llama.generator import Counts, Request, Stoppable, Token, common_prefix, log_odds_against
from local_rag.llama.model import LlamaModel, cannot_share
from local_rag.llama.native import held_interrupt, native
from local_rag.machine import Neighbours, physical_cores

_READ_AHEAD = 64  # tokens, which take a fraction of a second
_MOST_STATES = 4  # concurrent sequences of a model that keeps a state for each: each takes megabytes


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How a model runs on a machine: concurrent sequences, tokens per batch, threads (0: one per physical core)."""

    sequences: int = 16
    batch_tokens: int = 512
    flash_attention: bool = True
    threads: int = 0


@dataclass(slots=True, eq=False)
class CachedPrefix:
    """A prefix in the KV cache: how many of its tokens are submitted to a batch, and how many are evaluated."""

    sequence: int
    tokens: Sequence[int]
    submitted: int
    evaluated: int
    users: int = 0


@dataclass(slots=True, eq=False)
class RunningRequest:
    """A request whose suffix is being evaluated or whose completion is being decoded."""

    request: Request
    cached: CachedPrefix
    sequence: int = -1
    done: int = 0
    generated: int = 0
    next_token: int | None = None
    row: int = -1
    forced: list[int] = field(default_factory=list)  # tokens to put in before the model goes on by itself
    skipped: int = 0  # generated tokens that belong to a thought

    @property
    def position(self) -> int:
        """Return the position of its next token."""
        return self.request.start + self.done + self.generated


class SharedPrefixEngine(Stoppable):
    """Run requests over one llama.cpp context of `context_tokens` KV cells."""

    def __init__(
        self,
        model: LlamaModel,
        *,
        context_tokens: int,
        settings: EngineSettings | None = None,
        neighbours: Neighbours | None = None,
    ) -> None:
        super().__init__()
        llama = native()
        settings = settings or EngineSettings()
        parameters = llama.llama_context_default_params()
        self._keeps_state = model.keeps_state
        sequences = min(settings.sequences, _MOST_STATES) if self._keeps_state else settings.sequences
        ids = 2 * sequences + 1
        # A request may start at an earlier position, so layers with a sliding window must keep tokens that have left
        # the window. llama.cpp overwrites those tokens unless a second sequence holds them too.
        self._copy_offset = ids if llama.llama_model_n_swa(model.handle) else 0
        parameters.n_seq_max = ids + self._copy_offset
        # llama.cpp requires room for one output per sequence in a batch.
        batch_tokens = max(settings.batch_tokens, parameters.n_seq_max)
        parameters.n_ctx = context_tokens
        parameters.n_batch = parameters.n_ubatch = batch_tokens
        parameters.swa_full = parameters.kv_unified = True
        parameters.offload_kqv = parameters.op_offload = model.gpu_layers != 0
        self._most_threads = self._threads = settings.threads or physical_cores()
        self._neighbours = neighbours or Neighbours()
        parameters.n_threads = parameters.n_threads_batch = self._threads
        parameters.flash_attn_type = (
            llama.LLAMA_FLASH_ATTN_TYPE_AUTO if settings.flash_attention else llama.LLAMA_FLASH_ATTN_TYPE_DISABLED
        )
        self.model = model
        self.counts = Counts()
        self.sequences, self.context_tokens = sequences, context_tokens
        self._batch_tokens = batch_tokens
        self._context = llama.llama_init_from_model(model.handle, parameters)
        if not self._context:
            raise ModelError(
                f"Not enough memory for {context_tokens} tokens of context with {model.path.name}; "
                "choose a smaller profile with `--profile`."
            )
        self._interrupted: Sequence[int] = ()  # not empty once Ctrl-C was pressed
        # llama.cpp calls this between operations, in this thread. Python handles signals only then.
        self._abort_callback = llama.ggml_abort_callback(lambda _data: bool(self._interrupted) or self.stop())
        llama.llama_set_abort_callback(self._context, self._abort_callback, None)
        self._memory = llama.llama_get_memory(self._context)
        self._batch = llama.llama_batch_init(batch_tokens, 0, 1)
        self._free = list(range(ids))
        self._cached: list[CachedPrefix] = []
        self._running: list[RunningRequest] = []
        self._adapters: dict[Path | None, Any] = {None: None}  # freed with the model
        self._adapter: Path | None = None

    def close(self) -> None:
        """Free the KV cache."""
        if self._context:
            native().llama_batch_free(self._batch)
            native().llama_free(self._context)
            self._context = None

    @contextmanager
    def adapted(self, adapter: Path | None) -> Iterator[None]:
        """Read and generate with an adapter inside the context, or with None without the one used outside of it."""
        self._require_idle()
        if adapter and adapter not in self._adapters:
            self._adapters[adapter] = self._load_adapter(adapter)
        before = self._adapter
        self._change_to(adapter)
        try:
            yield
        finally:
            self._clear()
            self._change_to(before)

    def _load_adapter(self, path: Path) -> Any:
        handle = native().llama_adapter_lora_init(self.model.handle, str(path).encode()) if path.is_file() else None
        if not handle:
            raise ModelError(f"{path} is no adapter for {self.model.path.name}; convert the one of this model to GGUF.")
        if native().llama_adapter_get_alora_n_invocation_tokens(handle):
            raise ModelError(f"{path} is an activated adapter, which is not supported; choose one without invocation.")
        return handle

    def _change_to(self, adapter: Path | None) -> None:
        """Use another adapter, or none, and forget what was read differently."""
        if adapter == self._adapter:
            return
        for cached in list(self._cached):
            self._drop(cached)
        llama, self._adapter = native(), adapter
        handles = (llama.llama_adapter_lora_p_ctypes * 1)(self._adapters[adapter])
        count = 1 if adapter else 0
        if llama.llama_set_adapters_lora(self._context, handles, count, (ctypes.c_float * 1)(1.0)) != 0:
            raise ModelError(f"llama.cpp cannot use an adapter with {self.model.path.name}.")

    def stream(self, requests: Iterable[Request], *, at_first: int = 0) -> Generator[Token]:
        """Yield every token as it is generated, and one last `Token` with None for each request.

        If `at_first` requests begin together, each that ends lets two more begin; by default all that can begin do.
        Consume the generator or close it before using the engine again; other calls raise RuntimeError.
        """
        self._require_idle()
        waiting = iter(requests)
        request = next(waiting, None)
        at_once = min(at_first or self.sequences, self.sequences)
        try:
            while request or self._running:
                # Admit several at once: their suffixes cost about half as much in one batch as one by one.
                if len(self._running) <= at_once - at_once // 4:
                    while request and len(self._running) < at_once and self._admit(request):
                        request = next(waiting, None)
                for running in self._step():
                    for token in self._sample(running):
                        if token.token is None:
                            at_once = min(at_once + 2, self.sequences)
                        yield token
        finally:
            self._clear()

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[str, list[int], bool]]:
        """Yield (key, tokens, ended by itself) for each request, in the order in which they end.

        Only two begin together: a slow machine that began many would finish none before its time is up.
        """
        texts: dict[str, list[int]] = {}
        for event in self.stream(requests, at_first=2):
            tokens = texts.setdefault(event.key, [])
            if event.token is not None:
                tokens.append(event.token)
            else:
                yield event.key, texts.pop(event.key), event.whole

    def read(self, prefix: Sequence[int]) -> None:
        """Evaluate a prefix, a little at a time, so that whoever stops it waits little and loses little."""
        for end in [*range(_READ_AHEAD, len(prefix), _READ_AHEAD), len(prefix) - 1]:
            self.log_probabilities(prefix[:end], prefix[end : end + 1])

    def log_probabilities(self, prefix: Sequence[int], suffix: Sequence[int]) -> np.ndarray:
        """Return the log probabilities of the next token after a prompt, shape (vocabulary,)."""
        self._require_idle()
        if not self._admit(Request(key="", prefix=prefix, suffix=suffix, max_tokens=1)):
            raise ModelError("The prompt is longer than the model's context.")
        running = self._running[-1]
        try:
            while not self._step():
                pass
            logits = self._logits(running.row).astype(np.float64)
        finally:
            self._clear()
        if self._begins_thought(int(logits.argmax())) and list(suffix[-len(self.model.thought) :]) != [
            *self.model.thought
        ]:
            return self.log_probabilities(prefix, [*suffix, *self.model.thought])  # what it would say after thinking
        return _log_softmax(logits)

    def _require_idle(self) -> None:
        if self._running:
            raise RuntimeError("The engine is still generating; consume or close that generator first.")

    def _clear(self) -> None:
        """Drop what was not evaluated when a run ended, was interrupted or had its generator closed."""
        for running in self._running:
            self._release(running)
        for cached in [cached for cached in self._cached if cached.evaluated < len(cached.tokens)]:
            if cached.evaluated and self._cut(cached, cached.evaluated):
                cached.tokens, cached.submitted = cached.tokens[: cached.evaluated], cached.evaluated
            else:
                self._drop(cached)

    def _cut(self, cached: CachedPrefix, length: int) -> bool:
        """Keep only the beginning of a prefix in the cache; return whether the model can do that."""
        sequences = self._sequences_of(cached)
        return all(native().llama_memory_seq_rm(self._memory, sequence, length, -1) for sequence in sequences)

    def _begins_thought(self, token: int) -> bool:
        return token in self.model.thought[:1]

    def _cells(self, request: Request) -> int:
        """Return the number of KV cells that a request needs besides its prefix."""
        return len(request.suffix) + request.max_tokens + len(self.model.thought)

    def _admit(self, request: Request) -> bool:
        """Start a request if the cache has room for it, dropping unused prefixes; return whether it started."""
        if len(self._running) >= self.sequences:
            return False
        if self._keeps_state and request.start < len(request.prefix):
            raise cannot_share(self.model.path)
        cells = self._cells(request)
        if len(request.prefix) + cells > self.context_tokens:
            raise ModelError(
                f"A prompt of {len(request.prefix) + cells} tokens does not fit into {self.context_tokens} tokens."
            )
        cached = next((cached for cached in self._cached if cached.tokens == request.prefix), None)
        if cached is None:
            cached = self._cache_prefix(request.prefix, cells)
            if cached is None:
                return False
        elif not self._make_room(cells, keep=cached):
            return False
        cached.users += 1
        self.counts.prompt += request.start + len(request.suffix)
        self._running.append(RunningRequest(request, cached))
        return True

    def _cache_prefix(self, prefix: Sequence[int], cells: int) -> CachedPrefix | None:
        """Make room for a prefix, reusing the cached prefix with the longest common beginning; None if it is full."""
        complete = [
            cached
            for cached in self._cached
            if cached.evaluated == len(cached.tokens)
            and (not self._keeps_state or common_prefix(cached.tokens, prefix) == len(cached.tokens))
        ]
        donor = max(complete, key=lambda cached: common_prefix(cached.tokens, prefix), default=None)
        shared = common_prefix(donor.tokens, prefix) if donor else 0
        # Every used cell costs attention time in every batch, masked or not, so keep no unused prefix.
        for idle in [one for one in self._cached if one.users == 0 and one is not donor]:
            self._drop(idle)
        if donor and donor.users == 0:
            if not self._make_room(len(prefix) - len(donor.tokens) + cells, keep=donor):
                return None
            if not self._cut(donor, shared):
                raise cannot_share(self.model.path)
            donor.tokens, donor.submitted, donor.evaluated = prefix, shared, shared
            cached = donor
        else:
            if not self._make_room(len(prefix) + cells, keep=donor):
                return None
            cached = CachedPrefix(self._free.pop(), prefix, shared, shared)
            self._cached.append(cached)
            if donor:
                for sequence in self._sequences_of(cached):
                    self._share(donor, sequence, shared)
        return cached

    def _make_room(self, cells: int, keep: CachedPrefix | None) -> bool:
        """Drop unused prefixes, oldest first, until `cells` cells and two sequences are free."""
        while True:
            used = sum(len(cached.tokens) for cached in self._cached) + sum(
                self._cells(running.request) for running in self._running
            )
            # Every running request and every cached prefix holds one sequence, now or later.
            if used + cells <= self.context_tokens and len(self._cached) + len(self._running) < 2 * self.sequences:
                return True
            idle = next((one for one in self._cached if one.users == 0 and one is not keep), None)
            if idle is None:
                return False
            self._drop(idle)

    def _drop(self, cached: CachedPrefix) -> None:
        for sequence in self._sequences_of(cached):
            native().llama_memory_seq_rm(self._memory, sequence, -1, -1)
        self._free.append(cached.sequence)
        self._cached.remove(cached)

    def _sequences_of(self, cached: CachedPrefix) -> list[int]:
        """Return the sequences that hold a prefix: two for models with a sliding window, else one."""
        return [cached.sequence, *([cached.sequence + self._copy_offset] if self._copy_offset else [])]

    def _share(self, cached: CachedPrefix, sequence: int, end: int) -> None:
        """Copy the first `end` tokens of a prefix to a sequence."""
        memory, llama = self._memory, native()
        llama.llama_memory_seq_cp(memory, cached.sequence, sequence, 0, end)
        # A memory that cannot be cut copies more, or has dropped the beginning; a state is that of the last token.
        held = llama.llama_memory_seq_pos_min(memory, sequence), llama.llama_memory_seq_pos_max(memory, sequence)
        first = end - 1 if self._keeps_state or not end else 0
        if held != (first, end - 1):
            raise cannot_share(self.model.path)

    def _release(self, running: RunningRequest) -> None:
        if running.sequence >= 0:
            native().llama_memory_seq_rm(self._memory, running.sequence, -1, -1)
            self._free.append(running.sequence)
        running.cached.users -= 1
        self._running = [other for other in self._running if other is not running]

    def _step(self) -> list[RunningRequest]:
        """Evaluate one batch; return the requests that have logits to sample from."""
        self._batch.n_tokens = 0
        ready = []
        for running in self._running:
            if running.next_token is not None:
                running.row = self._submit(running.next_token, running.position, running.sequence, logits=True)
                running.generated += 1
                ready.append(running)
        for running in self._running:
            if running.next_token is None and running.cached.evaluated >= running.request.start:
                self._submit_suffix(running)
                if running.done == len(running.request.suffix):
                    running.row = self._batch.n_tokens - 1
                    self._batch.logits[running.row] = 1
                    ready.append(running)
        for running in self._running:
            self._submit_prefix(running.cached)
        self._evaluate()
        for cached in self._cached:
            for second in self._sequences_of(cached)[1:]:
                native().llama_memory_seq_cp(self._memory, cached.sequence, second, cached.evaluated, cached.submitted)
            cached.evaluated = cached.submitted
        return ready

    def _submit_suffix(self, running: RunningRequest) -> None:
        """Submit as much of a request's suffix as the batch still holds, after a copy of its prefix."""
        if running.sequence < 0:
            running.sequence = self._free.pop()
            self._share(running.cached, running.sequence, running.request.start)
        while running.done < len(running.request.suffix) and self._batch.n_tokens < self._batch_tokens:
            self._submit(running.request.suffix[running.done], running.position, running.sequence)
            running.done += 1
            self.counts.suffix += 1

    def _submit_prefix(self, cached: CachedPrefix) -> None:
        """Fill the batch with tokens of a prefix, also with those needed later: a full batch costs least per token."""
        while cached.submitted < len(cached.tokens) and self._batch.n_tokens < self._batch_tokens:
            self._submit(cached.tokens[cached.submitted], cached.submitted, cached.sequence)
            cached.submitted += 1
            self.counts.prefix += 1

    def _evaluate(self) -> None:
        """Evaluate the batch; Ctrl-C stops it between two operations instead of seconds later."""
        with held_interrupt() as self._interrupted:
            self._adjust_threads()
            status = native().llama_decode(self._context, self._batch)
        if self.stop():
            raise StoppedError("The answer was stopped.")
        if status != 0:
            raise ModelError(
                f"llama.cpp failed to evaluate a batch with {self.model.path.name}; run the command again."
            )

    def _adjust_threads(self) -> None:
        """Use fewer threads while other programs are busy."""
        threads = self._neighbours.threads(self._most_threads)
        if threads != self._threads:
            self._threads = threads
            native().llama_set_n_threads(self._context, threads, threads)

    def _submit(self, token: int, position: int, sequence: int, *, logits: bool = False) -> int:
        batch, row = self._batch, int(self._batch.n_tokens)
        batch.token[row], batch.pos[row], batch.logits[row] = token, position, logits
        batch.n_seq_id[row], batch.seq_id[row][0] = 1, sequence
        batch.n_tokens = row + 1
        return row

    def _logits(self, row: int) -> np.ndarray:
        pointer = native().llama_get_logits_ith(self._context, row)
        size = self.model.vocabulary_size
        return np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), shape=(size,))

    def _sample(self, running: RunningRequest) -> Iterator[Token]:
        """Yield the most likely token; end the request at an end token or at its limit.

        A model that begins to think is made to end its thought at once: it is no part of the answer.
        """
        logits = self._logits(running.row)
        token, odds = int(logits.argmax()), math.nan
        if running.generated == 0 and self._begins_thought(token):
            running.forced = list(self.model.thought)
        if running.forced:
            running.next_token = running.forced.pop(0)
            running.skipped += 1
            return
        key, refusal = running.request.key, running.request.refusal
        if refusal is not None and running.generated == running.skipped:
            odds = log_odds_against(float(_log_softmax(logits)[refusal]))
        whole = self.model.ends(token)
        if not whole:
            self.counts.generated += 1
            running.next_token = token
            yield Token(key, token, odds=odds)
        if whole or running.generated - running.skipped + 1 >= running.request.max_tokens:
            self._release(running)
            yield Token(key, None, whole)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max()
    return shifted - np.log(np.exp(shifted).sum())  # type: ignore[no-any-return]
