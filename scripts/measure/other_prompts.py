"""Ask for contexts in other ways than local-rag does, for the scripts that compare the ways.

tests/scripts/test_tune_contexts.py sees that the texts here are still those of local-rag.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from local_rag.indexing.contextualize import ContextJob, prompt_requests
from local_rag.llama.generator import Request, Vocabulary

SYSTEM = "You write short notes that help a search engine find passages of documents."
INSTRUCTION = (
    "Please give a short succinct context to situate the last chunk within the overall document for the purposes of "
    "improving search retrieval of the chunk. Answer only with the succinct context, in one sentence, and nothing else."
)
OPENING = "This chunk"
DOCUMENT, END = "<document>\n", "\n</chunk>\n</document>\n\n"
# Behind a whole document a chunk is quoted, and no longer the last one.
QUOTED, QUOTED_END = "\n</document>\n\nHere is a chunk of this document:\n<chunk>\n", "\n</chunk>\n\n"
TOLD = "What sets this document apart from others like it: "
LAST, THIS = "the last chunk", "this chunk"
TEXTS = (SYSTEM, OPENING, DOCUMENT, END, TOLD, QUOTED, QUOTED_END, LAST, THIS)


def cut_at_chunk(
    jobs: Iterable[ContextJob], model: Vocabulary, instruction: str, *, told: bool = False
) -> Iterator[Request]:
    """Yield the prompts of local-rag, which end where the chunk ends, with another instruction.

    With `told` the model is told what sets the document apart, for the chunks that can be mistaken.
    """
    asked = f"{instruction}{model.chat_frame(SYSTEM)[1]}{OPENING}"
    plain, said = model.tokenize(f"{END}{asked}", special=True), dict[str, str]()

    def noted() -> Iterator[ContextJob]:
        for job in jobs:
            said[job.key] = job.told
            yield job

    for request in prompt_requests(noted(), model):
        suffix = plain
        if told and (apart := said.pop(request.key)):
            suffix = [*model.tokenize(f"{END}{TOLD}{apart}\n\n"), *model.tokenize(asked, special=True)]
        yield replace(request, suffix=suffix)


def document_head(model: Vocabulary) -> list[int]:
    """Return what stands before a document, in tokens."""
    return model.tokenize(f"{model.chat_frame(SYSTEM)[0]}{DOCUMENT}", special=True)


def quotation(model: Vocabulary, instruction: str = INSTRUCTION) -> Callable[[str], list[int]]:
    """Return what makes of a text the suffix that quotes it behind its whole document and asks for its context."""
    asked = f"{instruction.replace(LAST, THIS)}{model.chat_frame(SYSTEM)[1]}{OPENING}"
    between, end = model.tokenize(QUOTED), model.tokenize(f"{QUOTED_END}{asked}", special=True)
    return lambda text: [*between, *model.tokenize(text), *end]
