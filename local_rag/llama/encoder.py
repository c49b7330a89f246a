"""Embed and rerank with GGUF models: llama.cpp reads many texts at once and pools what it read of each into a vector.

The tokens come from the `tokenizer.json` beside the file, as for every embedder: chunks are measured with it.
"""

import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from local_rag.errors import ModelError
from local_rag.llama.model import load_weights
from local_rag.llama.native import llama_build, native
from local_rag.machine import physical_cores
from local_rag.model_records import InstalledModel
from local_rag.models.embedder import PrefixingEmbedder, truncating_tokenizer
from local_rag.models.own_models import gguf_in
from local_rag.models.reader import KeepingReader, PassageReading, Reading

# All texts of a batch are compared with each other, masked or not, so a large batch costs more than it saves.
_BATCH_TOKENS = 512
_BATCH_TEXTS = 64
_POOLING = {"mean": "MEAN", "cls": "CLS", "lasttoken": "LAST", "rank": "RANK", None: "UNSPECIFIED"}


class LlamaEncoder:
    """Run a GGUF model on the tokens of texts, on the CPU; `pooling` None is that of the file."""

    def __init__(self, path: Path, *, context_length: int, pooling: str | None) -> None:
        llama = native()
        self.path = path
        self._tokens = max(_BATCH_TOKENS, context_length)
        model = load_weights(path, gpu_layers=0)
        parameters = llama.llama_context_default_params()
        parameters.embeddings = parameters.kv_unified = True
        parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = self._tokens
        parameters.n_seq_max = _BATCH_TEXTS
        parameters.n_threads = parameters.n_threads_batch = physical_cores()
        parameters.pooling_type = getattr(llama, f"LLAMA_POOLING_TYPE_{_POOLING[pooling]}")
        parameters.offload_kqv = parameters.op_offload = False
        self._context = llama.llama_init_from_model(model, parameters)
        if not self._context:
            llama.llama_model_free(model)
            raise ModelError(f"Not enough memory to embed with {path.name}; choose a smaller model.")
        self._batch = llama.llama_batch_init(self._tokens, 0, 1)
        weakref.finalize(self, _free, llama, self._batch, self._context, model)
        pooled = llama.llama_pooling_type(self._context)
        if pooled in {llama.LLAMA_POOLING_TYPE_NONE, llama.LLAMA_POOLING_TYPE_UNSPECIFIED}:
            raise ModelError(f"{path} generates text and does not embed it; choose a GGUF file of an embedder.")
        ranks = pooled == llama.LLAMA_POOLING_TYPE_RANK
        self._size = int((llama.llama_model_n_cls_out if ranks else llama.llama_model_n_embd_out)(model))
        self._vocabulary_size = int(llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(model)))
        self._one_at_a_time = threading.Lock()

    def run(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        """Return the pooled output for the tokens of each text, float32, shape (len(texts), outputs)."""
        found = np.zeros((len(texts), self._size), dtype=np.float32)
        with self._one_at_a_time:
            waiting = list[int]()
            for number in sorted(range(len(texts)), key=lambda number: len(texts[number])):
                tokens = sum(len(texts[other]) for other in waiting) + len(texts[number])
                if waiting and (tokens > _BATCH_TOKENS or len(waiting) == _BATCH_TEXTS):
                    found[waiting] = self._run([texts[other] for other in waiting])
                    waiting = []
                waiting.append(number)
            if waiting:
                found[waiting] = self._run([texts[other] for other in waiting])
        return found

    def _run(self, texts: Sequence[Sequence[int]]) -> np.ndarray:
        llama, batch, row = native(), self._batch, 0
        if (memory := llama.llama_get_memory(self._context)) is not None:
            llama.llama_memory_clear(memory, True)
        for number, tokens in enumerate(texts):
            if not tokens or max(tokens) >= self._vocabulary_size:
                raise ModelError(f"{self.path.with_name('tokenizer.json')} does not belong to {self.path.name}.")
            for position, token in enumerate(tokens):
                batch.token[row], batch.pos[row], batch.logits[row] = token, position, True
                batch.n_seq_id[row], batch.seq_id[row][0] = 1, number
                row += 1
        batch.n_tokens = row
        if llama.llama_decode(self._context, batch) != 0:
            raise ModelError(f"llama.cpp failed to embed with {self.path.name}; run the command again.")
        rows = [llama.llama_get_embeddings_seq(self._context, number) for number in range(len(texts))]
        return np.array([np.ctypeslib.as_array(row, shape=(self._size,)) for row in rows])


def _free(llama: Any, batch: Any, context: Any, model: Any) -> None:
    llama.llama_batch_free(batch)
    llama.llama_free(context)
    llama.llama_model_free(model)


class _Encoding:
    """The tokenizer and the encoder of a model."""

    def __init__(self, model: InstalledModel, pooling: str | None) -> None:
        self.path = gguf_in(model.path)
        self._tokenizer = truncating_tokenizer(model)
        self._encoder = LlamaEncoder(self.path, context_length=model.context_length, pooling=pooling)

    def run(self, texts: Sequence[str] | Sequence[tuple[str, str]]) -> np.ndarray:
        return self._encoder.run([encoding.ids for encoding in self._tokenizer.encode_batch(texts)])


class LlamaEmbedder(PrefixingEmbedder):
    """Embed with a GGUF model on the CPU."""

    def __init__(self, model: InstalledModel) -> None:
        super().__init__(model)
        self._encoding = _Encoding(model, model.pooling)

    def _embed(self, texts: list[str]) -> np.ndarray:
        vectors = self._encoding.run(texts)
        normalised: np.ndarray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return normalised


class LlamaReader(KeepingReader):
    """Read with a GGUF cross-encoder on the CPU."""

    def __init__(self, model: InstalledModel) -> None:
        self._encoding = _Encoding(model, "rank")
        super().__init__(model, self._encoding.path, llama_build())

    def read(self, question: str, texts: Sequence[str]) -> list[Reading]:
        """Read passages that are not kept."""
        return [PassageReading(float(row[0])) for row in self._encoding.run([(question, text) for text in texts])]
