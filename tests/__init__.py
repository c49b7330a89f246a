"""Tests. `scripts/test.sh` runs them in two processes (pytest-xdist), each on its own share of the processor's cores.

The threads of llama.cpp spin while they wait, so two processes that both use every core slow each other down many times
over. A process that is limited to one core starts one thread, and its child processes inherit the limit. The limit is
set here because libraries count the cores when `conftest.py` imports them.
"""

import os

_worker, _workers = os.environ.get("PYTEST_XDIST_WORKER", ""), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if _worker and hasattr(os, "sched_setaffinity"):
    _cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, _cores[int(_worker.removeprefix("gw")) % len(_cores) :: _workers])
