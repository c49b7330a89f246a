"""The answer model of a library: its vocabulary and its weights, loaded when they are needed, and kept."""

import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path

from local_rag.answering.answerer import answer_room
from local_rag.llama.generator import Generator, Vocabulary
from local_rag.llama.models_in_use import open_answer_engine
from local_rag.model_records import InstalledModel


class AnswerModel:
    """Load the model that `find` returns when it is first needed: for counting tokens only its vocabulary."""

    def __init__(
        self,
        find: Callable[[], InstalledModel],
        *,
        open_engine: Callable[..., AbstractContextManager[Generator]],
        open_vocabulary: Callable[[Path], AbstractContextManager[Vocabulary]],
    ) -> None:
        self._find, self._open_engine, self._open_vocabulary = find, open_engine, open_vocabulary
        self._generator: Generator | None = None
        self._vocabulary: Vocabulary | None = None
        self._opened = ExitStack()
        # A script that does not close the library would end with errors, because Python unloads modules before models.
        weakref.finalize(self, self._opened.close)

    def open(self) -> Generator:
        """Load the weights, unless they are loaded."""
        if self._generator is None:
            opened = open_answer_engine(self._find(), context_tokens=answer_room, open_engine=self._open_engine)
            self._generator = self._opened.enter_context(opened)
        return self._generator

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a text; the weights are not loaded for that."""
        if self._generator is not None:
            return len(self._generator.model.tokenize(text))
        if self._vocabulary is None:
            model = self._find()
            if model.engine:  # it has no vocabulary of its own to load
                return len(self.open().model.tokenize(text))
            self._vocabulary = self._opened.enter_context(self._open_vocabulary(model.path))
        return len(self._vocabulary.tokenize(text))

    def close(self) -> None:
        """Free the model; it can be opened again."""
        self._opened.close()
        self._generator = self._vocabulary = None
