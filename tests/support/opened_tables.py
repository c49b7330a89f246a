"""Write sheets as text and open their tables."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from local_rag.tables.relation_set import RelationSet
from scripts.benchmarks.sheets import open_tables


@contextmanager
def opened(folder: Path, files: Mapping[str, str]) -> Iterator[RelationSet]:
    """Open the tables of files, given by their names with their text."""
    (folder / "files").mkdir()
    (folder / "library").mkdir()
    for name, text in files.items():
        (folder / "files" / name).write_text(text)
    with closing(open_tables(folder / "files", folder / "library")) as tables:
        yield tables
