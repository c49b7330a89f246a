"""Run one measurement of this folder.

    python -m scripts.benchmarks --list
    python -m scripts.benchmarks NAME [arguments]

`NAME --help` shows the arguments. Run it in the root folder of the checkout, on an idle machine.
"""

import ast
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).parent
USAGE = "python -m scripts.benchmarks"


def names() -> list[str]:
    """Return the names of all measurements; a module whose name begins with an underscore only helps others."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if not path.name.startswith("_"))


def first_sentence(name: str) -> str:
    """Return the first paragraph of a module's docstring without importing the module, which can load models."""
    docstring = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))) or ""
    return " ".join(docstring.partition("\n\n")[0].split())


def main(arguments: Sequence[str]) -> None:
    """List the measurements, or run the one that is named."""
    if arguments and arguments[0] == "--list":
        width = max(map(len, names()))
        print("\n".join(f"{name:{width}}  {first_sentence(name)}" for name in names()))
    elif arguments and arguments[0] in names():
        os.environ.setdefault("LOCAL_RAG_KEEP_WARM", "0")  # each command loads what it needs, unless that is measured
        sys.argv = [f"{USAGE} {arguments[0]}", *arguments[1:]]
        importlib.import_module(f"scripts.benchmarks.{arguments[0]}").main()
    elif arguments and arguments[0] in ("-h", "--help"):
        print(__doc__)
    else:
        problem = f"There is no measurement {arguments[0]!r}; " if arguments else ""
        sys.exit(f"{problem}usage: {USAGE} --list | NAME [arguments]")


if __name__ == "__main__":
    main(sys.argv[1:])
