"""Search by keywords alone, for which no model need be loaded."""

from local_rag.errors import QuestionError
from local_rag.files import is_utf8
from local_rag.index.keyword_index import keyword_tokens
from local_rag.index.protocol import Index
from local_rag.records import EVERYTHING, SITUATED, Filters, Hit, Passage
from local_rag.retrieval.filters import Filtering
from local_rag.retrieval.search import Shelf, found_passage
from local_rag.retrieval.whole_documents import asks_for_documents, without
from local_rag.store.database import Store


def search_keywords(
    question: str, index: Index, store: Store | Shelf, *, top: int, filters: Filters = EVERYTHING
) -> list[Passage]:
    """Return the passages that score best for the words of a question, best first; the index is open."""
    if not is_utf8(question):
        raise QuestionError("The question is not UTF-8; set the terminal to UTF-8 and type it again.")
    situated = index.manifest.get("fingerprint", {}).get("context", "llm") in SITUATED
    terms, allowed = keyword_tokens(question), Filtering(store).allowed(filters)
    rows = () if asks_for_documents(question) else store.document_rows()
    ranking = without(rows, lambda count: index.keywords(terms, count, allowed), top)
    stored = store.chunks_by_id([chunk for chunk, _ in ranking])
    return [
        found_passage(stored[chunk], score, (Hit("keyword", rank, score),), situated=situated)
        for rank, (chunk, score) in enumerate(ranking, start=1)
        if chunk in stored
    ]
