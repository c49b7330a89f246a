"""Make a passage of a stored chunk."""

from local_rag.records import ContextMode, Hit, Passage, StoredChunk


def found_passage(stored: StoredChunk, score: float, hits: tuple[Hit, ...], mode: ContextMode = "auto") -> Passage:
    """Make a passage of a stored chunk, with the contexts that are part of an index of this mode."""
    chunk = stored.chunk
    return Passage(
        chunk_id=stored.id,
        path=stored.path,
        title=stored.title,
        text=chunk.text,
        terms=stored.terms if mode == "auto" else "",
        sentence=stored.sentence if mode == "auto" else "",
        headings=chunk.headings,
        page=chunk.page,
        line=chunk.line,
        end_line=chunk.end_line,
        score=score,
        hits=hits,
        start=chunk.start,
        end=chunk.end,
        provenance=stored.provenance,
        kind=stored.kind,
        table_header=chunk.table_header,
        ocr=chunk.ocr,
        sha256=stored.sha256,
    )
