"""Make an answer of what rows say: its text, and a citation of each table."""

from dataclasses import replace

from local_rag.display import table_lines
from local_rag.records import Answer, Citation, Passage, TableSource, found_passage
from local_rag.store.database import Store
from local_rag.tables.refusals import FromRows

_MOST_CITED = 10  # tables


def as_answer(question: str, found: FromRows, store: Store) -> Answer:
    """Return what rows say as an answer that cites the passages in which the rows begin."""
    if found.table is None:
        return Answer(question, found.refusal, "refused", named=found.considered)
    passages = [passage for one in found.table.sources[:_MOST_CITED] if (passage := _passage(one, store))]
    marks = "".join(f"[{number}]" for number in range(1, len(passages) + 1))
    head, *rest = table_lines(found.table)
    return Answer(
        question,
        "\n".join([f"{head} {marks}".rstrip(), *rest]),
        "answered",
        citations=tuple(Citation(number, passage) for number, passage in enumerate(passages, start=1)),
        passages=tuple(passages),
        table=found.table,
        named=found.considered,
    )


def _passage(source: TableSource, store: Store) -> Passage | None:
    """Return the passage of a document in which the first of its rows lies."""
    text = store.document_text(source.document_id)
    at = text.find(f"Row {source.row}: ", max(0, text.find(f"## {source.sheet}"))) if source.row else 0
    stored = store.chunk_at(source.document_id, max(0, at))
    return replace(found_passage(stored, 0.0, ()), terms="", sentence="") if stored else None
