"""The packages of local_rag/ as the source has them: their layers and their descriptions."""

import ast
import re
import tomllib
from pathlib import Path

from scripts.docs.markdown import table

CHECKOUT = Path(__file__).parents[2]
PACKAGE = CHECKOUT / "local_rag"


def layers() -> list[list[str]]:
    """Return the packages of each layer, bottom layer first."""
    data = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = data.get("tool", {}).get("importlinter", {}).get("contracts", ())
    lines = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [re.findall(r"\w+", line) for line in reversed(lines)]


def packages_table() -> str:
    """Describe each package in the first paragraph of its docstring."""
    rows = []
    for layer, names in reversed(list(enumerate(layers()))):
        for name in names:
            first = docstring_of(PACKAGE / name).split("\n\n", maxsplit=1)[0]
            suffix = "/" if (PACKAGE / name).is_dir() else ".py"
            rows.append([str(layer), f"`{name}{suffix}`", " ".join(first.split())])
    return table(["layer", "package", "what it is for"], rows)


def docstring_of(path: Path) -> str:
    """Return the docstring of a module or package without importing it."""
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
