"""Keys made of the values that a stored thing depends on, so another value never finds what an earlier one made."""

import hashlib
import json


def token_hash(token: str) -> str:
    """Return the hash of a token, which is kept in place of it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def key_of(*values: object) -> str:
    """Return a key that changes with any of the values; a number among them stands for code that may change.

    A library of a million chunks holds some eight million keys, so a key has 128 bits, which no two values share.
    """
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()[:32]
