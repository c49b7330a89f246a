"""Tests. Two processes run them side by side (pytest-xdist), and each takes its own share of the processor's cores.

llama.cpp's threads spin while they wait, so two processes that both count on every core slow each other down many
times over. A process that may use one core starts one thread, and what it starts inherits the share. This stands here
because libraries count the cores when they are imported, which `conftest.py` does.
"""

import os

_worker, _workers = os.environ.get("PYTEST_XDIST_WORKER", ""), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
if _worker and hasattr(os, "sched_setaffinity"):
    _cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, _cores[int(_worker.removeprefix("gw")) % len(_cores) :: _workers])
