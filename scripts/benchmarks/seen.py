"""Hold a library with hidden documents against one without them, for a person who does not see these.

    python -m scripts.benchmarks seen --documents 40 --requests 300 --seeds 1 2 3

Both libraries are made of random documents in a temporary folder, with fakes for the models, and get the same random
requests of every route and tool. Every byte of the replies is compared, but for what is random or a time. The exit code
is 1 if there is a difference.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.support.two_libraries import differences


def main() -> None:
    """Print the differences of each seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=40)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    given = parser.parse_args()
    total = 0
    for seed in given.seeds:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            found = differences(Path(folder), documents=given.documents, count=given.requests, seed=seed)
        total += len(found)
        print(f"seed {seed}: {len(found)} of {given.requests} replies differ ({time.monotonic() - begun:.0f} s)")
        for one in found:
            print(f"  {one}")
    sys.exit(bool(total))


if __name__ == "__main__":
    main()
