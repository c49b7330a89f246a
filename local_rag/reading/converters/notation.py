"""Write the numbers of lists, superscripts and subscripts as plain text: `iv`, `C`, `3rd`, `10⁶`, `x^(a,b)`, `H₂O`.

If Unicode has the raised or lowered form of every character, these forms are written, else `^(...)` or `_(...)`. Signs
that are no letters and digits, as `*`, and references in brackets, as `[2]`, are apart as they are.
"""

from collections.abc import Callable

_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"), (10, "x"),
    (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip
_LARGEST_ROMAN, _MOST_LETTERS = 3999, 30
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_CYRILLIC = "абвгдежзиклмнопрстуфхцчшщыэюя"
_GREEK = "αβγδεζηθικλμνξοπρστυφχψω"
_NAMES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
)
_UNITS, _TENS = _NAMES.split()[:20], _NAMES.split()[20:]
_IRREGULAR = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
              "twelve": "twelfth"}  # fmt: skip
_CHINESE = "〇一二三四五六七八九"
_HUNDRED, _TWENTY, _LAST_TEEN = 100, 20, 13
_SUPERSCRIPTS = dict(
    zip(
        "0123456789+-\u2212=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVW",
        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂ",
        strict=True,
    )
)
_SUBSCRIPTS = dict(zip("0123456789+-\u2212=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ", strict=True))
_MARKS = {"tm": "™", "sm": "℠"}
_ORDINALS = {"st", "nd", "rd", "th", "er", "ère", "re", "ème", "nde"}  # 1st, 1er: parts of the word, and no notes
_LONGEST = 40  # characters: more is running text that a tag without its end has raised


def roman(number: int) -> str:
    """Write a number in small Roman numerals; one that has none in digits."""
    if not 0 < number <= _LARGEST_ROMAN:
        return str(number)
    written = ""
    for value, sign in _ROMAN:
        written += sign * (number // value)
        number %= value
    return written


def repeated_letters(number: int, alphabet: str = _LATIN) -> str:
    """Write a number as Word does, with repeated letters: z is followed by aa and bb."""
    if number < 1:
        return str(number)
    times, place = divmod(number - 1, len(alphabet))
    return alphabet[place] * (times + 1) if times < _MOST_LETTERS else str(number)


def counted_letters(number: int, alphabet: str = _LATIN) -> str:
    """Write a number as browsers do: z is followed by aa and ab."""
    if number < 1:
        return str(number)
    written = ""
    while number:
        number, place = divmod(number - 1, len(alphabet))
        written = alphabet[place] + written
    return written


def column_letters(column: int) -> str:
    """Return the name of a column of a sheet, counted from 0: A, B ... AA."""
    return counted_letters(column + 1).upper()


def ordinal(number: int) -> str:
    """Write `1st`, `2nd`, `11th`."""
    teens = _HUNDRED // 10 < number % _HUNDRED <= _LAST_TEEN
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def cardinal_text(number: int) -> str:
    """Write a number below 100 in English words."""
    if not 0 <= number < _HUNDRED:
        return str(number)
    if number < _TWENTY:
        return _UNITS[number].capitalize()
    tens, unit = divmod(number, 10)
    return (_TENS[tens - 2] + (f"-{_UNITS[unit]}" if unit else "")).capitalize()


def ordinal_text(number: int) -> str:
    """Write a place below 100 in English words."""
    if not 0 <= number < _HUNDRED:
        return ordinal(number)
    before, hyphen, last = cardinal_text(number).lower().rpartition("-")
    last = _IRREGULAR.get(last) or (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")
    return f"{before}{hyphen}{last}".capitalize()


def chinese(number: int) -> str:
    """Write a number below 100 in Chinese numerals."""
    if not 0 <= number < _HUNDRED:
        return "".join(_CHINESE[int(digit)] for digit in str(number)) if number > 0 else str(number)
    tens, unit = divmod(number, 10)
    if not tens:
        return _CHINESE[unit]
    return (_CHINESE[tens] if tens > 1 else "") + "十" + (_CHINESE[unit] if unit else "")


def shifted(number: int, first: str, last: int) -> str:
    """Write a number up to `last` as a character, of which `first` stands for 1: `①`."""
    return chr(ord(first) + number - 1) if 1 <= number <= last else str(number)


def full_width(number: int) -> str:
    """Write a number with the wide digits of East Asian text."""
    return "".join(chr(0xFF10 + int(one)) if one.isdigit() else one for one in str(number))


# By their names in Word, PowerPoint, OpenDocument and HTML.
_WRITERS: dict[str, Callable[[int], str]] = {
    name: write
    for names, write in (
        ("lowerRoman romanLc lower-roman i", roman),
        ("upperRoman romanUc upper-roman I", lambda number: roman(number).upper()),
        ("lowerLetter alphaLc", repeated_letters),
        ("upperLetter alphaUc", lambda number: repeated_letters(number).upper()),
        ("lower-alpha lower-latin a", counted_letters),
        ("upper-alpha upper-latin A", lambda number: counted_letters(number).upper()),
        ("lower-greek", lambda number: counted_letters(number, _GREEK)),
        ("russianLower", lambda number: repeated_letters(number, _CYRILLIC)),
        ("russianUpper", lambda number: repeated_letters(number, _CYRILLIC).upper()),
        ("decimalZero decimal-leading-zero", "{:02}".format),
        ("ordinal", ordinal),
        ("cardinalText", cardinal_text),
        ("ordinalText", ordinal_text),
        ("chineseCounting chineseCountingThousand japaneseCounting ideographDigital taiwaneseCounting", chinese),
        ("decimalFullWidth decimalFullWidth2", full_width),
        ("decimalEnclosedCircle decimalEnclosedCircleChinese", lambda number: shifted(number, "①", 20)),
        ("decimalEnclosedParen", lambda number: shifted(number, "⑴", 20)),
        ("decimalEnclosedFullstop", lambda number: shifted(number, "⒈", 20)),
        ("numberInDash", "- {} -".format),
        ("none", lambda _: ""),
    )
    for name in names.split()
}


def numeral(number: int, name: str) -> str:
    """Write a number in the numerals of a name; in digits if the name is not known."""
    return _WRITERS.get(name, str)(number)


def superscript(text: str) -> str:
    """Write a text as a superscript."""
    said = text.strip()
    if said.lower() in _ORDINALS:
        return said
    return _MARKS.get(said.lower()) or _moved(text, _SUPERSCRIPTS, "^")


def subscript(text: str) -> str:
    """Write a text as a subscript."""
    return _moved(text, _SUBSCRIPTS, "_")


def _moved(text: str, forms: dict[str, str], sign: str) -> str:
    said = " ".join(text.split())
    plain = not any(map(str.isalnum, said)) or len(said) > _LONGEST or (said[0] == "[" and said[-1] == "]")
    if plain or said.startswith(sign) or all(one in forms.values() for one in said):
        return text
    written = "".join(forms[one] for one in said) if all(one in forms for one in said) else f"{sign}({said})"
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    return f"{before}{written}{after}"
