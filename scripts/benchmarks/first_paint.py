"""Measure how long Chromium takes to paint the pages of a server on this machine for the first time.

    local-rag serve --no-token --port 8000 &
    python -m scripts.benchmarks first_paint --address http://127.0.0.1:8000

The time is that of the browser's own entry `first-contentful-paint`, from the beginning of the navigation, each page
loaded several times, the first time without a cache; `response_median` is when the page had come from the server.
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from tests.support.browser import chromium, missing

_PATHS = ("/", "/search?q=harbour", "/inspect?q=harbour", "/library", "/history")
_PAINT = """
const [said] = arguments;
new PerformanceObserver((list) => {
  const found = list.getEntriesByName("first-contentful-paint")[0];
  if (found) said([found.startTime, performance.getEntriesByType("navigation")[0].responseEnd]);
}).observe({ type: "paint", buffered: true });
"""


def main() -> None:
    """Load each page, and print the times in milliseconds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", default="http://127.0.0.1:8000")
    parser.add_argument("--loads", type=int, default=20)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if reason := missing():
        sys.exit(f"No browser: {reason}.")
    report = {}
    with chromium() as driver:
        for path in _PATHS:
            took, answered = [], []
            for _ in range(arguments.loads):
                driver.get(arguments.address.rstrip("/") + path)
                painted, response = driver.execute_async_script(_PAINT)
                took.append(painted)
                answered.append(response)
            report[path] = {
                "first_load": round(took[0]),
                "fastest": round(min(took)),
                "median": round(statistics.median(took)),
                "slowest": round(max(took)),
                "response_median": round(statistics.median(answered)),
            }
    print(json.dumps(report, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
