"""Read off the source which rooms local_rag/ has, on which floor each stands and what it imports."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
PACKAGE = CHECKOUT / "local_rag"


def floors() -> list[tuple[list[str], bool]]:
    """Return the rooms of each floor, top floor first, and whether they may know each other."""
    data = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = data.get("tool", {}).get("importlinter", {}).get("contracts", ())
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    present = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    present -= {"__init__"}
    found = [([name.split(".")[-1] for name in re.findall(r"[\w.]+", layer)], ":" in layer) for layer in layers]
    if homeless := present - {name for names, _ in found for name in names}:
        sys.exit(f"No floor is given to local_rag/{', '.join(sorted(homeless))}; give one in pyproject.toml.")
    return [([name for name in names if name in present], known) for names, known in found]


def numbered_floors() -> Iterator[tuple[int, list[str]]]:
    """Yield each floor's number, counted from the ground, and its rooms; top floor first."""
    found = floors()
    for number, (names, _) in enumerate(found):
        yield len(found) - 1 - number, names


def wrong_arrows(imports: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[str]:
    """Name the imports of a room that stands higher, or beside the one that imports it."""
    floor_of = {name: (floor, known) for floor, (names, known) in enumerate(floors()) for name in names}
    for name, used in imports.items():
        for other, files in sorted(used.items()):
            (floor, known), (other_floor, _) = floor_of[name], floor_of[other]
            if other_floor < floor or (other_floor == floor and not known):
                yield f"`{name}` -> `{other}` ({', '.join(files)})"


def room_imports(name: str) -> dict[str, list[str]]:
    """Return the rooms that a room imports, each with the files that do; imports for types alone do not count."""
    room = PACKAGE / name
    files = sorted(room.rglob("*.py")) if room.is_dir() else [room.with_suffix(".py")]
    found: dict[str, list[str]] = {}
    for file in files:
        for other in sorted(set(_imported_rooms(ast.parse(file.read_text(encoding="utf-8")))) - {name}):
            found.setdefault(other, []).append(file.name)
    return found


def _imported_rooms(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        modules: list[str] = []
        if isinstance(child, ast.Import):
            modules = [alias.name for alias in child.names]
        elif isinstance(child, ast.ImportFrom) and child.module:
            # `from local_rag import store` names the room after the import.
            modules = [f"{child.module}.{alias.name}" for alias in child.names]
        rooms = (module.split(".")[1] for module in modules if module.startswith("local_rag."))
        yield from (room for room in rooms if (PACKAGE / room).is_dir() or (PACKAGE / f"{room}.py").exists())
        yield from _imported_rooms(child)


def docstring_of(path: Path) -> str:
    """Return the docstring of a module, which is not imported."""
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
