"""Paths of erased documents, which `index` skips although nothing tells their names.

A hidden path consists of the root, a salt, and the keyed hash of what followed the root; so it moves with its root.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable
from pathlib import Path

_HIDDEN = re.compile(r"(.*)/erased:([0-9a-f]{32}):([0-9a-f]{64})\Z", re.DOTALL)


def hide(paths: Iterable[str], roots: Iterable[str], excluded: Iterable[str]) -> list[str]:
    """Return the paths below a root as paths that do not tell their names, with the salt of those that are hidden."""
    salt = next((match[2] for path in excluded if (match := _HIDDEN.match(path))), secrets.token_hex(16))
    given = list(paths)
    return [
        f"{root.rstrip('/')}/erased:{salt}:{_hash(salt, path, root)}"
        for root in roots
        for path in given
        if path.startswith(f"{root.rstrip('/')}/")
    ]


def is_hidden(path: str) -> bool:
    """Say whether a path is hidden, so that it names nothing."""
    return _HIDDEN.match(path) is not None


def hidden_among(excluded: Iterable[Path]) -> Callable[[str], bool]:
    """Return a function that says of a path whether it is hidden among the excluded ones."""
    by_root: dict[tuple[str, str], set[str]] = {}
    for path in excluded:
        if match := _HIDDEN.match(str(path)):
            by_root.setdefault((match[1], match[2]), set()).add(match[3])

    def is_erased(path: str) -> bool:
        return any(
            path.startswith(f"{root}/") and _hash(salt, path, root) in hashes
            for (root, salt), hashes in by_root.items()
        )

    return is_erased


def _hash(salt: str, path: str, root: str) -> str:
    relative = path[len(root.rstrip("/")) + 1 :]
    return hmac.new(salt.encode(), relative.encode("utf-8", "surrogateescape"), hashlib.sha256).hexdigest()
