"""Select from the passages that were found those worth reading: what a model reads is most of the time of an answer."""

from collections.abc import Sequence

from local_rag.records import Passage

_FEWEST = 2


def likely_sources(passages: Sequence[Passage], near: float) -> list[Passage]:
    """Leave out passages whose score by the reranker is further than `near` below the best; with 0 all stay.

    The order stays, and so do the first two. Where nothing was reranked all stay.
    """
    scores = [next((hit.score for hit in passage.hits if hit.list_name == "rerank"), None) for passage in passages]
    best = max((score for score in scores if score is not None), default=None)
    return [
        passage
        for place, (passage, score) in enumerate(zip(passages, scores, strict=True))
        if not near or best is None or place < _FEWEST or (score is not None and score >= best - near)
    ]
