"""The shared-prefix engine: many completions decode together over prefixes that are each evaluated once.

A prefix (instructions and document) lives in a sequence of its own. A request copies that sequence, or the beginning of
it, which moves no data in a unified KV cache, evaluates its own suffix behind it and decodes. A request that ends makes
room for the next at once, so that the batch stays full across chunks and across documents. While sequences decode,
prefixes and suffixes of those to come ride along in the same batches, since a token costs less in a larger batch.
"""

import ctypes
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from local_rag.errors import ModelError, StoppedError
from local_rag.llama.generator import Counts, Request, Token, common_prefix, never
from local_rag.llama.model import LlamaModel, cannot_share, native
from local_rag.llama.places import Active, Resident
from local_rag.machine import Neighbours, physical_cores


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """How a model runs on a machine: sequences at a time, tokens a batch, threads (0: as many as physical cores)."""

    sequences: int = 16
    batch_tokens: int = 512
    flash_attention: bool = True
    threads: int = 0


class SharedPrefixEngine:
    """Run requests over one llama.cpp context of `context_tokens` KV cells."""

    def __init__(
        self,
        model: LlamaModel,
        *,
        context_tokens: int,
        settings: EngineSettings | None = None,
        neighbours: Neighbours | None = None,
    ) -> None:
        llama = native()
        settings = settings or EngineSettings()
        parameters = llama.llama_context_default_params()
        sequences, ids = settings.sequences, 2 * settings.sequences + 1
        # Layers with a sliding window must keep what the window has left behind, for requests that begin before. They
        # keep it while a second sequence holds it too; what one holds alone is overwritten.
        self._second = ids if llama.llama_model_n_swa(model.handle) else 0
        parameters.n_seq_max = ids + self._second
        batch_tokens = max(settings.batch_tokens, parameters.n_seq_max)  # llama.cpp wants an output of each in a batch
        parameters.n_ctx = context_tokens
        parameters.n_batch = parameters.n_ubatch = batch_tokens
        parameters.swa_full = parameters.kv_unified = True
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
                f"There is not enough memory for {context_tokens} tokens of context with {model.path.name}; "
                "choose a smaller profile with `--profile`."
            )
        self._interrupted = False
        self.stop: Callable[[], bool] = never
        # llama.cpp asks between operations, in this thread, which is when Python gets to see a signal.
        self._abort_callback = llama.ggml_abort_callback(lambda _data: self._interrupted or self.stop())
        llama.llama_set_abort_callback(self._context, self._abort_callback, None)
        self._memory = llama.llama_get_memory(self._context)
        self._batch = llama.llama_batch_init(batch_tokens, 0, 1)
        self._free = list(range(ids))
        self._residents: list[Resident] = []
        self._active: list[Active] = []

    def close(self) -> None:
        """Free the KV cache."""
        if self._context:
            native().llama_batch_free(self._batch)
            native().llama_free(self._context)
            self._context = None

    def stream(self, requests: Iterable[Request]) -> Generator[Token]:
        """Yield every token as it is generated, and for each request one last `Token` with None.

        Nothing else is asked of the engine before the last of them is there, or the generator closed.
        """
        self._require_idle()
        waiting = iter(requests)
        request = next(waiting, None)
        try:
            while request or self._active:
                # Several at a time: their suffixes in one batch cost half of what they cost one by one.
                if len(self._active) <= self.sequences - self.sequences // 4:
                    while request and self._admit(request):
                        request = next(waiting, None)
                for active in self._step():
                    yield from self._sample(active)
        finally:
            self._clear()

    def complete(self, requests: Iterable[Request]) -> Iterator[tuple[str, list[int], bool]]:
        """Yield key, tokens and whether it ended by itself for each request, in the order in which they end."""
        texts: dict[str, list[int]] = {}
        for event in self.stream(requests):
            tokens = texts.setdefault(event.key, [])
            if event.token is not None:
                tokens.append(event.token)
            else:
                yield event.key, texts.pop(event.key), event.whole

    def log_probabilities(self, prefix: Sequence[int], suffix: Sequence[int]) -> np.ndarray:
        """Return the log probabilities of the next token after a prompt, shape (vocabulary,)."""
        self._require_idle()
        if not self._admit(Request(key="", prefix=prefix, suffix=suffix, max_tokens=1)):
            raise ModelError("The prompt is longer than the model's context.")
        active = self._active[-1]
        try:
            while not self._step():
                pass
            logits = self._logits(active.row).astype(np.float64)
        finally:
            self._clear()
        shifted = logits - logits.max()
        probabilities: np.ndarray = shifted - np.log(np.exp(shifted).sum())
        return probabilities

    def _require_idle(self) -> None:
        if self._active:
            raise RuntimeError("The engine is still generating; read that to its end or close it first.")

    def _clear(self) -> None:
        """Leave no half-evaluated sequence behind, however a run ended: by itself, by Ctrl-C, by a closed generator."""
        for active in self._active:
            self._release(active)
        for resident in [resident for resident in self._residents if resident.ready < len(resident.tokens)]:
            self._drop(resident)

    def _admit(self, request: Request) -> bool:
        """Give a request a place if the cache has room, freeing prefixes that nothing uses any more."""
        if len(self._active) >= self.sequences:
            return False
        need = len(request.suffix) + request.max_tokens
        if len(request.prefix) + need > self.context_tokens:
            raise ModelError(
                f"A prompt of {len(request.prefix) + need} tokens does not fit into {self.context_tokens} tokens."
            )
        resident = next((resident for resident in self._residents if resident.tokens == request.prefix), None)
        if resident is None:
            resident = self._make_resident(request.prefix, need)
            if resident is None:
                return False
        elif not self._make_room(need, keep=resident):
            return False
        resident.users += 1
        self.counts.prompt += request.start + len(request.suffix)
        self._active.append(Active(request, resident))
        return True

    def _make_resident(self, prefix: Sequence[int], need: int) -> Resident | None:
        """Find room for a prefix; its beginning is taken from the resident that shares most of it."""
        complete = [resident for resident in self._residents if resident.ready == len(resident.tokens)]
        donor = max(complete, key=lambda resident: common_prefix(resident.tokens, prefix), default=None)
        shared = common_prefix(donor.tokens, prefix) if donor else 0
        # Every cell in use costs attention in every batch, masked or not: keep no prefix that nobody asks for.
        for idle in [one for one in self._residents if one.users == 0 and one is not donor]:
            self._drop(idle)
        if donor and donor.users == 0:
            if not self._make_room(len(prefix) - len(donor.tokens) + need, keep=donor):
                return None
            for sequence in self._held_by(donor):
                if not native().llama_memory_seq_rm(self._memory, sequence, shared, -1):
                    raise cannot_share(self.model.path)
            donor.tokens, donor.put, donor.ready = prefix, shared, shared
            resident = donor
        else:
            if not self._make_room(len(prefix) + need, keep=donor):
                return None
            resident = Resident(self._free.pop(), prefix, shared, shared)
            self._residents.append(resident)
            if donor:
                for sequence in self._held_by(resident):
                    self._share(donor, sequence, shared)
        return resident

    def _make_room(self, need: int, keep: Resident | None) -> bool:
        """Drop unused prefixes, oldest first, until `need` cells and two sequences are free."""
        while True:
            used = sum(len(resident.tokens) for resident in self._residents) + sum(
                len(active.request.suffix) + active.request.max_tokens for active in self._active
            )
            # Every active request holds or will hold one sequence, and so does every resident.
            if used + need <= self.context_tokens and len(self._residents) + len(self._active) < 2 * self.sequences:
                return True
            idle = next((one for one in self._residents if one.users == 0 and one is not keep), None)
            if idle is None:
                return False
            self._drop(idle)

    def _drop(self, resident: Resident) -> None:
        for sequence in self._held_by(resident):
            native().llama_memory_seq_rm(self._memory, sequence, -1, -1)
        self._free.append(resident.sequence)
        self._residents.remove(resident)

    def _held_by(self, resident: Resident) -> list[int]:
        """Return the sequences that hold a prefix."""
        return [resident.sequence, *([resident.sequence + self._second] if self._second else [])]

    def _share(self, resident: Resident, sequence: int, end: int) -> None:
        """Let a sequence begin with the first `end` tokens of a prefix."""
        memory, llama = self._memory, native()
        llama.llama_memory_seq_cp(memory, resident.sequence, sequence, 0, end)
        # A memory that cannot be cut copies more, or has forgotten the beginning.
        held = llama.llama_memory_seq_pos_min(memory, sequence), llama.llama_memory_seq_pos_max(memory, sequence)
        if held != (0 if end else -1, end - 1):
            raise cannot_share(self.model.path)

    def _release(self, active: Active) -> None:
        if active.sequence >= 0:
            native().llama_memory_seq_rm(self._memory, active.sequence, -1, -1)
            self._free.append(active.sequence)
        active.resident.users -= 1
        self._active = [other for other in self._active if other is not active]

    def _step(self) -> list[Active]:
        """Evaluate one batch; return the requests that now have logits to sample from."""
        self._batch.n_tokens = 0
        ready = []
        for active in self._active:
            if active.next_token is not None:
                active.row = self._put(active.next_token, active.position, active.sequence, logits=True)
                active.generated += 1
                ready.append(active)
        for active in self._active:
            if active.next_token is None and active.resident.ready >= active.request.start:
                self._put_suffix(active)
                if active.done == len(active.request.suffix):
                    active.row = self._batch.n_tokens - 1
                    self._batch.logits[active.row] = 1
                    ready.append(active)
        for active in self._active:
            self._put_prefix(active.resident)
        self._evaluate()
        for resident in self._residents:
            for second in self._held_by(resident)[1:]:
                native().llama_memory_seq_cp(self._memory, resident.sequence, second, resident.ready, resident.put)
            resident.ready = resident.put
        return ready

    def _put_suffix(self, active: Active) -> None:
        """Put what still fits of a request's suffix behind a copy of its prefix."""
        if active.sequence < 0:
            active.sequence = self._free.pop()
            self._share(active.resident, active.sequence, active.request.start)
        while active.done < len(active.request.suffix) and self._batch.n_tokens < self._batch_tokens:
            self._put(active.request.suffix[active.done], active.position, active.sequence)
            active.done += 1
            self.counts.suffix += 1

    def _put_prefix(self, resident: Resident) -> None:
        """Fill the batch with a prefix, also beyond what is asked for yet: a full batch costs least a token."""
        while resident.put < len(resident.tokens) and self._batch.n_tokens < self._batch_tokens:
            self._put(resident.tokens[resident.put], resident.put, resident.sequence)
            resident.put += 1
            self.counts.prefix += 1

    def _evaluate(self) -> None:
        """Evaluate the batch; Ctrl-C ends it between two operations, not seconds later with the batch."""
        handler = signal.getsignal(signal.SIGINT)
        # Ignored, or left to the system or to C code, it stays so; Python can set no handler but in its main thread.
        replaced = callable(handler) and threading.current_thread() is threading.main_thread()
        if replaced:
            signal.signal(signal.SIGINT, self._interrupt)
        self._make_way()
        try:
            status = native().llama_decode(self._context, self._batch)
        finally:
            if replaced:
                signal.signal(signal.SIGINT, handler)
        if self._interrupted:
            self._interrupted = False
            raise KeyboardInterrupt
        if self.stop():
            raise StoppedError("The answer was stopped.")
        if status != 0:
            raise ModelError(
                f"llama.cpp failed to evaluate a batch with {self.model.path.name}; run the command again."
            )

    def _make_way(self) -> None:
        """Use fewer threads while other programs are busy, and all of them again when they are done."""
        threads = self._neighbours.threads(self._most_threads)
        if threads != self._threads:
            self._threads = threads
            native().llama_set_n_threads(self._context, threads, threads)

    def _interrupt(self, _signal: int, _frame: object) -> None:
        self._interrupted = True

    def _put(self, token: int, position: int, sequence: int, *, logits: bool = False) -> int:
        batch, row = self._batch, int(self._batch.n_tokens)
        batch.token[row], batch.pos[row], batch.logits[row] = token, position, logits
        batch.n_seq_id[row], batch.seq_id[row][0] = 1, sequence
        batch.n_tokens = row + 1
        return row

    def _logits(self, row: int) -> np.ndarray:
        pointer = native().llama_get_logits_ith(self._context, row)
        size = self.model.vocabulary_size
        return np.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), shape=(size,))

    def _sample(self, active: Active) -> Iterator[Token]:
        """Choose the likeliest token; end the request on an end token or at its limit."""
        token = int(self._logits(active.row).argmax())
        key = active.request.key
        whole = self.model.ends(token)
        if not whole:
            self.counts.generated += 1
            active.next_token = token
            yield Token(key, token)
        if whole or active.generated + 1 >= active.request.max_tokens:
            self._release(active)
            yield Token(key, None, whole)
