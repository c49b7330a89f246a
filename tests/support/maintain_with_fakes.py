"""The process that changes documents, with fakes for its models: `python -m tests.support.maintain_with_fakes`."""

import os
import time

from local_rag.web.changes.change_process import main
from tests.fakes import QUICK

if __name__ == "__main__":
    time.sleep(float(os.environ.get("TEST_WAITS_BEFORE", "0")))
    main(QUICK, sealed=False)
