"""The health check of machine, models and library, beside everything else and only one at a time."""

import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from local_rag.errors import LocalRagError
from local_rag.library import Library
from local_rag.maintenance.checks import CheckResult, diagnose
from local_rag.models.choice import chosen

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
        self._view: CheckupView | None = None

    @property
    def view(self) -> CheckupView | None:
        """Return what the last check has found, None before the first."""
        return self._view

    def start(self, library: Library) -> None:
        """Begin a check, unless one is running."""
        with self._lock:
            if self._view and self._view.running:
                return
            self._view = CheckupView(running=True)
        threading.Thread(target=self._run, args=(library,), name="checkup", daemon=True).start()

    def _run(self, library: Library) -> None:
        found = list[CheckResult]()
        try:
            for result in self._check(library):
                found.append(result)
                self._view = CheckupView(running=True, findings=tuple(found))
        except LocalRagError as error:
            found.append(CheckResult("check", "failed", str(error)))
        except Exception:  # noqa: BLE001  the page says where to look
            traceback.print_exc(file=sys.stderr)
            found.append(CheckResult("check", "failed", "it ended early; see what `local-rag serve` has printed"))
        finally:
            self._view = CheckupView(findings=tuple(found))


def check_as_served(library: Library) -> Iterable[CheckResult]:
    """Check what a server uses: the models of its library, also those that flags have named."""
    models = {f"{role}_model": name for role, name in chosen(library.settings).items()}
    return diagnose(library.folder, profile=library.settings.profile, **models)
