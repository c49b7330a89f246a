"""For who runs the server: what it has done in numbers, and a page that says what is slow."""

import resource
import sys
import time
from pathlib import Path

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from local_rag.errors import ForbiddenError
from local_rag.machine import free_bytes
from local_rag.serving.http import require_role
from local_rag.web.pages.changes_page import task_of
from local_rag.web.site import json_response, library_of, site_of, wants_json

_SLOW_DISK, _LITTLE_ROOM, _LONG_QUEUE = 0.1, 2 * 1024**3, 4
_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def metrics(request: Request) -> Response:
    """Return what the server has done, in the text format of Prometheus."""
    return PlainTextResponse(site_of(request).service.metrics.text(_gauges(request)), media_type=_TYPE)


def health(request: Request) -> Response:
    """Show how long the last questions took in each stage, and what slows the server down now."""
    gauges, site = _gauges(request), site_of(request)
    began = time.monotonic()
    sum(1 for _ in site.service.library.folder.iterdir())
    disk = time.monotonic() - began
    reasons = slow(gauges, disk=disk, free=free_bytes(site.service.library.folder), indexing=task_of(request).running)
    durations = site.service.metrics.durations()
    if wants_json(request):
        return json_response({"slow": reasons, "durations": durations, "gauges": gauges})
    return site.page(request, "health.html", slow=reasons, durations=durations, gauges=gauges, disk=disk)


ROUTES = (Route("/metrics", metrics), Route("/health", health))


def slow(gauges: dict[str, float], *, disk: float, free: int, indexing: bool) -> list[str]:
    """Return a sentence for each reason why answers may take long now."""
    waiting = int(gauges["local_rag_waiting_jobs"])
    found = {
        "The models are not loaded: the next question waits for them.": not gauges["local_rag_models_loaded"],
        f"{waiting} questions wait in the queue: one is answered at a time.": waiting >= _LONG_QUEUE,
        f"The disk of the library is slow: listing its folder took {disk:.1f} seconds.": disk >= _SLOW_DISK,
        f"Only {free / 1024**3:.1f} GiB are free on the disk of the library.": free < _LITTLE_ROOM,
        "Documents are being indexed, which takes processor time from answers.": (
            indexing or bool(gauges["local_rag_indexing"])
        ),
    }
    return [sentence for sentence, holds in found.items() if holds]


def _gauges(request: Request) -> dict[str, float]:
    """Return numbers of this moment; they are of the whole library, so they are for its owners."""
    require_role(request.scope, "owner")
    library, worker = library_of(request), site_of(request).service.worker
    if not library.is_whole:
        raise ForbiddenError("These numbers are of the whole library, of which you may see a part.")
    progress, status = library.index_progress(), resource.getrusage(resource.RUSAGE_SELF)
    return {
        "local_rag_ready": worker.ready,
        "local_rag_models_loaded": worker.loaded,
        "local_rag_waiting_jobs": worker.waiting,
        "local_rag_indexing": progress.running,
        "local_rag_chunks": progress.chunks,
        "local_rag_chunks_with_vectors": progress.vectors,
        "local_rag_documents": len(library.contents().documents),
        "local_rag_sealed": site_of(request).seal.badge().sealed,
        "process_resident_memory_bytes": _memory(),
        "process_cpu_seconds": status.ru_utime + status.ru_stime,
    }


def _memory() -> int:
    """Return the bytes of memory in use, or where that is not told the most that were."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
