"""Write the generated pages and tables of the documentation.

    .venv/bin/python scripts/write_docs.py            # write what is out of date
    .venv/bin/python scripts/write_docs.py --check    # name what is out of date, write nothing, exit code 1

Some pages are generated as a whole. In others, the text between `<!-- NAME: written by ... -->` and
`<!-- end of NAME -->` is generated. `PAGES` and `PARTS` name the function that writes each.
"""

import argparse
import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from scripts.docs.markdown import fill  # noqa: E402  found only after the line above
from scripts.docs.packages import packages_table  # noqa: E402
from scripts.docs.reference import commands_page, profiles_table, settings_page, states  # noqa: E402
from scripts.docs.reliability import reliability_page  # noqa: E402
from scripts.docs.results import answers, readme_results, results_page  # noqa: E402
from scripts.docs.speed import engine_speed, speed_page  # noqa: E402

COMMAND = ".venv/bin/python scripts/write_docs.py"
PAGES: Mapping[str, Callable[[], str]] = {
    "docs/settings.md": settings_page,
    "docs/commands.md": commands_page,
    "docs/results.md": results_page,
    "docs/speed.md": speed_page,
    "docs/reliability.md": reliability_page,
}
PARTS: Mapping[str, Mapping[str, Callable[[], str]]] = {
    "README.md": {"results": readme_results},
    "docs/answers.md": {"answers": answers},
    "docs/architecture.md": {"packages": packages_table},
    "docs/engine.md": {"speed": engine_speed},
    "docs/library-folder.md": {"states": states},
    "docs/models.md": {"profiles": profiles_table},
}


@functools.cache
def text_of(write: Callable[[], str]) -> str:
    """Return what a function of `PAGES` or `PARTS` writes; the paired tests of the results take some seconds."""
    return write()


def stale_pages(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each page under a folder that is out of date, with its new text."""
    for name, write in PAGES.items():
        path = root / name
        if not path.exists() or path.read_text(encoding="utf-8") != text_of(write):
            yield path, text_of(write)
    for name, parts in PARTS.items():
        path = root / name
        page = before = path.read_text(encoding="utf-8")
        for part, write in parts.items():
            page = fill(page, part, text_of(write))
        if page != before:
            yield path, page


def main(arguments: Sequence[str] | None = None) -> None:
    """Write, or with --check name, what is out of date."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 if something is out of date")
    parser.add_argument("--root", type=Path, default=CHECKOUT, help="folder of README.md and docs/")
    chosen = parser.parse_args(arguments)
    stale = list(stale_pages(chosen.root))
    for path, text in stale:
        name = path.relative_to(chosen.root)
        if chosen.check:
            print(f"{name} is out of date; run `{COMMAND}`.")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"{name} written.")
    sys.exit(1 if chosen.check and stale else 0)


if __name__ == "__main__":
    main()
