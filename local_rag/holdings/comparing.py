"""What changed between documents, and what they say in brief, as somebody may see them."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from local_rag.asking import EVERYTHING, FilterFields, Filters, as_filters
from local_rag.digests.brief import DEFAULT_LINES, Brief, require_lines, write_brief
from local_rag.digests.differences import Difference, compare, require_comparable
from local_rag.digests.named_documents import ReadFromDisk, reading_files
from local_rag.holdings.access import Access
from local_rag.holdings.documents import Documents
from local_rag.store.connect import is_library


class Changes:
    """Differences between documents and summaries of them, by code alone."""

    def __init__(self, access: Access, documents: Documents) -> None:
        self._access, self._documents = access, documents

    def diff(self, before: Path | str, after: Path | str = "", *, read_files: bool = False) -> Difference:
        """Return what changed between two documents, named by path, file name or title; see `compare`.

        With one name, its two newest versions are compared. With `read_files`, who sees the whole library may also name
        files that are not indexed, or that have changed since, and documents of any length.
        """
        with self._files(read_files) as from_disk:
            if from_disk and after and not is_library(self._access.folder):
                return compare(*(from_disk(Path(name)) for name in (before, after)))
            with self._documents.named() as named:
                if after:
                    one, other = (named.open(str(name), from_disk) for name in (before, after))
                else:
                    one, other = named.versions_of(str(before))
                if not read_files:
                    require_comparable(one, other)
                return compare(one, other)

    def brief(
        self,
        names: Sequence[Path | str] = (),
        *,
        lines: int = DEFAULT_LINES,
        filters: Filters | FilterFields = EVERYTHING,
        read_files: bool = False,
    ) -> Brief:
        """Return what documents say in quotations; see `write_brief`.

        The documents are those with these paths, folders, names or titles, or all that pass the filters. `read_files`
        is as in `diff`.
        """
        require_lines(lines)
        with self._files(read_files) as from_disk:
            if from_disk and names and not is_library(self._access.folder):
                return write_brief([from_disk(Path(name)) for name in names], lines)
            with self._documents.named(as_filters(filters)) as named:
                return write_brief(named.texts([str(name) for name in names], from_disk), lines)

    def _files(self, read_files: bool) -> AbstractContextManager[ReadFromDisk | None]:
        """Return what reads files that are not indexed, for who sees the whole library and wishes for it."""
        return reading_files() if read_files and not self._access.limits else nullcontext()
