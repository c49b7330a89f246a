"""Load a GGUF model through llama.cpp, with its tokenizer and its chat template."""

import ctypes
import datetime
from pathlib import Path
from typing import Any, Self

from local_rag.errors import ModelError
from local_rag.llama.generator import CLOSING, OPENING
from local_rag.llama.native import ALL_LAYERS, held_interrupt, last_error, native

_SENTINELS = ("\n", "=", "x")  # what a text is tokenized after, where it would otherwise get a space


def cannot_share(path: Path) -> ModelError:
    """Return the error for a model that keeps one state of what it has read, where prompts share a beginning of it."""
    return ModelError(
        f"{path} keeps a recurrent state that prompts cannot share, so it can answer but not write contexts; name a "
        "model with full attention (Llama, Qwen2.5, SmolLM2) with `--context-model`."
    )


def _without_thoughts(tail: str) -> str:
    """Close what a template opened for thoughts although it was told that there are none."""
    if OPENING in tail and CLOSING not in tail.rpartition(OPENING)[2]:
        return f"{tail}\n{CLOSING}\n\n"
    if tail.rstrip().endswith("<|start|>assistant"):  # gpt-oss thinks in a channel of its own
        return f"{tail}<|channel|>final<|message|>"
    return tail


def load_weights(path: Path, *, vocabulary_only: bool = False, gpu_layers: int = ALL_LAYERS) -> Any:
    """Return the handle of a loaded GGUF file; raise ModelError if llama.cpp cannot load it."""
    llama = native()
    parameters = llama.llama_model_default_params()
    parameters.vocab_only = vocabulary_only
    parameters.n_gpu_layers = gpu_layers
    # The AMX kernels crash in the first decode (ggml-org/llama.cpp#20824) and are not used without extra buffers.
    if b"AMX_INT8 = 1" in llama.llama_print_system_info():
        parameters.use_extra_bufts = False
    with held_interrupt() as held:
        goes_on = llama.llama_progress_callback(lambda _progress, _data: not held)
        parameters.progress_callback = goes_on
        handle = llama.llama_model_load_from_file(str(path).encode(), parameters)
    if not handle:
        reason = last_error() or "not a valid GGUF file"
        raise ModelError(f"llama.cpp cannot load {path} ({reason}); pull it again with `local-rag models pull`.")
    return handle


