"""What people with limits see of a library: found out by the filters, and remembered while it stays the same."""

from collections.abc import Iterable
from pathlib import Path

from local_rag.asking import Filters
from local_rag.keys import key_of
from local_rag.retrieval.filters import document_filter
from local_rag.serialization import to_line
from local_rag.store.database import Store
from local_rag.store.seen import Seen, compared_limits, find_seen, seen_stamp

_REMEMBERED = 64


class Sight:
    """Find out what limits let somebody see of one library."""

    def __init__(self) -> None:
        self._known = dict[Filters, tuple[object, Seen]]()

    def of(self, store: Store, limits: Filters) -> Seen:
        """Return what somebody with these limits sees of a store."""
        stamp = seen_stamp(store)
        known = self._known.get(limits)
        if known is None or known[0] != stamp:
            passes = document_filter(limits, outermost(store.roots()), are_limits=True)
            contexts = limits_key(limits) in compared_limits(store)
            known = stamp, find_seen(store, passes, contexts=contexts)
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[limits] = known
        return known[1]


def limits_key(limits: Filters) -> str:
    """Return a key of limits, which tells nothing of the paths that they name."""
    return key_of(to_line(limits).decode())


def outermost(roots: Iterable[Path]) -> list[Path]:
    """Return the roots that lie below no other: below these alone count the patterns of limits.

    So a folder that is indexed once more by itself shows nothing else to anybody.
    """
    known = set(roots)
    return [root for root in sorted(known) if known.isdisjoint(root.parents)]
