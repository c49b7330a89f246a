"""Find what corresponds to a passage in another version of its document, by words, headings and place."""

from functools import lru_cache

from local_rag.records import Passage
from local_rag.retrieval.version_families import Version, Versions
from local_rag.text.tokens import keyword_tokens

_ALIKE = 0.5  # the share of words that corresponding passages have in common
_HELD = 0.75  # or the share of a sentence's words that a passage has, where all around it was written anew
_SAME_HEADING = 0.25


def corresponding(passage: Passage, sentence: str, own: Version, version: Version, versions: Versions) -> list[Passage]:
    """Return the passages of a version that correspond to a passage of its `own` version, the likest first.

    Each is like all of the passage, or has the words of a `sentence` in it.
    """
    wanted, said, found = words_of(passage.text), words_of(sentence), list[tuple[float, Passage]]()
    for other in versions.passages(version, passage, own):
        words = words_of(other.text)
        alike, held = shared(wanted, words), len(said & words) / max(1, len(said))
        if alike >= _ALIKE or held >= _HELD:
            found.append((alike + held + _SAME_HEADING * (other.headings == passage.headings), other))
    return [other for _, other in sorted(found, key=lambda one: -one[0])]


@lru_cache(4096)
def words_of(text: str) -> frozenset[str]:
    """Return the words of a text, without numbers: these are what may differ."""
    return frozenset(token for token in keyword_tokens(text) if not token[:1].isdigit())


def shared(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of their words that two texts have in common."""
    return 2 * len(one & other) / max(1, len(one) + len(other))
