"""Test a new installation without network: `python -m local_rag.bundle.self_test PROFILE` prints JSON.

Every native package is imported in its own process, because an instruction that the processor lacks kills it. Then a
small document is indexed, searched for (with the reranker, if the profile has one) and asked about.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from local_rag.bundle.prefix import START, last_line, run
from local_rag.offline import close, open_ways

_TEXT = "# Office\n\nThe office is in Oslo.\n"
_QUESTION = "Is the office in Oslo?"  # even the smallest model answers it
_SECONDS = 900


def native_modules() -> list[str]:
    """Return a module to import for every package with compiled code."""
    found = set()
    for package in distributions():
        for file in package.files or ():
            top = file.parts[0]
            if not (file.suffix == ".so" or ".so." in file.name):
                continue
            if len(file.parts) == 1:  # a top-level module
                found.add(top.partition(".")[0])
            elif Path(str(package.locate_file(top)), "__init__.py").is_file():
                found.add(top)
    return sorted(name for name in found if name.isidentifier())


def try_import(module: str) -> str:
    """Import a module in another process; return the problem as a clause, or an empty string.

    Its home is a temporary folder, since hf_xet writes a log into the home when it is imported.
    """
    with tempfile.TemporaryDirectory(prefix="local-rag-import-") as home:
        environment = os.environ | dict.fromkeys(("HOME", "XDG_CACHE_HOME", "HF_HOME"), home)
        done = run([sys.executable, "-P", "-c", f"import {module}"], env=environment)
    if done.returncode == -signal.SIGILL:
        return f"{module} uses instructions that this processor does not have"
    if done.returncode < 0:
        return f"importing {module} crashes with {signal.Signals(-done.returncode).name}"
    if done.returncode:
        return f"{module} cannot be imported ({last_line(done)})"
    return ""


def run_test(profile: str) -> dict[str, Any]:
    """Run all tests; return the results, with `problem` if one failed."""
    started, result = time.monotonic(), dict[str, Any]()
    if ways := open_ways():
        return {"ok": False, "problem": f"the network cannot be closed ({', '.join(ways)})"}
    result["imported"] = native_modules()
    for module in result["imported"]:
        if problem := try_import(module):
            return {"ok": False, "problem": problem}
    with tempfile.TemporaryDirectory(prefix="local-rag-self-test-") as temporary:
        document, library = Path(temporary) / "office.md", Path(temporary) / "library"
        document.write_text(_TEXT)
        common = ["--library", str(library), "--profile", profile, "--json"]
        for command in (["index", str(document), "--context", "headings"], ["search", _QUESTION], ["ask", _QUESTION]):
            output, problem = _run([*command, *common])
            if problem:
                return {"ok": False, "problem": f"`local-rag {command[0]}` failed: {problem}"}
            if command[0] == "search":
                passages = output.get("passages", output) if isinstance(output, dict) else output
                if not passages:
                    return {"ok": False, "problem": "the search found nothing"}
                result["found_by"] = sorted(passages[0]["ranks"])
            if command[0] == "ask":
                result |= {"question": _QUESTION, "answered": output["answered"], "answer": output["answer"]}
    return {"ok": True, **result, "seconds": round(time.monotonic() - started, 1)}


def _run(arguments: Sequence[str]) -> tuple[Any, str]:
    """Run a command of this installation; return its JSON and an empty string, or None and the problem."""
    try:
        done = run([sys.executable, "-P", "-c", START, *arguments], timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return None, f"it took over {_SECONDS} seconds"
    if done.returncode < 0:
        return None, f"it crashed with {signal.Signals(-done.returncode).name}"
    if done.returncode:
        return None, last_line(done)
    return json.loads(done.stdout), ""


if __name__ == "__main__":
    close()
    print(json.dumps(run_test(sys.argv[1])))
