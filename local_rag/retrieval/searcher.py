"""Find passages: dense search and keyword search, fused, then reranked if there is a reader."""

import copy
import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from local_rag.answer_records import Correction
from local_rag.asking import EVERYTHING, Filters
from local_rag.errors import QuestionError
from local_rag.index.protocol import Allowed, Index, PassageStore
from local_rag.models.embedder import Embedder
from local_rag.models.reader import Reader, Reading, reranked_text
from local_rag.passage_records import ContextMode, Hit, Passage, found_passage
from local_rag.retrieval.asked_versions import AskedVersions
from local_rag.retrieval.document_names import name_documents
from local_rag.retrieval.filters import Filtering
from local_rag.retrieval.highlights import readable
from local_rag.retrieval.question import Question
from local_rag.retrieval.spelling import Spelling
from local_rag.retrieval.version_families import Versions
from local_rag.settings import Settings
from local_rag.text.heading_lines import HEADING_SIGNS
from local_rag.text.languages import ENGLISH
from local_rag.text.sentences import sentence_spans
from local_rag.text.tokens import keyword_tokens, question_terms


@dataclass(frozen=True, slots=True)
class FollowUpTuning:
    """The weights of earlier questions; the current question has weight 1.

    `terms` is the weight of the words of the previous and the first question, `vector` that of the previous question's
    vector. A question whose similarity to the previous one is below `new_subject_below` starts a new subject.
    """

    terms: float = 0.3
    vector: float = 0.3
    new_subject_below: float = -1.0


FOLLOW_UPS = FollowUpTuning()


def follow_up_query(
    embedder: Embedder, question: str, earlier: Sequence[str] = (), tuning: FollowUpTuning = FOLLOW_UPS
) -> tuple[np.ndarray, list[str], list[float] | None]:
    """Return the normalised vector of a question, its terms for keyword search, and the weights of these terms.

    Of the `earlier` questions, oldest first, the first and the last count. The weights are None if none counts.
    """
    vector, terms = embedder.embed_query(question), question_terms(question)
    if not earlier:
        return vector, terms, None
    before = embedder.embed_query(earlier[-1])
    if float(vector @ before) < tuning.new_subject_below:
        return vector, terms, None
    vector = vector + tuning.vector * before
    recalled = [term for text in dict.fromkeys((earlier[-1], earlier[0])) for term in question_terms(text)]
    weights = [1.0] * len(terms) + [tuning.terms] * len(recalled)
    return vector / np.linalg.norm(vector), terms + recalled, weights


# Passages that are scored at a time; measured in docs/speed.md.
_FIRST_ROUND, _ROUND = 32, 16
_FEWEST = 16  # candidates that are reranked on a slow machine
_SENTENCE_K = 10
_BLEND_K = 10  # for the fusion of both ranks; chosen together with the models' fused_weight, see docs/results.md

Ranking = Sequence[tuple[int, float]]
"""The ids of chunks with their scores, best first."""


@dataclass(frozen=True, slots=True)
class Trace:
    """A search and the result of each of its stages.

    `rankings` holds the chunk ids of the stages dense, keyword, fused and reranked, best first; `seconds` holds the
    duration of embed, dense, keyword, fuse and rerank. Without a reranker, `reranked` and `rerank` are missing.
    `follows` is True if the question was searched as a follow-up. `question` is the question as it was searched, with
    the `corrections` of words that stand in no document.
    """

    passages: list[Passage]
    rankings: dict[str, list[int]]
    seconds: dict[str, float]
    follows: bool = False
    question: str = ""
    corrections: tuple[Correction, ...] = ()


