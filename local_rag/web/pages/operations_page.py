"""For who runs the server: what it has done in numbers, what is slow, whether it is ready, and the health check."""

import asyncio
import resource
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from local_rag.errors import ForbiddenError, LocalRagError
from local_rag.library import Library
from local_rag.machine import free_bytes, resident_bytes
from local_rag.maintenance.checks import CheckResult, diagnose
from local_rag.models.choice import chosen
from local_rag.serving.http import json_response
from local_rag.web.pages.changes_page import change_of
from local_rag.web.site import PageRequest

_SLOW_DISK, _LITTLE_ROOM, _LONG_QUEUE = 0.1, 2 * 1024**3, 4
_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Check = Callable[[Library], Iterable[CheckResult]]


@dataclass(frozen=True, slots=True)
class CheckupView:
    """What the last health check has found so far; `running` says whether more may come."""

    running: bool = False
    findings: tuple[CheckResult, ...] = ()


class Checkup:
    """Run the health check in a thread of its own; it hashes and loads models, so a second one waits for nobody."""

    def __init__(self, check: Check) -> None:
        self._check, self._lock = check, threading.Lock()
        self.view: CheckupView | None = None  # before the first check

    def start(self, library: Library) -> None:
        """Begin a check, unless one is running."""
        with self._lock:
            if self.view and self.view.running:
                return
            self.view = CheckupView(running=True)
        threading.Thread(target=self._run, args=(library,), name="checkup", daemon=True).start()

    def _run(self, library: Library) -> None:
        findings = list[CheckResult]()
        try:
            for result in self._check(library):
                findings.append(result)
                self.view = CheckupView(running=True, findings=tuple(findings))
        except LocalRagError as error:
            findings.append(CheckResult("check", "failed", str(error)))
        except Exception:  # noqa: BLE001  the page says where to look
            traceback.print_exc(file=sys.stderr)
            findings.append(CheckResult("check", "failed", "it ended early; see what `local-rag serve` has printed"))
        finally:
            self.view = CheckupView(findings=tuple(findings))


def check_as_served(library: Library) -> Iterable[CheckResult]:
    """Check what a server uses: the models of its library, also those that flags have named."""
    models = {f"{role}_model": name for role, name in chosen(library.settings).items()}
    return diagnose(library.folder, profile=library.settings.profile, **models)


def metrics(request: PageRequest) -> Response:
    """Return what the server has done, in the text format of Prometheus."""
    return PlainTextResponse(request.service.metrics.text(_gauges(request)), media_type=_TYPE)


def health(request: PageRequest) -> Response:
    """Show how long the last questions took in each stage, and what slows the server down now."""
    gauges, folder, began = _gauges(request), request.service.library.folder, time.monotonic()
    sum(1 for _ in folder.iterdir())
    disk = time.monotonic() - began
    reasons = slow(gauges, disk=disk, free=free_bytes(folder), indexing=change_of(request).running)
    durations = request.service.metrics.durations()
    if request.wants_json:
        return json_response({"slow": reasons, "durations": durations, "gauges": gauges})
    return request.page("health.html", slow=reasons, durations=durations, gauges=gauges, disk=disk)


async def ready(request: PageRequest) -> Response:
    """Return whether the server is ready to search; this waits for no disk and no page."""
    worker = request.service.worker
    if not worker.ready:
        worker.wake()
    badge = await asyncio.to_thread(request.site.seal.badge)
    return json_response({"ready": worker.ready, "sealed": badge.sealed, "loaded": worker.loaded})


async def doctor(request: PageRequest) -> Response:
    """Begin to check machine, models and library."""
    request.require("owner")
    request.app.state.checkup.start(request.service.library)
    return request.done("/library#doctor")


def doctor_findings(request: PageRequest) -> Response:
    """Return the part of the page that shows what a check has found so far."""
    request.require("owner")
    checkup = request.app.state.checkup.view
    return request.part("checkup.html", running=bool(checkup and checkup.running), checkup=checkup)


ROUTES = (
    Route("/metrics", metrics),
    Route("/health", health),
    Route("/healthz", ready),
    Route("/library/doctor", doctor, methods=["POST"]),
    Route("/library/doctor", doctor_findings),
)


def slow(gauges: dict[str, float], *, disk: float, free: int, indexing: bool) -> list[str]:
    """Return a sentence for each reason why answers may take long now."""
    waiting = int(gauges["local_rag_waiting_jobs"])
    reasons = {
        "The models are not loaded: the next question waits for them.": not gauges["local_rag_models_loaded"],
        f"{waiting} questions wait in the queue: one is answered at a time.": waiting >= _LONG_QUEUE,
        f"The disk of the library is slow: listing its folder took {disk:.1f} seconds.": disk >= _SLOW_DISK,
        f"Only {free / 1024**3:.1f} GiB are free on the disk of the library.": free < _LITTLE_ROOM,
        "Documents are being indexed, which takes processor time from answers.": (
            indexing or bool(gauges["local_rag_indexing"])
        ),
    }
    return [sentence for sentence, holds in reasons.items() if holds]


def _gauges(request: PageRequest) -> dict[str, float]:
    """Return numbers of this moment; they are of the whole library, so they are for its owners."""
    request.require("owner")
    library, worker = request.library, request.service.worker
    if not library.documents.are_all_seen:
        raise ForbiddenError("These numbers are of the whole library, of which you may see a part.")
    progress, status = library.documents.progress(), resource.getrusage(resource.RUSAGE_SELF)
    return {
        "local_rag_ready": worker.ready,
        "local_rag_models_loaded": worker.loaded,
        "local_rag_waiting_jobs": worker.waiting,
        "local_rag_indexing": progress.running,
        "local_rag_chunks": progress.chunks,
        "local_rag_chunks_with_vectors": progress.vectors,
        "local_rag_documents": progress.documents,
        "local_rag_sealed": request.site.seal.badge().sealed,
        "process_resident_memory_bytes": resident_bytes(),
        "process_cpu_seconds": status.ru_utime + status.ru_stime,
    }
