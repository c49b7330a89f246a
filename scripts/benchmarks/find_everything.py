# ruff: noqa: RUF001  letters of other scripts are meant
"""Find every word and phrase of random documents in twelve scripts, and count those that are not found.

    python -m scripts.benchmarks find_everything [--documents 2000] [--phrases 1500] [--seed 1] [--json FILE]

The documents are made of words of twelve scripts, also beside letters of other scripts, in any Unicode form, with soft
hyphens, joiners, dashes, ligatures, superscripts, markup and punctuation, in lines and paragraphs of any length. Words
and phrases of up to five words are cut from them as they are written. Each is asked for in quotation marks, a word also
without. The oracle is a plain scan of all texts, in which case and Unicode form, dashes, joiners and white space do not
count: each document in which the scan finds the phrase as whole words must be found, first of all that from which it
was cut. For scripts without spaces, whole words are not known, so any place counts.
"""

import argparse
import json
import random
import re
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from local_rag.library import Library, Parts
from tests.fakes import FakeEmbedder

WORDS = {
    "latin": "crane harbour the and inspection Straße größe l'eau d'Oslo naïve café İstanbul ışık Łódź encyclopædia "
    "office flow KQ-7731 C# .NET foo_bar getUserName __init__ x y AI don't O'Brien 4,500 12.5 -40 10% ISO27001 e.g. "
    "rock'n'roll nasıl değil ñandú øre þing",
    "cyrillic": "насосы канаты капитан проверил и на складе Приёмник ёлка їжак ґанок объект подъезд",
    "greek": "αντλίες καπετάνιος έλεγξε τις πλοίο ΰβρις ΟΔΟΣ οδός",
    "arabic": "المضخات والحبال فحص القبطان في کتاب می‌خواهم سفينة ٢٠٢٤",
    "hebrew": "משאבות החבל בדק הקברניט את ספינה שָׁלוֹם",
    "devanagari": "नमस्ते दुनिया कप्तान ने पंप छुट्टी क्ष",
    "tamil": "கப்பல் புறப்படும் தமிழ் பம்புகள்",
    "armenian": "նավապետը ստուգեց պոմպերը և",
    "georgian": "კაპიტანმა შეამოწმა ტუმბოები",
    "korean": "창고에 선장이 펌프를 점검했다 밧줄",
    "thai": "กัปตันตรวจปั๊ม เรือออก น้ำ",
    "cjk": "船長がポンプを点検した 倉庫 猫 地図はQGISを使う 起重机停止 注文番号12345の品 時々 人々 ＡＢＣ２",
}
_PUNCTUATION = ("", "", "", "", "", ".", ",", ":", ";", "!", "?", ")", "…", "”", " –", " -", "/", "%", "*", "|")
_BEFORE = ("", "", "", "", "", "", "(", "„", "«", "#", "~", "**", "_")
_AFTER = {"**": "**", "_": "_", "(": ")", "„": "“", "«": "»"}
_UNSPACED = re.compile("[\u0e00-\u0eff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff]")
_HIDDEN = re.compile("[\u00ad\u200b-\u200f\u0640\u2060\ufeff]")
_DASHES = re.compile("[\u2010-\u2015\u2212]")
_LONGEST_PHRASE = 5


@dataclass(frozen=True, slots=True)
class Miss:
    """A phrase, how it was asked for, and the documents in which it was not found."""

    phrase: str
    asked: str
    missing: tuple[str, ...]


def random_documents(count: int, seed: int) -> Iterator[str]:
    """Yield texts, each mostly of one script."""
    chance, scripts = random.Random(seed), list(WORDS)  # noqa: S311
    for number in range(count):
        script = scripts[number % len(scripts)]
        parts = list[str]()
        for _ in range(chance.randint(5, 120)):
            parts += [_disguised(_random_word(script, chance), chance), _random_space(chance)]
        yield "".join(parts).strip() + "\n"


def _random_word(script: str, chance: random.Random) -> str:
    roll = chance.random()
    of = WORDS[script if roll < 0.85 else chance.choice(list(WORDS))].split()  # noqa: PLR2004
    word = chance.choice(of)
    if roll < 0.05:  # noqa: PLR2004  directly beside a word of another script
        word += chance.choice(WORDS[chance.choice(list(WORDS))].split())
    elif roll > 0.97:  # noqa: PLR2004
        word += chance.choice("\u00b9\u00b2\u00b3\u2076")
    before = chance.choice(_BEFORE)
    return before + word + _AFTER.get(before, "") + chance.choice(_PUNCTUATION)


