"""The packages of local_rag/ as the source has them: their layers, their descriptions and their imports."""

import ast
import re
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from scripts.docs.markdown import prose, table

CHECKOUT = Path(__file__).parents[2]
PACKAGE = CHECKOUT / "local_rag"
_ALL_DOWN = (
    "No package imports from a higher layer or from its own. `lint-imports`, which `scripts/test.sh` runs, checks this "
    "on every change."
)


def layers() -> list[tuple[list[str], bool]]:
    """Return the packages of each layer, top layer first, and whether they may import each other."""
    data = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = data.get("tool", {}).get("importlinter", {}).get("contracts", ())
    lines = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    present = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    present -= {"__init__"}
    found = [([name.split(".")[-1] for name in re.findall(r"[\w.]+", line)], ":" in line) for line in lines]
    if missing := present - {name for names, _ in found for name in names}:
        sys.exit(f"local_rag/{', '.join(sorted(missing))} has no layer; add it to the layers in pyproject.toml.")
    return [([name for name in names if name in present], independent) for names, independent in found]


def numbered_layers() -> Iterator[tuple[int, list[str]]]:
    """Yield each layer's number, counted from the bottom, and its packages; top layer first."""
    found = layers()
    for number, (names, _) in enumerate(found):
        yield len(found) - 1 - number, names


def forbidden_imports(imports: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[str]:
    """Yield the imports of a package on a higher layer, or on the same one."""
    layer_of = {name: (layer, known) for layer, (names, known) in enumerate(layers()) for name in names}
    for name, used in imports.items():
        for other, files in sorted(used.items()):
            (layer, known), (other_layer, _) = layer_of[name], layer_of[other]
            if other_layer < layer or (other_layer == layer and not known):
                yield f"`{name}` -> `{other}` ({', '.join(files)})"


def package_imports(name: str) -> dict[str, list[str]]:
    """Return the packages that a package imports, each with the importing files; imports for types do not count."""
    package = PACKAGE / name
    files = sorted(package.rglob("*.py")) if package.is_dir() else [package.with_suffix(".py")]
    found: dict[str, list[str]] = {}
    for file in files:
        for other in sorted(set(imported_packages(ast.parse(file.read_text(encoding="utf-8")))) - {name}):
            found.setdefault(other, []).append(file.name)
    return found


def imported_packages(node: ast.AST) -> Iterator[str]:
    """Yield the packages of local_rag/ that a piece of source imports, except for types."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        modules: list[str] = []
        if isinstance(child, ast.Import):
            modules = [alias.name for alias in child.names]
        elif isinstance(child, ast.ImportFrom) and child.module:
            # `from local_rag import store` names the package after the import.
            modules = [f"{child.module}.{alias.name}" for alias in child.names]
        names = (module.split(".")[1] for module in modules if module.startswith("local_rag."))
        yield from (name for name in names if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists())
        yield from imported_packages(child)


def packages_table() -> str:
    """Describe each package in the first paragraph of its docstring."""
    rows = []
    for layer, names in numbered_layers():
        for name in names:
            first = docstring_of(PACKAGE / name).split("\n\n", maxsplit=1)[0]
            suffix = "/" if (PACKAGE / name).is_dir() else ".py"
            rows.append([str(layer), f"`{name}{suffix}`", " ".join(first.split())])
    return table(["layer", "package", "what it is for"], rows)


def import_map() -> str:
    """List the packages that each package imports, and say whether an import goes up."""
    imports = {name: package_imports(name) for _, names in numbered_layers() for name in names}
    width = max(map(len, imports))
    lines = []
    for layer, names in numbered_layers():
        for name in names:
            start = f"{layer:>2}  {name:<{width}} -> "
            used = textwrap.fill(
                " ".join(sorted(imports[name])), 110, initial_indent=start, subsequent_indent=" " * len(start)
            )
            lines.append(used or f"{layer:>2}  {name}")
    drawing = "\n".join(["```text", *lines, "```"])
    wrong = "; ".join(forbidden_imports(imports))
    said = f"Imports that break this rule: {wrong}." if wrong else _ALL_DOWN
    return f"{drawing}\n\n{prose(said)}"


def docstring_of(path: Path) -> str:
    """Return the docstring of a module or package without importing it."""
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
