"""Say why no document passes the filters: the folders that there are, or which filters to remove."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from local_rag.asking import Filters
from local_rag.display import display_path, one_line
from local_rag.errors import LocalRagError

_MOST = 12  # folders that are named


def no_matching_document(library: Path, filters: Filters) -> str:
    """Return the sentence for a question whose filters no matching document passes."""
    from local_rag.library import Library  # a search by a server loads nothing of it

    try:
        with Library(library) as opened:
            if filters.within and not opened.documents(filters=Filters(within=filters.within), most=1):
                contents = opened.contents()
                folders = ", ".join(_folders(contents.documents, contents.roots))
                return one_line(f"No document lies in {' or '.join(filters.within)}; the folders are: {folders}.")
    except LocalRagError:
        pass  # the library is only served from here
    return "No matching document passes the filters; remove one of --in, --type, --since, --before and --tag."


def _folders(paths: Iterable[str], roots: Sequence[Path]) -> list[str]:
    """Return the indexed folders and those directly below them that hold documents, those with the most first."""
    counts = Counter[str]()
    for path in paths:
        root = next((str(root) for root in roots if path.startswith(f"{root}/")), str(Path(path).parent))
        below = path.removeprefix(f"{root}/")
        counts[f"{root}/{below.split('/')[0]}" if "/" in below else root] += 1
    named = [display_path(folder) for folder, _ in counts.most_common(_MOST)]
    return [*named, *([f"and {len(counts) - _MOST} more"] if len(counts) > _MOST else [])]