def _disguised(word: str, chance: random.Random) -> str:
    roll = chance.random()
    if roll < 0.05:  # noqa: PLR2004
        return unicodedata.normalize("NFD", word)
    if roll < 0.1 and word[1:2].isalpha():  # noqa: PLR2004
        return word[:1] + chance.choice("\u00ad\u200b\u2060") + word[1:]
    if roll < 0.15:  # noqa: PLR2004
        return word.upper()
    if roll < 0.2:  # noqa: PLR2004
        return (
            word.replace("-", chance.choice("\u2010\u2011\u2013\u2212"))
            .replace("ffi", "\ufb03")
            .replace("fl", "\ufb02")
        )
    return word


def _random_space(chance: random.Random) -> str:
    spaces: list[str] = [*" " * 8, "  ", "\n", "\u00a0", "\u202f", "\n\n", " " * 30]
    return chance.choice(spaces)


def cut_phrases(texts: list[str], count: int, seed: int) -> list[str]:
    """Return different phrases of one to five words, cut at white space."""
    chance, phrases = random.Random(seed), dict[str, None]()  # noqa: S311
    while len(phrases) < count:
        words = chance.choice(texts).split()
        length = chance.choice((1, 1, 1, 2, 3, _LONGEST_PHRASE))
        start = chance.randrange(len(words))
        phrases[" ".join(words[start : start + length])] = None
    return list(phrases)


def as_compared(text: str) -> str:
    """Return a text without case, hidden characters and kinds of white space and dashes."""
    text = _DASHES.sub("-", _HIDDEN.sub("", text))
    text = unicodedata.normalize("NFKC", text.replace("\u0131", "i")).casefold().replace("i\u0307", "i")
    return " ".join(unicodedata.normalize("NFKC", text).split())


def holds(text: str, phrase: str) -> bool:
    """Return whether a compared text has a compared phrase as whole words: parted by white space on both sides."""
    if _UNSPACED.search(phrase[0]) or _UNSPACED.search(phrase[-1]):
        return phrase in text
    return f" {phrase} " in f" {text} "


def questions_of(phrase: str) -> Iterator[str]:
    """Yield how a phrase is asked for: in marks that it does not contain, and a word of letters also without."""
    for first, last in ('""', "«»", "„“", "「」"):
        if first not in phrase and last not in phrase and '"' not in phrase + first * (first != '"'):
            yield f"{first}{phrase}{last}"
            break
    if phrase.isalpha():
        yield phrase


def main() -> None:
    """Index the documents, ask for each phrase, and print what was not found."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--phrases", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    texts = list(random_documents(arguments.documents, arguments.seed))
    phrases = cut_phrases(texts, arguments.phrases, arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "documents")
        root.mkdir()
        for number, text in enumerate(texts):
            (root / f"{number:05}.txt").write_text(text, encoding="utf-8")
        # Words are found without vectors.
        with Library(Path(folder, "library"), parts=Parts(load_embedder=FakeEmbedder), context="none") as library:
            library.index([root])
            misses, asked, seconds = missed(library, texts, phrases)
    for miss in misses:
        print(f"{miss.asked!r} is not found in {', '.join(miss.missing)}")
    counted = {"documents": len(texts), "phrases": len(phrases), "questions": asked, "misses": len(misses)}
    result = counted | {"seconds_per_question": round(seconds / asked, 3)}
    print(json.dumps(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def missed(library: Library, texts: list[str], phrases: list[str]) -> tuple[list[Miss], int, float]:
    """Ask for each phrase; return what was missed, how many questions were asked, and the seconds that they took."""
    compared = [as_compared(text) for text in texts]
    misses, asked, seconds = list[Miss](), Counter[str](), 0.0
    for phrase in phrases:
        wanted = {f"{number:05}.txt" for number, text in enumerate(compared) if holds(text, as_compared(phrase))}
        for question in questions_of(phrase):
            started = time.perf_counter()
            found = library.find(question)
            seconds += time.perf_counter() - started
            asked["all"] += 1
            missing = wanted - {Path(place.passage.path).name for place in found.places}
            if missing:
                misses.append(Miss(phrase, question, tuple(sorted(missing))))
    return misses, asked["all"], seconds


if __name__ == "__main__":
    main()