class Stopwatch:
    """Measure the seconds of consecutive stages."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._started = perf_counter()

    def lap(self, stage: str) -> None:
        """End a stage and begin the next one."""
        self.seconds[stage] = perf_counter() - self._started
        self.restart()

    def restart(self) -> None:
        """Begin the next stage now: do not count the time since the last one."""
        self._started = perf_counter()


class Searcher:
    """Search one published index: embed the question, search vectors and keywords, fuse, rerank the best."""

    def __init__(
        self,
        index: Index,
        passages: PassageStore,
        settings: Settings,
        embedder: Embedder,
        load_reader: Callable[[], Reader] | None,
        weak_below: float | None = None,
        follow_ups: FollowUpTuning = FOLLOW_UPS,
        versions: Versions | None = None,
        about_from: float | None = None,
        is_word: Callable[[str], bool] = lambda _word: False,
        of_part: bool = False,
    ) -> None:
        self.index, self.versions, self.about_from = index, versions, about_from
        self._store, self._settings, self._embedder = passages, settings, embedder
        self._weak_below, self._follow_ups = weak_below, follow_ups
        self._filtering = Filtering(passages, versions.outdated if versions else None)
        self._spelling, self._is_word = Spelling(index, passages, is_word, of_part=of_part), is_word
        self._load_reader = functools.cache(load_reader) if load_reader else None

    def showing(self, documents: Collection[int]) -> "Searcher":
        """Return the same searcher as if there were these documents alone: nothing that it finds tells of others."""
        found = copy.copy(self)
        found.index, found.versions = self.index.showing(documents), None
        found.index.open()
        found._spelling = Spelling(found.index, self._store, self._is_word, of_part=True)
        return found

    def load(self) -> None:
        """Load the reranker, if there is one, before the first question."""
        if self._load_reader:
            self._load_reader()

    @property
    def facts_version(self) -> object:
        """Return a value that changes when documents of this index get other paths or times."""
        return self._store.version()

    @property
    def reader(self) -> Reader | None:
        """The reader, loaded at the first use; None if the profile has none."""
        return self._load_reader() if self._load_reader else None

    def trace(
        self,
        question: Question,
        *,
        top: int,
        rerank: bool = True,
        filters: Filters = EVERYTHING,
        every: bool = False,
        min_score: float | None = None,
        of_asked_versions: bool = False,
        earlier: Sequence[str] = (),
        share: int = 1,
        check: Callable[[], None] = lambda: None,
    ) -> Trace:
        """Search the documents that pass the filters; return the ranking and the time of every stage too.

        With `min_score`, keep only the passages that the reranker gives at least this score. With `every`, consider
        many more candidates and keep all that are not weak, or that have `min_score`. Both raise QuestionError without
        a reranker. With `of_asked_versions`, the version of a document that the question asks for, which mostly is the
        newest, stands in the place of the others. `earlier` questions, oldest first, get some weight in the search. If
        a question takes `share` searches, each reranks that fraction of the candidates, so together they cost as much
        as one. `check` is called between the stages, and may raise StoppedError.
        """
        least = self._least_score(rerank, every, min_score)
        settings, watch = self._settings, Stopwatch()
        pool = max(settings.all_candidates if every else settings.pool, top)
        allowed = self._filtering.allowed(filters)
        searched, corrections = self._spelling.correct(question.text, allowed)
        question = replace(question, text=searched)
        earlier = [self._spelling.correct(one, allowed)[0] for one in earlier]
        watch.restart()
        vector, terms, weights_of_terms = follow_up_query(self._embedder, question.text, earlier, self._follow_ups)
        watch.lap("embed")
        check()
        documents = question.plan.about_documents
        lists = {"dense": self.index.dense(vector, pool, allowed, documents=documents)}
        watch.lap("dense")
        check()
        lists["keyword"] = self.index.keywords(terms, pool, allowed, weights_of_terms, documents=documents)
        watch.lap("keyword")
        check()
        rankings = {name: [chunk for chunk, _ in ranking] for name, ranking in lists.items()}
        # Asked in another language than theirs, keywords find little but names, and only vectors find the rest.
        share_known = 1.0 if question.language == ENGLISH else self._share_known(question, allowed)
        weights = {"dense": settings.dense_weight, "keyword": settings.keyword_weight * share_known}
        lists["fused"] = reciprocal_rank_fusion(rankings, k=settings.rrf_k, weights=weights)
        watch.lap("fuse")
        rankings["fused"] = [chunk for chunk, _ in lists["fused"]]
        reader = self.reader if rerank else None
        # Versions are put in order among as many passages for any `top`, so it does not change which comes first.
        ordered = max(top, settings.passages) if self.versions else top
        candidates = lists["fused"][: pool if reader else ordered]
        passages = _fetched(self.index, self._store, lists, candidates)
        watch.restart()
        if reader:
            most = settings.rerank_candidates or (0 if every else self._candidates(reader, share))
            kept = 0 if every else settings.passages
            [passages] = name_documents(question.text, [passages])
            passages = rerank_passages(question.text, passages, reader, candidates=most, kept=kept, check=check)
            watch.lap("rerank")
            rankings["reranked"] = [passage.chunk_id for passage in passages]
            passages = mark_weak(passages, self._weak_below, least)
        found = passages[:top]
        if self.versions:
            asked = AskedVersions(question, self.versions, filters)
            best, rest = passages[: settings.passages], passages[settings.passages :]
            found = asked.only(passages, top) if of_asked_versions else [*asked.first(best), *rest][:top]
            found = [self.versions.marked(passage) for passage in found]
        return Trace(found, rankings, watch.seconds, weights_of_terms is not None, question.text, corrections)

    def closeness(self, text: str, top: int, allowed: Allowed) -> tuple[np.ndarray, list[tuple[int, float]]]:
        """Return the vector of a text, and the chunks with their cosines to it, the closest first."""
        vector = self._embedder.embed_query(text)
        return vector, self.index.dense(vector, top, allowed)

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of passages, shape (texts, dimension)."""
        return self._embedder.embed_passages(texts)

    def share_known(self, question: Question, filters: Filters) -> float:
        """Return the share of a question's words that the documents have."""
        return self._share_known(question, self._filtering.allowed(filters))

    def _share_known(self, question: Question, allowed: Allowed) -> float:
        terms = set(keyword_tokens(question.text, question.language))
        known = sum(bool(self.index.keywords([term], 1, allowed)) for term in terms)
        return known / len(terms) if terms else 1.0

    def _candidates(self, reader: Reader, share: int) -> int:
        """Return the number of passages to rerank.

        Where the fused rank counts, too, a passage far down comes to the top so seldom that only those that are kept
        are read; see docs/speed.md.
        """
        if reader.fused_weight:
            return self._settings.passages
        return max(_FEWEST, int(reader.pairs_per_second * self._settings.rerank_seconds) // share)

    def _least_score(self, rerank: bool, every: bool, min_score: float | None) -> float | None:
        """Return the score below which passages are dropped, None if none is dropped."""
        if not every and min_score is None:
            return None
        if not (rerank and self._load_reader):
            raise QuestionError(
                "--all and --min-score need the scores of a reranker, and there is none; remove --no-rerank, or name a "
                "model with `--rerank-model`."
            )
        if min_score is None and self._weak_below is None:
            raise QuestionError(
                "The score below which passages of this reranker are weak is not known; set `--min-score`."
            )
        return self._weak_below if min_score is None else min_score


def rerank_passages(
    question: str,
    passages: Sequence[Passage],
    reader: Reader,
    *,
    candidates: int = 0,
    kept: int = 0,
    check: Callable[[], None] = lambda: None,
) -> list[Passage]:
    """Rerank the first `candidates` passages, 0 for all; the rest follow in their order.

    Passages are scored in rounds, until a round adds no passage to the first `kept`: later ones are ranked lower still.
    With 0, all are scored. If the reader has a `fused_weight`, passages are ordered by the sum of the reciprocals of
    both ranks, because a small reader and the fused lists fail on different questions. Otherwise the reader alone
    decides. Equal scores keep their order. Each passage that is read gets its best sentence. `check` is called before
    each round.
    """
    limit = min(candidates or len(passages), len(passages))
    readings: list[Reading] = []
    ranked: list[tuple[int, Passage]] = []
    while len(readings) < limit:
        before, end = len(readings), min(limit, max(_FIRST_ROUND, len(readings) + _ROUND))
        check()
        readings += reader.score(question, [reranked_text(passage) for passage in passages[before:end]])
        ranked = _blend(passages, [reading.relevance for reading in readings], reader.fused_weight)
        if kept and before and all(position < before for position, _ in ranked[:kept]):
            break
    read = [replace(one, best=best_sentence(question, one, readings[position])) for position, one in ranked]
    return read + list(passages[len(readings) :])


def best_sentence(question: str, passage: Passage, reading: Reading) -> tuple[int, int]:
    """Return the span of the sentence that a reader and the words of the question place first together.

    Returns (0, 0) if the reader tells no sentence from another.
    """
    text, wanted = readable(passage), frozenset(keyword_tokens(question))
    before = len(reranked_text(passage)) - len(text)
    spans = [span for span in sentence_spans(text) if not HEADING_SIGNS.match(text, span[0])]
    read = [reading.sentence(before + start, before + end) for start, end in spans]
    logits = {number: logit for number, logit in enumerate(read) if logit is not None}
    if len(set(logits.values())) <= 1:
        return (0, 0)
    shared = {number: len(wanted & frozenset(keyword_tokens(text[slice(*spans[number])]))) for number in logits}
    rankings = {
        "reader": sorted(logits, key=logits.__getitem__, reverse=True),
        "words": sorted(shared, key=lambda number: (shared[number], logits[number]), reverse=True),
    }
    return spans[reciprocal_rank_fusion(rankings, k=_SENTENCE_K)[0][0]]


def _blend(passages: Sequence[Passage], scores: Sequence[float], weight: float) -> list[tuple[int, Passage]]:
    """Order the passages that have scores, best first, each with its previous position."""
    order = sorted(range(len(scores)), key=lambda position: -scores[position])
    ranked = []
    for rank, position in enumerate(order, start=1):
        score = 1 / (_BLEND_K + rank) + weight / (_BLEND_K + position + 1) if weight else scores[position]
        hits = (*passages[position].hits, Hit("rerank", rank, scores[position]))
        ranked.append((position, replace(passages[position], score=score, hits=hits)))
    return sorted(ranked, key=lambda one: (-one[1].score, one[0]))


def mark_weak(passages: Sequence[Passage], weak_below: float | None, least: float | None = None) -> list[Passage]:
    """Mark each reranked passage as weak or not; with `least`, keep only those with at least this score."""
    marked = []
    for passage in passages:
        score = next((hit.score for hit in passage.hits if hit.list_name == "rerank"), None)
        if least is None or (score is not None and score >= least):
            known = score is not None and weak_below is not None
            marked.append(replace(passage, weak=score < weak_below) if known else passage)  # type: ignore[operator]
    return marked


def search_keywords(
    question: Question, index: Index, passages: PassageStore, *, top: int, filters: Filters = EVERYTHING
) -> list[Passage]:
    """Return the passages with the best scores for the words of a question, best first; this needs no model."""
    terms, allowed = question_terms(question.text, question.language), Filtering(passages).allowed(filters)
    ranking = index.keywords(terms, top, allowed, documents=question.plan.about_documents)
    return _fetched(index, passages, {"keyword": ranking}, ranking)


def _fetched(index: Index, store: PassageStore, lists: Mapping[str, Ranking], candidates: Ranking) -> list[Passage]:
    """Fetch the candidates that are in the store, with the rank and score of each in every list."""
    # The store may hold contexts of an earlier run that this index does not contain.
    mode: ContextMode = index.manifest.get("fingerprint", {}).get("context", "auto")
    hits: dict[int, list[Hit]] = {chunk: [] for chunk, _ in candidates}
    for name, ranking in lists.items():
        for rank, (chunk, score) in enumerate(ranking, start=1):
            if chunk in hits:
                hits[chunk].append(Hit(name, rank, score))
    stored = store.chunks_by_id(list(hits))
    return [
        found_passage(stored[chunk], score, tuple(hits[chunk]), mode) for chunk, score in candidates if chunk in stored
    ]


def reciprocal_rank_fusion(
    rankings: Mapping[str, Sequence[int]], *, k: int = 60, weights: Mapping[str, float] | None = None
) -> list[tuple[int, float]]:
    """Fuse ranked lists of ids into one list of ids with scores, best first (Cormack et al., SIGIR 2009).

    An id scores the sum of weight / (k + rank) over the lists that hold it, rank counted from 1. A list without a
    weight weighs 1. Equal scores keep the order in which the ids were first met.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    scores: dict[int, float] = {}
    for name, ranking in rankings.items():
        weight = 1.0 if weights is None else weights.get(name, 1.0)
        for rank, identifier in enumerate(ranking, start=1):
            scores[identifier] = scores.get(identifier, 0.0) + weight / (k + rank)
    return sorted(scores.items(), key=lambda item: -item[1])