class LlamaModel:
    """Hold the weights and vocabulary of one GGUF file, or only the vocabulary, which loads at once."""

    def __init__(self, path: Path, *, vocabulary_only: bool = False, gpu_layers: int = ALL_LAYERS) -> None:
        llama = native()
        self.path, self.gpu_layers = path, gpu_layers
        self.handle = load_weights(path, vocabulary_only=vocabulary_only, gpu_layers=gpu_layers)
        self._vocabulary = llama.llama_model_get_vocab(self.handle)
        self.vocabulary_size: int = llama.llama_vocab_n_tokens(self._vocabulary)
        # Read the file's own fields: llama.cpp copies them into the model only along with the weights.
        self.context_length = int(self._field(f"{self._field('general.architecture')}.context_length") or 0)
        self._frames: dict[str, tuple[str, str]] = {}
        # A state of all that was read can be copied, but not cut: a recurrent model, or a hybrid one.
        self.keeps_state = bool(llama.llama_model_is_recurrent(self.handle) or llama.llama_model_is_hybrid(self.handle))
        # A SentencePiece vocabulary may put a space before every text, also where a prompt only goes on.
        self._adds_space = self.detokenize(self._raw_tokens("x", special=False)) == " x"
        self.thought = self._empty_thought()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Free the weights."""
        if self.handle:
            native().llama_model_free(self.handle)
            self.handle = None

    def tokenize(self, text: str, *, special: bool = False) -> list[int]:
        """Return the tokens of a text.

        Keep `special` false for text from documents. If it were true, a document with `<|im_end|>` in it could end the
        prompt and continue as the user.
        """
        if not self._adds_space or not text:
            return self._raw_tokens(text, special=special)
        for first in _SENTINELS:
            alone, both = (self._raw_tokens(one, special=special) for one in (first, first + text))
            if both[: len(alone)] == alone and self.detokenize([*alone, *both[len(alone) :]]) == f" {first}{text}":
                return both[len(alone) :]
            if special and both[: len(alone)] == alone:  # special tokens have no text to compare
                return both[len(alone) :]
        return self._raw_tokens(text, special=special)

    def _raw_tokens(self, text: str, *, special: bool) -> list[int]:
        data = text.encode("utf-8", "replace")
        size = len(data) + 8
        while True:
            tokens = (native().llama_token * size)()
            count = native().llama_tokenize(self._vocabulary, data, len(data), tokens, size, False, special)
            if count >= 0:
                return list(tokens[:count])
            size = -count

    def piece(self, token: int) -> bytes:
        """Return the bytes of one token; a character may span several tokens."""
        buffer = ctypes.create_string_buffer(256)
        size = native().llama_token_to_piece(self._vocabulary, token, buffer, len(buffer), 0, False)
        return buffer.raw[: max(size, 0)]

    def detokenize(self, tokens: list[int]) -> str:
        """Return the text of tokens."""
        return b"".join(self.piece(token) for token in tokens).decode("utf-8", "replace")

    def ends(self, token: int) -> bool:
        """Return whether a token ends the model's turn."""
        return bool(native().llama_vocab_is_eog(self._vocabulary, token))

    def chat_frame(self, system: str) -> tuple[str, str]:
        """Return what the model's own chat template puts before and after the user's message.

        Tokenize both with `special=True`, and the user's message without it.
        """
        if system not in self._frames:
            self._frames[system] = self._render_frame(system)
        return self._frames[system]

    def _empty_thought(self) -> tuple[int, ...]:
        """Return the tokens of a thought without content, or nothing if the vocabulary has no marks for thoughts."""
        opening, closing = (self._raw_tokens(mark, special=True) for mark in (OPENING, CLOSING))
        if len(opening) != 1 or len(closing) != 1:
            return ()
        gap = self.tokenize("\n\n")
        return (*opening, *gap, *closing, *gap)

    def _with_bos(self, head: str, bos: str) -> str:
        """Put the token that begins every text in front, if the vocabulary asks for it and the template forgot it."""
        wanted = bos and native().llama_vocab_get_add_bos(self._vocabulary)
        return bos + head if wanted and not head.startswith(bos) else head

    @property
    def file_type(self) -> int:
        """Return the type of most weights, as `LLAMA_FTYPE_...` numbers them; 0 if the file does not say it."""
        said = self._field("general.file_type")
        return int(said) if said.isdecimal() else 0

    def _field(self, name: str) -> str:
        buffer = ctypes.create_string_buffer(256)
        found = native().llama_model_meta_val_str(self.handle, name.encode(), buffer, len(buffer))
        return buffer.value.decode("utf-8", "replace") if found >= 0 else ""

    def _render_frame(self, system: str) -> tuple[str, str]:
        import jinja2
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        llama = native()
        template = llama.llama_model_chat_template(self.handle, None)
        if not template:
            raise ModelError(
                f"{self.path} has no chat template, so it cannot follow instructions; "
                "choose an instruction-tuned model (`local-rag models list`)."
            )

        def token_text(token: int) -> str:
            return llama.llama_vocab_get_text(self._vocabulary, token).decode() if token >= 0 else ""

        def refuse(reason: str) -> None:
            raise jinja2.TemplateError(reason)

        bos = token_text(llama.llama_vocab_bos(self._vocabulary))
        marker, reason = "\u241euser message\u241e", "it leaves out the system text or the user's message"
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.globals["raise_exception"] = refuse
        # Llama 3's template writes the date into every prompt. Its own default date keeps answers reproducible.
        environment.globals["strftime_now"] = lambda form: datetime.date(2024, 7, 26).strftime(form)
        # Templates of models without a system role refuse it or leave it out.
        for messages in (
            [{"role": "system", "content": system}, {"role": "user", "content": marker}],
            [{"role": "user", "content": f"{system}\n\n{marker}"}],
        ):
            try:
                text = environment.from_string(template.decode()).render(
                    messages=messages,
                    add_generation_prompt=True,
                    # Qwen and SmolLM know the one name, Granite and DeepSeek the other.
                    enable_thinking=False,
                    thinking=False,
                    bos_token=bos,
                    eos_token=token_text(llama.llama_vocab_eos(self._vocabulary)),
                )
            except Exception as error:  # noqa: BLE001  a template is a program and can raise anything
                reason = str(error)
                continue
            head, found, tail = text.partition(marker)
            if found and system.strip() in head:
                return self._with_bos(head, bos), _without_thoughts(tail)
        raise ModelError(f"The chat template of {self.path} cannot be used ({reason}); choose another model.")
