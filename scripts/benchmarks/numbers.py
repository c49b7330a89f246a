# ruff: noqa: PLR2004
"""Change numbers of random sentences and count the changes that the check of facts does not notice.

    python -m scripts.benchmarks numbers [--cases 10000] [--seed 1] [--json FILE]

Each case has a value with a sign and a unit, written in one notation in a source and in the same or another one in a
sentence. In half of the cases nothing else is changed, and the sentence must be accepted. In the others one thing is: a
digit, the number of digits, the place of the separator, the sign, the unit or the scale; it must be noticed. A case
whose two texts mean the same in another way of writing numbers (1.250 for 1250 beside decimal commas) is none.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from local_rag.text.facts import Source, missing_facts

Notation = Callable[[Decimal], str | None]

_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
)
_ONES += " eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
# Spellings of one unit each; no unit of one group is one of another.
UNITS = (
    ("",),
    ("%", " %", " percent", " per cent"),
    (" mg", " milligrams"),
    (" kg", " kilograms"),
    (" km", " kilometres", " kilometers"),
    (" \u00b0C", " degrees Celsius"),
    (" bar",),
    (" kWh",),
    (" days",),
    (" weeks",),
    (" months",),
    (" EUR", " euro", " \u20ac"),
    (" kroner", " kr", " NOK"),
    (" m\u00b2", " m2"),
    (" km/h", " kph"),
)
CURRENCIES = {" EUR": ("EUR ", "\u20ac"), " kroner": ("NOK ", "kr ")}
SIGNS = ("-", "\u2212", "minus ")
_TEMPLATES = (
    "The value is {}.",
    "According to the report of the harbour, it was {} in the north.",
    "It rose to {}, which nobody expected.",
    "| North | {} |",
    "Row 6: Harbour: North; Value: {}; Keeper: unknown",
    "({})",
)
_KINDS = ("digit", "digits", "separator", "sign", "unit", "scale")


def _in_words(value: int) -> str:
    ones, tens = _ONES.split(), _TENS.split()
    if value < len(ones):
        return ones[value]
    if value < 100:
        return tens[value // 10 - 2] + (f"-{ones[value % 10]}" if value % 10 else "")
    size, name = (1000, "thousand") if value >= 1000 else (100, "hundred")
    rest = value % size
    return f"{_in_words(value // size)} {name}" + (f"{' and ' if rest < 100 else ' '}{_in_words(rest)}" if rest else "")


def _grouped(separator: str, point: str) -> Notation:
    def write(value: Decimal) -> str | None:
        whole, _, decimals = f"{value:,f}".partition(".")
        # 1.250 and 1,250 alone may be read in two ways where decimal commas are written.
        if point == "," and (whole.count(",") < 2 if not decimals else len(decimals) == 3):
            return None
        return whole.replace(",", separator) + (point + decimals if decimals else "")

    return write


def _scaled(name: str, scale: int) -> Notation:
    def write(value: Decimal) -> str | None:
        short = f"{(value / scale).normalize():f}"
        return f"{short}{name}" if len(short) < 9 else None

    return write


def _with_zeros(value: Decimal) -> str | None:
    """Write more zeros than needed, but never three decimals."""
    decimals = len(f"{value:f}".partition(".")[2])
    return None if decimals == 2 else f"{value:f}0" if decimals else f"{value:f}.00"


def _with_decimal_comma(value: Decimal) -> str | None:
    text = f"{value:f}"
    return None if len(text.partition(".")[2]) == 3 else text.replace(".", ",")


NOTATIONS: dict[str, Notation] = {
    "plain": lambda value: f"{value:f}",
    "commas": _grouped(",", "."),
    "spaces": _grouped(" ", "."),
    "thin spaces": _grouped("\u202f", ","),
    "apostrophes": _grouped("\u2019", "."),
    "points": _grouped(".", ","),
    "decimal comma": _with_decimal_comma,
    "zeros": _with_zeros,
    "words": lambda value: _in_words(int(value)) if value == int(value) and 1 < value < 10**6 else None,
    "thousand": _scaled(" thousand", 1000),
    "million": _scaled(" million", 10**6),
    "billion": _scaled(" bn", 10**9),
}


@dataclass(frozen=True, slots=True)
class Amount:
    """A value with its sign and the number of its unit."""

    value: Decimal
    negative: bool
    unit: int


@dataclass(frozen=True, slots=True)
class Case:
    """A source, a sentence, what was changed between them, and the notations of both."""

    source: str
    sentence: str
    changed: str
    notations: tuple[str, str]


def random_cases(count: int, seed: int) -> list[Case]:
    """Return random cases, half of them changed."""
    chance, cases = random.Random(seed), list[Case]()  # noqa: S311
    while len(cases) < count:
        amount = _random_amount(chance)
        kind = chance.choice(_KINDS) if len(cases) % 2 else ""
        other = _changed(amount, kind, chance) if kind else amount
        if other is None or (kind and other == amount):
            continue
        source, sentence = _written(amount, chance), _written(other, chance)
        if source and sentence:
            template = chance.choice(_TEMPLATES)
            cases.append(Case(template.format(source[1]), template.format(sentence[1]), kind, (source[0], sentence[0])))
    return cases


def _random_amount(chance: random.Random) -> Amount:
    digits = chance.randint(1, 7)
    whole = chance.randrange(2 if digits == 1 else 10 ** (digits - 1), 10**digits)
    decimals = chance.choice((0, 0, 0, 1, 2, 3))
    value = Decimal(whole * 10**decimals + chance.randrange(10**decimals)).scaleb(-decimals)
    return Amount(value, chance.random() < 0.2, chance.randrange(len(UNITS)))


def _changed(amount: Amount, kind: str, chance: random.Random) -> Amount | None:
    """Return an amount that differs in one thing; None if there is no such."""
    text = f"{amount.value:f}"
    if kind == "sign":
        return Amount(amount.value, not amount.negative, amount.unit)
    if kind == "unit":
        return Amount(amount.value, amount.negative, chance.randrange(1, len(UNITS))) if amount.unit else None
    if kind == "scale":
        return Amount(amount.value * chance.choice((1000, 10**6)), amount.negative, amount.unit)
    if kind == "separator":
        moved = amount.value.scaleb(chance.choice((-3, -2, -1, 1, 2, 3)))
        return Amount(Decimal(f"{moved:f}"), amount.negative, amount.unit)
    at = chance.choice([index for index, character in enumerate(text) if character != "."])
    if kind == "digit":
        text = f"{text[:at]}{chance.choice('0123456789')}{text[at + 1 :]}"
    else:
        text = text[:at] + (text[at] * 2 if chance.random() < 0.5 else "") + text[at + 1 :]
    value = Decimal(text) if any(map(str.isdigit, text)) else Decimal()
    return Amount(value, amount.negative, amount.unit) if value > 1 and value != amount.value else None


def _written(amount: Amount, chance: random.Random) -> tuple[str, str] | None:
    """Return the name of a notation and the amount in it; None if it cannot be written so."""
    name = chance.choice(list(NOTATIONS))
    if (number := NOTATIONS[name](amount.value)) is None:
        return None
    spellings = UNITS[amount.unit]
    before = CURRENCIES.get(spellings[0], ())
    sign = (chance.choice(SIGNS) if name != "words" else "minus ") if amount.negative else ""
    if before and name != "words" and chance.random() < 0.5:
        return name, f"{sign if sign != 'minus ' else '-'}{chance.choice(before)}{number}"
    return name, f"{sign}{number}{chance.choice(spellings)}"


def main() -> None:
    """Print how many changes were not noticed and how many sentences were wrongly not accepted, with examples."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    wrong, cases = Counter[str](), random_cases(arguments.cases, arguments.seed)
    for case in cases:
        if bool(missing_facts("", case.sentence, [Source(case.source)])) != bool(case.changed):
            wrong[case.changed or "nothing"] += 1
            print(f"{case.changed or 'nothing'} changed: {case.source!r} -> {case.sentence!r} {case.notations}")
    every = Counter(case.changed or "nothing" for case in cases)
    result = {"cases": dict(sorted(every.items())), "misses": dict(sorted(wrong.items()))}
    print(json.dumps(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
