"""Write superscripts and subscripts so that they stay apart from what they stand at: `10⁶`, `note¹`, `x^(a,b)`, `H₂O`.

If Unicode has the raised or lowered form of every character, these forms are written, else `^(...)` or `_(...)`. Signs
that are no letters and digits, as `*`, and references in brackets, as `[2]`, are apart as they are.
"""

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
