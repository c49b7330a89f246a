"""Ask PDFium about the characters of a page: where each stands, how it is turned, whether its font tells what it is."""

import ctypes
import re
from typing import Any

_BOLD = 600  # of 100 to 900: the weight of a font
_BOLD_NAME = re.compile(rb"bold|black|heavy|demi", re.IGNORECASE)
Box = tuple[float, float, float, float]  # left, bottom, right, top in points, from below


class Characters:
    """The characters of a page by their offset in its text."""

    def __init__(self, textpage: Any, length: int) -> None:
        import pypdfium2.raw as pdfium

        self._pdfium, self._page = pdfium, textpage.raw
        self._box, self._x, self._y = pdfium.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
        self._name = ctypes.create_string_buffer(100)
        self._is_same = textpage.count_chars() == length

    def box(self, offset: int) -> Box | None:
        """Return the box of a character, as high as its font; None if it has none."""
        index, box = self._index(offset), self._box
        if index < 0 or not self._pdfium.FPDFText_GetLooseCharBox(self._page, index, ctypes.byref(box)):
            return None
        return box.left, box.bottom, box.right, box.top

    def baseline(self, offset: int) -> float:
        """Return the height of the line that a character stands on, in points."""
        self._pdfium.FPDFText_GetCharOrigin(
            self._page, self._index(offset), ctypes.byref(self._x), ctypes.byref(self._y)
        )
        return self._y.value

    def is_upright(self, offset: int) -> bool:
        """Return whether a character is not turned."""
        return bool(abs(self._pdfium.FPDFText_GetCharAngle(self._page, self._index(offset))) < 0.01)  # noqa: PLR2004

    def is_unknown(self, offset: int) -> bool:
        """Return whether the font of a character does not tell what it is."""
        return bool(self._pdfium.FPDFText_HasUnicodeMapError(self._page, self._index(offset)) == 1)

    def is_bold(self, offset: int) -> bool:
        """Return whether the font of a character is bold, by its weight or its name."""
        index = self._index(offset)
        if self._pdfium.FPDFText_GetFontWeight(self._page, index) >= _BOLD:
            return True
        length = self._pdfium.FPDFText_GetFontInfo(self._page, index, self._name, len(self._name), None)
        return bool(_BOLD_NAME.search(self._name.raw[: min(length, len(self._name))]))

    def _index(self, offset: int) -> int:
        if self._is_same:
            return offset
        return int(self._pdfium.FPDFText_GetCharIndexFromTextIndex(self._page, offset))
