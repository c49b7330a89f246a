"""What a server has done and how long it took, in the text format of Prometheus; no word of a question is in it."""

import itertools
import statistics
import threading
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from concurrent.futures import Future
from time import monotonic
from typing import Any

from local_rag.errors import StoppedError
from local_rag.retrieval.searcher import Trace
from local_rag.serving.job import Job
from local_rag.serving.requests import ServedAnswer

_BUCKETS = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)  # seconds
_REMEMBERED = 200  # durations of each kind
_HELP = {
    "local_rag_requests_total": "HTTP requests, by method and status.",
    "local_rag_questions_total": "Questions, by what came of them, and whether the answer was kept from before.",
    "local_rag_searches_total": "Searches, by what came of them.",
    "local_rag_question_seconds": "From a question to its answer, with the time in the queue.",
}

Labels = tuple[tuple[str, str], ...]


class Metrics:
    """Count requests and jobs, and remember how long the last ones took; any thread may call it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts = Counter[tuple[str, Labels]]()
        self._questions, self._seconds = Counter[float](), 0.0
        self._last: defaultdict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_REMEMBERED))

    def count(self, name: str, **labels: str) -> None:
        """Count one more."""
        with self._lock:
            self._counts[name, tuple(sorted(labels.items()))] += 1

    def watch(self, job: Job[Any]) -> None:
        """Count a job, a search or a question, when it ends."""
        began = monotonic()
        job.result.add_done_callback(lambda result: self._ended(result, monotonic() - began))

    def _ended(self, result: Future[Any], seconds: float) -> None:
        error = result.exception()
        value = None if error else result.result()
        if isinstance(value, ServedAnswer):
            self.count("local_rag_questions_total", outcome=value.answer.outcome, again="yes" if value.again else "no")
            worked = 0.0 if value.again else value.answer.seconds
            self._note({"question, in all": seconds, "waiting in the queue": max(0.0, seconds - worked)})
            self._note({} if value.again else {"searching and answering": worked})
            with self._lock:
                self._seconds += seconds
                self._questions[next((bound for bound in _BUCKETS if seconds <= bound), float("inf"))] += 1
        elif isinstance(value, Trace):
            self.count("local_rag_searches_total", outcome="done")
            self._note({"search, in all": seconds} | {f"search: {name}": took for name, took in value.seconds.items()})
        elif error is not None:
            outcome = "stopped" if isinstance(error, StoppedError) else "failed"
            self.count("local_rag_jobs_ended_early_total", outcome=outcome)

    def _note(self, seconds: Mapping[str, float]) -> None:
        with self._lock:
            for stage, took in seconds.items():
                self._last[stage].append(took)

    def durations(self) -> list[dict[str, Any]]:
        """Return how many seconds the last jobs took in each stage, the slowest one first."""
        with self._lock:
            last = {stage: list(took) for stage, took in self._last.items()}
        durations = [
            {"stage": name, "count": len(took), "median": statistics.median(took), "slowest": max(took)}
            for name, took in last.items()
        ]
        return sorted(durations, key=lambda one: -one["median"])

    def text(self, gauges: Mapping[str, float]) -> str:
        """Return all counts, and some values of this moment, in the text format of Prometheus."""
        with self._lock:
            counts, questions, seconds = dict(self._counts), Counter(self._questions), self._seconds
        lines = [line for name, value in gauges.items() for line in (f"# TYPE {name} gauge", f"{name} {value:g}")]
        for name, group in itertools.groupby(sorted(counts.items()), lambda item: item[0][0]):
            lines += _head(name, "counter")
            lines += [f"{name}{_shown(labels)} {count}" for (_, labels), count in group]
        name, total = "local_rag_question_seconds", questions.total()
        lines += _head(name, "histogram")
        for bound, below in zip(_BUCKETS, itertools.accumulate(questions[bound] for bound in _BUCKETS), strict=True):
            lines.append(f'{name}_bucket{{le="{bound:g}"}} {below}')
        lines += [f'{name}_bucket{{le="+Inf"}} {total}', f"{name}_sum {seconds:.3f}", f"{name}_count {total}"]
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str) -> list[str]:
    return [*([f"# HELP {name} {_HELP[name]}"] if name in _HELP else []), f"# TYPE {name} {kind}"]


def _shown(labels: Labels) -> str:
    """Return labels as the format writes them; their values are our own words."""
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels) + "}" if labels else ""
