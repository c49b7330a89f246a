"""Check the sentences of an answer against what they cite, mend citations, and leave out what nothing supports."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from local_rag.models.reranker import Reranker, reranked_text
from local_rag.records import Passage, SentenceSupport
from local_rag.verification.facts import missing_facts, source_of
from local_rag.verification.sentences import Sentence, cited_sentences, inherit_citations, with_citations

# How much higher the cross-encoder must score another passage; a cautious guess, in logits of the shipped one.
_CLEARLY_BETTER = 4.0


@dataclass(frozen=True, slots=True)
class Supported:
    """An answer as it stands after the check; `changes` are the citations that were changed, from and to."""

    text: str
    sentences: tuple[SentenceSupport, ...]
    changes: tuple[tuple[int, int], ...] = ()

    def strict_text(self) -> str:
        """Return the text without the sentences of which something is missing in the sources."""
        if all(support.supported for support in self.sentences):
            return self.text
        return " ".join(support.sentence for support in self.sentences if support.supported)


def check_support(
    question: str,
    text: str,
    passages: Sequence[Passage],
    reranker: Reranker | None = None,
    removed: Sequence[tuple[int, int]] = (),
) -> Supported:
    """Say of each sentence of an answer what of it does not occur in the passages that it cites by their numbers.

    Where the answer cites nothing, all passages count. What the question says is taken as said. With a cross-encoder
    a sentence that cites one passage is made to cite another one that it clearly fits better, and one that cites none
    and of which something is missing where its neighbour's citation points, one that it fits better and that has all
    of it. `removed` are numbers that named no source, each behind the length of the text before it.
    """
    sources, changes = list(map(source_of, passages)), list[tuple[int, int]]()

    def missing(sentence: Sentence, numbers: Sequence[int]) -> tuple[str, ...]:
        cited = [sources[number - 1] for number in numbers if 1 <= number <= len(sources)] or sources
        return tuple(dict.fromkeys(fact.text for fact in missing_facts(question, sentence.text, cited)))

    def moved(sentence: Sentence, scores: Sequence[float]) -> Sentence:
        if len(sentence.citations) != 1 or sentence.citations[0] > len(scores):
            return sentence
        (cited,) = sentence.citations
        best = max(range(1, len(scores) + 1), key=lambda number: scores[number - 1])
        if scores[best - 1] <= scores[cited - 1] + (_CLEARLY_BETTER if sentence.own else 0.0):
            return sentence
        # What lacks a number or name of the sentence never takes the place of what has it.
        lacking, there = (set(missing(sentence, (number,))) for number in (cited, best))
        if not (there <= lacking if sentence.own else lacking and not there):
            return sentence
        changes.append((cited, best))
        return replace(sentence, text=with_citations(sentence, (best,)), citations=(best,))

    before = cited_sentences(text)
    scores = [_scores(sentence, passages, reranker) for sentence in before]
    after = [moved(*pair) if pair[0].own else pair[0] for pair in zip(before, scores, strict=True)]
    after = inherit_citations(after)  # what the neighbour cites now
    after = [pair[0] if pair[0].own else moved(*pair) for pair in zip(after, scores, strict=True)]
    found, begun = list[SentenceSupport](), 0
    for old, new, fits in zip(before, after, scores, strict=True):
        ended = begun + len(old.text)
        gone = tuple(number for place, number in removed if begun < place <= ended or place == begun == 0)
        begun = ended
        lacking = missing(new, new.citations)
        score = max((fits[number - 1] for number in new.citations if number <= len(fits)), default=None)
        found.append(SentenceSupport(new.text.strip(), not lacking, lacking, score, new.citations, gone))
    return Supported("".join(sentence.text for sentence in after), tuple(found), tuple(dict.fromkeys(changes)))


def _scores(sentence: Sentence, passages: Sequence[Passage], reranker: Reranker | None) -> list[float]:
    """Return how well each passage fits a sentence, nothing without a cross-encoder."""
    words = with_citations(sentence, ()).strip()
    return reranker.score(words, list(map(reranked_text, passages))) if reranker and words else []
