"""Find the documents of a library that a person names: by path, file name or title, or by words of them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePath

from local_rag.asking import EVERYTHING, Filters
from local_rag.catalogue.contents import FileStates, WholeDocument, whole_document
from local_rag.digests.brief import MOST_DOCUMENTS
from local_rag.digests.statements import DocumentText, text_of_file, text_of_indexed
from local_rag.display import Name, names_below
from local_rag.errors import MissingError, ReadError
from local_rag.reading.isolate import IsolatedReader
from local_rag.retrieval.version_families import Version, Versions
from local_rag.store.database import Store, StoredDocument
from local_rag.store.related_documents import names_of
from local_rag.text.tokens import keyword_tokens

_LONGEST_NAME = 200  # characters of a name that an error repeats
_MOST_NAMED = 5  # documents that an error names
# Words that say that a document is meant, and not which one.
_GENERIC = frozenset(keyword_tokens("document documents doc file files version versions edition text old new the"))
ReadFromDisk = Callable[[Path], DocumentText]


@contextmanager
def reading_files() -> Iterator[ReadFromDisk]:
    """Yield a function that reads files that are not indexed, in a process of its own, which the first one starts.

    It raises MissingError for a file that cannot be read.
    """
    with IsolatedReader(None) as reader:

        def read(path: Path) -> DocumentText:
            try:
                return text_of_file(reader.read(path.resolve()).document)
            except ReadError as error:
                raise MissingError(f"{path} cannot be compared or summed up: {error}.") from None

        yield read


class NamedDocuments:
    """The documents of an open store that pass filters."""

    def __init__(self, store: Store, versions: Versions, files: FileStates, filters: Filters = EVERYTHING) -> None:
        self._store, self._versions, self._files, self._filters = store, versions, files, filters

    @cached_property
    def all(self) -> list[StoredDocument]:
        """The documents, by path."""
        documents = self._store.documents()
        if self._filters:
            passing = self._versions.passing(self._filters)
            documents = [one for one in documents if one.id in passing]
        return documents

    @cached_property
    def place_names(self) -> Name:
        """Name places from their indexed folder on, as an answer does that all doors give."""
        return names_below(self._store.roots())

    def at(self, name: str) -> list[StoredDocument]:
        """Return the documents at a path, or else with this file name or title, or below a folder of this name."""
        path = str(Path(name).absolute())
        below = f"/{name.strip('/').casefold()}"
        tests: tuple[Callable[[StoredDocument], bool], ...] = (
            lambda one: one.path in {name, path},
            lambda one: one.path.casefold().endswith(below),
            lambda one: name.casefold() in {PurePath(one.path).stem.casefold(), one.title.casefold()},
            lambda one: one.id in self._aliased(name),
            lambda one: one.path.startswith(f"{path}/"),
            lambda one: f"{below}/" in one.path.casefold(),
        )
        return next(filter(None, ([one for one in self.all if test(one)] for test in tests)), [])

    def _aliased(self, name: str) -> set[int]:
        """Return the documents that have a name beside that of their file."""
        return {document for document, alias in self._aliases if alias.casefold() == name.casefold()}

    @cached_property
    def _aliases(self) -> list[tuple[int, str]]:
        return names_of(self._store)

    def called(self, words: str) -> list[StoredDocument]:
        """Return the documents whose path or title has all the words that a question calls them by."""
        if found := self.at(words):
            return found
        wanted = set(keyword_tokens(words)) - _GENERIC
        return [one for one in self.all if wanted and wanted <= self._words(one)]

    def meant(self, words: str) -> list[StoredDocument]:
        """Return the documents that a question calls by some words, of which some may stand in no name at all."""
        if found := self.called(words):
            return found
        named = set[str]().union(*map(self._words, self.all))
        known = [word for word in words.split() if named.intersection(keyword_tokens(word))]
        return self.called(" ".join(known)) if 2 * len(known) >= len(words.split()) else []

    def has_words_of(self, text: str) -> bool:
        """Return whether the path or title of a document has a word of a text."""
        words = set(keyword_tokens(text)) - _GENERIC
        return any(words & self._words(one) for one in self.all)

    def _words(self, document: StoredDocument) -> set[str]:
        root = next((str(one) for one in self._store.roots() if document.path.startswith(f"{one}/")), "")
        return set(keyword_tokens(f"{document.path.removeprefix(root)} {document.title}".replace("_", " ")))

    def family(self, documents: Sequence[StoredDocument]) -> Sequence[Version]:
        """Return the versions of documents, newest first, if they are all of one family."""
        family = self._versions.within(documents[0].path, self._filters) if documents else ()
        paths = {one.path for one in family}
        return family if len(family) > 1 and all(one.path in paths for one in documents) else ()

    def families(self, most: int) -> list[tuple[Version, ...]]:
        """Return the families of which two versions pass the filters, at most `most`."""
        passing = {one.id for one in self.all}
        seen = (tuple(one for one in family if one.id in passing) for family in self._versions.families())
        return [*islice((family for family in seen if len(family) > 1), most)]

    def whole(self, document_id: int) -> WholeDocument:
        """Return a document with its text and passages."""
        return whole_document(self._store, document_id, self._files, with_text=True)

    def text(self, document: WholeDocument) -> DocumentText:
        """Return the text of a document, ready to be compared or summed up."""
        return text_of_indexed(document, self._store.document_kind(document.id))

    def open(self, name: str, from_disk: ReadFromDisk | None) -> DocumentText:
        """Return the text of what a person names: a document, or a file that is not indexed as it is now."""
        found = self.at(name)
        if from_disk and _is_file(name) and (len(found) != 1 or self.whole(found[0].id).state != "same"):
            return from_disk(Path(name))
        if len(found) > 1 and (family := self.family(found)):
            return self.text(self.whole(family[0].id))
        if len(found) != 1:
            raise MissingError(_not_one(name, found))
        return self.text(self.whole(found[0].id))

    def texts(self, names: Sequence[str], from_disk: ReadFromDisk | None) -> list[DocumentText]:
        """Return the texts of what a person names, documents and all documents below folders; of all without names."""
        if not names:
            return [self.text(self.whole(one.id)) for one in self.all[: MOST_DOCUMENTS + 1]]
        texts = dict[str, DocumentText]()
        for name in names:
            found = self.at(name)
            if not found or (from_disk and _is_file(name)):
                one = self.open(name, from_disk)
                texts[one.path] = one
            texts |= {
                one.path: self.text(self.whole(one.id)) for one in found[: MOST_DOCUMENTS + 1] if one.path not in texts
            }
        return [*texts.values()]

    def versions_of(self, name: str) -> tuple[DocumentText, DocumentText]:
        """Return the newest version of a document and the one before it, the older one first."""
        found = self.at(name)
        if not found:
            raise MissingError(_not_one(name, found))
        family = self.family(found)
        if not family:
            raise MissingError(
                f"No other version of {name} is in the library; name the document to compare it with, or list the "
                "versions with `local-rag documents --families`."
            )
        newest, before = (self.text(self.whole(one.id)) for one in family[:2])
        return before, newest


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except OSError:  # such as a name that is too long
        return False


def _not_one(name: str, found: Sequence[StoredDocument]) -> str:
    name = name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}\u2026"
    if not found:
        return f"{name} is no document of the library and no file here; `local-rag documents` lists the documents."
    named = ", ".join(one.path for one in found[:_MOST_NAMED])
    more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
    return f"{name} names {len(found)} documents: {named}{more}; give the path of one."
