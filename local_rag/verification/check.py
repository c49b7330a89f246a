"""Check the sentences of an answer against the sources they cite, correct citations, and drop unsupported sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

from local_rag.models.reranker import Reranker, reranked_text
from local_rag.records import Passage, SentenceSupport
from local_rag.verification.facts import missing_facts, source_of
from local_rag.verification.move import move_citations
from local_rag.verification.sentences import Sentence, cited_sentences, with_citations
from local_rag.verification.sources import Source


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """The text of an answer after the check.

    `changes` lists the citations that were changed, as pairs of the old and the new number.
    """

    text: str
    sentences: tuple[SentenceSupport, ...]
    changes: tuple[tuple[int, int], ...] = ()

    def strict_text(self) -> str:
        """Return the text without the sentences that the sources do not fully support."""
        if all(support.supported for support in self.sentences):
            return self.text
        return " ".join(support.sentence for support in self.sentences if support.supported)


def check_support(
    question: str,
    text: str,
    passages: Sequence[Passage],
    reranker: Reranker | None = None,
    removed: Sequence[tuple[int, int]] = (),
) -> CheckedAnswer:
    """Report for each sentence of an answer which of its facts do not occur in the passages that it cites by number.

    If the answer cites nothing, all passages count. Facts from the question count as supported. With a cross-encoder,
    citations move to passages that fit better (see `move.py`). `removed` holds the numbers that named no source, each
    after its position in the text.
    """
    sources = [source_of(passage) for passage in passages]
    sentences = cited_sentences(text, removed)
    scores = [_scores(sentence, passages, reranker) for sentence in sentences]
    moved, changes = move_citations(
        sentences, scores, lambda sentence, number: set(_missing(question, sentence, (number,), sources))
    )
    support = tuple(
        _support(sentence, row, _missing(question, sentence, sentence.citations, sources))
        for sentence, row in zip(moved, scores, strict=True)
    )
    return CheckedAnswer("".join(sentence.text for sentence in moved), support, tuple(dict.fromkeys(changes)))


def _scores(sentence: Sentence, passages: Sequence[Passage], reranker: Reranker | None) -> list[float]:
    """Return how well each passage fits a sentence; the list is empty without a cross-encoder."""
    words = with_citations(sentence, ()).strip()
    return reranker.score(words, list(map(reranked_text, passages))) if reranker and words else []


def _missing(question: str, sentence: Sentence, numbers: Sequence[int], sources: Sequence[Source]) -> tuple[str, ...]:
    """Return the facts of a sentence, as written, that the sources with these numbers lack."""
    cited = [sources[number - 1] for number in numbers if 1 <= number <= len(sources)] or sources
    return tuple(dict.fromkeys(fact.text for fact in missing_facts(question, sentence.text, cited)))


def _support(sentence: Sentence, scores: Sequence[float], missing: tuple[str, ...]) -> SentenceSupport:
    score = max((scores[number - 1] for number in sentence.citations if number <= len(scores)), default=None)
    return SentenceSupport(sentence.text.strip(), not missing, missing, score, sentence.citations, sentence.removed)
