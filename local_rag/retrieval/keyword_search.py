"""Search by keywords alone, which needs no model."""

from local_rag.asking import EVERYTHING, Filters
from local_rag.errors import QuestionError
from local_rag.files import is_utf8
from local_rag.index.protocol import Index, PassageStore
from local_rag.records import ContextMode, Hit, Passage
from local_rag.retrieval.document_questions import asks_for_documents
from local_rag.retrieval.filters import Filtering
from local_rag.retrieval.found_passage import found_passage
from local_rag.text.tokens import question_terms


def search_keywords(
    question: str, index: Index, passages: PassageStore, *, top: int, filters: Filters = EVERYTHING
) -> list[Passage]:
    """Return the passages with the best scores for the words of a question, best first, from an open index."""
    if not is_utf8(question):
        raise QuestionError("The question is not UTF-8; set the terminal to UTF-8 and type it again.")
    mode: ContextMode = index.manifest.get("fingerprint", {}).get("context", "auto")
    terms, allowed = question_terms(question), Filtering(passages).allowed(filters)
    ranking = index.keywords(terms, top, allowed, documents=asks_for_documents(question))
    stored = passages.chunks_by_id([chunk for chunk, _ in ranking])
    return [
        found_passage(stored[chunk], score, (Hit("keyword", rank, score),), mode)
        for rank, (chunk, score) in enumerate(ranking, start=1)
        if chunk in stored
    ]
