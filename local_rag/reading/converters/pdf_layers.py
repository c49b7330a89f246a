"""Find the text of a PDF that stands on a layer which is switched off.

PDFium does not tell which layers are on, but it draws the page without those that are off: where the page looks the
same without the text of a layer, nobody sees that text.
"""

import ctypes
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

_LARGEST = 400  # pixels of the longer side of a page that is compared
_MOST_LAYERS, _MOST_OBJECTS, _DEPTH = 10, 20_000, 4  # of a page; of drawings within drawings
_LONGEST_NAME = 200  # bytes


class _Placed(NamedTuple):
    """A text or a drawing with texts in it, and the drawing around it, None for one of the page itself."""

    one: Any
    holder: Any | None
    texts: tuple[Any, ...]


def remove_hidden_layers(page: Any) -> int:
    """Remove the text on layers that are off from a page; return how many words it has."""
    import pypdfium2.raw as pdfium

    if not 0 < pdfium.FPDFPage_CountObjects(page.raw) <= _MOST_OBJECTS:
        return 0
    layers, drawings = dict[str, list[_Placed]](), list[_Placed]()
    left, elsewhere = iter(range(_MOST_OBJECTS)), 0
    for placed, layer in _walk(pdfium, page.raw, None, left, 0):
        if layer is not None:
            layers.setdefault(layer, []).append(placed)
        elif placed.one is not placed.texts[0]:
            drawings.append(placed)
        else:
            elsewhere += placed.holder is None
    if len(layers) > _MOST_LAYERS:
        return 0
    # A drawing may be on a layer itself, which nothing tells: it draws nothing, also where nothing is above it.
    blank = [one for one in drawings[:_MOST_LAYERS] if elsewhere and _draws_nothing(page, one)]
    together = [*layers.values(), *([one] for one in blank)]  # what is within a drawing before this one
    whole = _drawn(page) if together else b""
    hidden = [placed for some in together if _is_unseen(page, some, whole) for placed in some]
    textpage, words = page.get_textpage() if hidden else None, 0
    for text in (text for placed in hidden for text in placed.texts):
        words += len(_text(text, textpage).split())
    if textpage is not None:
        textpage.close()
    for placed in hidden:
        if placed.holder is None:
            pdfium.FPDFPage_RemoveObject(page.raw, placed.one)
        else:
            pdfium.FPDFFormObj_RemoveObject(placed.holder, placed.one)
        pdfium.FPDFPageObj_Destroy(placed.one)
    return words


def _walk(
    pdfium: Any, objects: Any, holder: Any | None, left: Iterator[int], depth: int
) -> Iterator[tuple[_Placed, str | None]]:
    """Yield the texts of a page or drawing and its drawings with texts, each with its layer.

    What is in a drawing on a layer is on it, too.
    """
    is_page = holder is None
    count = pdfium.FPDFPage_CountObjects(objects) if is_page else pdfium.FPDFFormObj_CountObjects(objects)
    for at, _ in zip(range(max(0, count)), left, strict=False):
        one = pdfium.FPDFPage_GetObject(objects, at) if is_page else pdfium.FPDFFormObj_GetObject(objects, at)
        kind = pdfium.FPDFPageObj_GetType(one)
        if kind == pdfium.FPDF_PAGEOBJ_TEXT:
            yield _Placed(one, holder, (one,)), _layer_of(one)
        elif kind == pdfium.FPDF_PAGEOBJ_FORM and depth < _DEPTH:
            inner = list(_walk(pdfium, one, one, left, depth + 1))
            texts = tuple(placed.one for placed, _ in inner if placed.one is placed.texts[0])
            layer = _layer_of(one)
            if texts:
                yield _Placed(one, holder, texts), layer
            if layer is None:
                yield from inner


def _layer_of(text: Any) -> str | None:
    """Return the name of the layer on which a text stands; None if it stands on none."""
    import pypdfium2.raw as pdfium

    name, length = ctypes.create_string_buffer(_LONGEST_NAME), ctypes.c_ulong()
    for at in range(max(0, pdfium.FPDFPageObj_CountMarks(text))):
        mark = pdfium.FPDFPageObj_GetMark(text, at)
        wide = ctypes.cast(name, ctypes.POINTER(ctypes.c_ushort))
        if pdfium.FPDFPageObjMark_GetName(mark, wide, _LONGEST_NAME, ctypes.byref(length)):
            if name.raw[: min(length.value, _LONGEST_NAME)] != "OC\0".encode("utf-16-le"):
                continue
            if pdfium.FPDFPageObjMark_GetParamStringValue(mark, b"Name", wide, _LONGEST_NAME, ctypes.byref(length)):
                return name.raw[: min(length.value, _LONGEST_NAME)].decode("utf-16-le", errors="replace")
            return ""
    return None


def _is_unseen(page: Any, some: Sequence[_Placed], whole: bytes) -> bool:
    """Return whether a page looks the same without some texts that are drawn."""
    import pypdfium2.raw as pdfium

    unseen = pdfium.FPDF_TEXTRENDERMODE_INVISIBLE  # as that of OCR below the image of a page
    if all(pdfium.FPDFTextObj_GetTextRenderMode(text) == unseen for placed in some for text in placed.texts):
        return False
    return whole == _drawn_without(page, [placed.one for placed in some])


def _draws_nothing(page: Any, placed: _Placed) -> bool:
    """Return whether a page is blank without all but a drawing of it."""
    import pypdfium2.raw as pdfium

    objects = [pdfium.FPDFPage_GetObject(page.raw, at) for at in range(pdfium.FPDFPage_CountObjects(page.raw))]
    address = ctypes.addressof(placed.one.contents)
    others = [one for one in objects if ctypes.addressof(one.contents) != address]
    return placed.holder is None and len(set(_drawn_without(page, others))) == 1


def _drawn_without(page: Any, objects: Sequence[Any]) -> bytes:
    import pypdfium2.raw as pdfium

    active = [one for one in objects if _is_active(one)]
    for one in active:
        pdfium.FPDFPageObj_SetIsActive(one, False)
    drawn = _drawn(page)
    for one in active:
        pdfium.FPDFPageObj_SetIsActive(one, True)
    return drawn


def _is_active(one: Any) -> bool:
    import pypdfium2.raw as pdfium

    active = ctypes.c_int()
    return bool(pdfium.FPDFPageObj_GetIsActive(one, ctypes.byref(active)) and active.value)


def _drawn(page: Any) -> bytes:
    bitmap = page.render(scale=min(1.0, _LARGEST / max(1.0, *page.get_size())), grayscale=True, may_draw_forms=False)
    try:
        return bytes(bitmap.buffer)
    finally:
        bitmap.close()


def _text(text: Any, textpage: Any) -> str:
    import pypdfium2.raw as pdfium

    length = pdfium.FPDFTextObj_GetText(text, textpage.raw, None, 0)
    buffer = ctypes.create_string_buffer(length)
    pdfium.FPDFTextObj_GetText(text, textpage.raw, ctypes.cast(buffer, ctypes.POINTER(ctypes.c_ushort)), length)
    return buffer.raw.decode("utf-16-le", errors="replace").rstrip("\0")
