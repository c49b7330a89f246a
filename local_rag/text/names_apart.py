"""Give things different names: of two with the same one, the later is numbered, whatever the others are called."""

from collections.abc import Callable, Sequence


def names_apart(names: Sequence[str], numbered: Callable[[str, int], str] = "{} ({})".format) -> list[str]:
    """Return names of which no two are the same, whatever their case; a name that only one has stays as it is."""
    given = {name.casefold() for name in names}
    taken, numbers, apart = set[str](), dict[str, int](), list[str]()
    for name in names:
        key, own = name.casefold(), name
        while own.casefold() in taken or (own is not name and own.casefold() in given):
            numbers[key] = numbers.get(key, 1) + 1
            own = numbered(name, numbers[key])
        taken.add(own.casefold())
        apart.append(own)
    return apart
