"""Keys made of the values that a stored thing depends on, so that another value never finds what the old one made."""

import hashlib
import json

# Recipes that were numbered by hand before keys were made of values. Vectors and contexts made by them then are as good
# as ever; the last one is that of the indexes of TOKENS_VERSION 3, which are searched until `index` replaces them.
_NUMBERED = {
    "f525c83340861e4ccdf0e455e3775d6121177c3dcd693288529e992c19d915f8": 3,
    "2293103db07f89fd04d2bebe75344e4058c1de0a9261adf32393189be70459c0": 2,
    "79ad52993bded09b9e969281b2561b6e68898d35fbcfae58319ecf4e4d62546f": 3,
}


def key_of(*values: object) -> str:
    """Return a key that is another one as soon as any of the values is."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def recipe(*values: object) -> int | str:
    """Name a way of making something by the values that shape it; a number in them stands for code that may change."""
    key = key_of(*values)
    return _NUMBERED.get(key, key)
