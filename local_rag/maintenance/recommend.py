"""Recommend a profile: the best that fits the memory, answers soon enough, speaks the languages and can be had."""

import re
from collections.abc import Collection, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from local_rag.errors import ModelError
from local_rag.maintenance.checks import memory_needed
from local_rag.models.registry import ModelEntry, Registry, WheelSource
from local_rag.store.database import Store
from local_rag.store.schema import STORE_FILE

RERANKERS = (
    "Published comparisons show that the bge rerankers can lower an already strong list: measure your documents with "
    "`local-rag eval`, and do without a reranker that does."
)
# Measured with qwen2.5-coder-1.5b-instruct on two cores: tokens per second read and written, and the file's bytes.
_READ, _WRITTEN, _BYTES, _CORES = 118.0, 16.6, 1_117_320_768, 2
_PAIR_BYTES = 3.9 * 1_112_459_588  # pairs per second by a reranker of the size of bge-reranker-base: docs/speed.md
_QUESTION_TOKENS, _ANSWER_TOKENS = 640, 60
_MOST_SECONDS = 30.0
_SHARE = 0.8  # of the memory, which other programs need too
_ONLY_BY_NAME = ("tiny", "card")  # for tests, and slower than `small` for what was not measured to be better
_SAMPLE, _CHARACTERS, _FEWEST_WORDS = 60, 2000, 40
_ENGLISH = re.compile("the|of|and|to|in|is|that|for|it|on|with|as|are|this|be|by|or|not")
_LEAST_ENGLISH = 0.1  # the share of these words in a text: about a quarter in English, hardly any elsewhere
_LEAST_OTHER = 0.1  # the share of documents in other languages that makes a library multilingual


@dataclass(frozen=True, slots=True)
class Offer:
    """What a profile needs, in bytes and in seconds an answer (estimated), and whether it can be had."""

    profile: str
    answer: int  # the size of the model that answers
    memory: int
    disk: int
    seconds: float
    multilingual: bool
    tried: bool
    missing: tuple[str, ...]  # models that no source here has


def offers_of(registry: Registry, *, cores: int, hub: bool, here: Collection[str]) -> list[Offer]:
    """Return what each profile needs; `hub` says whether the hub answers, `here` which models need no download."""
    offers = []
    for profile, roles in registry.profiles.items():
        entries = {role: registry.parts(name) for role, name in roles.items()}
        sizes: dict[str, int] = {role: sum(entry.bytes for entry in parts) for role, parts in entries.items()}
        unique = {entry.name: entry for parts in entries.values() for entry in parts}
        offers.append(
            Offer(
                profile,
                sizes["answer"],
                memory_needed(sizes),
                sum(entry.bytes for entry in unique.values()),
                _seconds(entries["answer"][0], cores) + _reranking(profile, registry, cores),
                profile in registry.multilingual,
                profile not in registry.not_tried,
                tuple(name for name, entry in unique.items() if not (hub or name in here or _is_on_index(entry))),
            )
        )
    return sorted(offers, key=lambda offer: offer.memory)


def choose(offers: Sequence[Offer], *, memory: int, multilingual: bool, only: str | None = None) -> Offer:
    """Return the profile with the largest answer model that fits, for the languages if there is one.

    With `only`, return that profile; raise ModelError if it is unknown.
    """
    if only:
        named = [offer for offer in offers if offer.profile == only]
        if not named:
            raise ModelError(f"There is no profile {only!r}; `local-rag models list` shows the known ones.")
        return named[0]
    usable = [
        offer
        for offer in offers
        if not offer.missing
        and offer.profile not in _ONLY_BY_NAME
        and offer.memory <= _SHARE * memory
        and offer.seconds <= _MOST_SECONDS
    ]
    fitting = [offer for offer in usable if offer.multilingual == multilingual]
    best = max(fitting or usable, key=lambda offer: (offer.answer, offer.memory), default=None)
    return best or next((offer for offer in offers if offer.profile == "starter"), offers[0])


def describe(offer: Offer) -> str:
    """Describe an offer in one line."""
    languages = "several languages" if offer.multilingual else "English"
    tried = "" if offer.tried else ", not tried here"
    lacks = f"; no source here has {', '.join(offer.missing)}" if offer.missing else ""
    return (
        f"{offer.profile} ({languages}{tried}): {offer.memory / 1e9:.1f} GB of memory, "
        f"{offer.disk / 1e9:.1f} GB of disk, about {offer.seconds:.0f} seconds an answer{lacks}"
    )


def speaks_other_languages(folder: Path) -> bool:
    """Return whether a tenth of a library's documents, by a sample and without code, are not in English.

    Without a library, return False.
    """
    if not (folder / STORE_FILE).exists():
        return False
    with closing(Store(folder.resolve())) as store:
        ids = [one for one in store.live_ids() if store.document_kind(one) != "code"]
        texts = [store.document_beginning(one, _CHARACTERS) for one in ids[:: len(ids) // _SAMPLE + 1]]
    other = [is_other for text in texts if (is_other := _is_other(text)) is not None]
    return bool(other) and sum(other) / len(other) >= _LEAST_OTHER


def _is_other(text: str) -> bool | None:
    """Return whether a text is not English; None if it is too short, or no prose, to tell."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    if sum(not word.isascii() for word in words) > len(words) / 2:
        return True
    if len(words) < _FEWEST_WORDS:
        return None
    return sum(_ENGLISH.fullmatch(word) is not None for word in words) / len(words) < _LEAST_ENGLISH


def _seconds(answer: ModelEntry, cores: int) -> float:
    """Estimate the seconds of an answer: reading and writing take as long as the weights are large."""
    one = _QUESTION_TOKENS / _READ + _ANSWER_TOKENS / _WRITTEN
    return one * answer.bytes / _BYTES * _CORES / cores


def _reranking(profile: str, registry: Registry, cores: int) -> float:
    """Estimate the seconds of reranking where a profile says how many passages; else they are few, or limited."""
    candidates = registry.settings.get(profile, {}).get("rerank_candidates", 0)
    model = registry.models.get(registry.profiles[profile].get("rerank", ""))
    return candidates * model.bytes / _PAIR_BYTES * _CORES / cores if candidates and model else 0.0


def _is_on_index(entry: ModelEntry) -> bool:
    """Return whether a model is part of the program or on the package index, which installing needed, too."""
    return not entry.sources or any(isinstance(source, WheelSource) for source in entry.sources)
