"""Find the text of a PDF that stands on a layer which is switched off.

PDFium does not tell which layers are on, but it draws the page without those that are off: where the page looks the
same without the text of a layer, nobody sees that text.
"""

import ctypes
from typing import Any

_LARGEST = 400  # pixels of the longer side of a page that is compared
_MOST_LAYERS, _MOST_OBJECTS = 10, 20_000  # of a page
_LONGEST_NAME = 200  # bytes


def remove_hidden_layers(page: Any) -> int:
    """Remove the text on layers that are off from a page; return how many words it has."""
    import pypdfium2.raw as pdfium

    if not 0 < pdfium.FPDFPage_CountObjects(page.raw) <= _MOST_OBJECTS:
        return 0
    layers: dict[str, list[Any]] = {}
    for at in range(pdfium.FPDFPage_CountObjects(page.raw)):
        one = pdfium.FPDFPage_GetObject(page.raw, at)
        if pdfium.FPDFPageObj_GetType(one) == pdfium.FPDF_PAGEOBJ_TEXT and (layer := _layer_of(one)) is not None:
            layers.setdefault(layer, []).append(one)
    if not layers or len(layers) > _MOST_LAYERS:
        return 0
    whole = _drawn(page)
    hidden = [texts for texts in layers.values() if _is_unseen(page, texts, whole)]
    textpage, words = page.get_textpage() if hidden else None, 0
    for texts in hidden:
        for one in texts:
            words += len(_text(one, textpage).split())
    if textpage is not None:
        textpage.close()
    for one in (one for texts in hidden for one in texts):
        pdfium.FPDFPage_RemoveObject(page.raw, one)
        pdfium.FPDFPageObj_Destroy(one)
    return words


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


def _is_unseen(page: Any, texts: list[Any], whole: bytes) -> bool:
    """Return whether a page looks the same without some texts that are drawn."""
    import pypdfium2.raw as pdfium

    unseen = pdfium.FPDF_TEXTRENDERMODE_INVISIBLE  # as that of OCR below the image of a page
    if all(pdfium.FPDFTextObj_GetTextRenderMode(one) == unseen for one in texts):
        return False
    for one in texts:
        pdfium.FPDFPageObj_SetIsActive(one, False)
    without = _drawn(page)
    for one in texts:
        pdfium.FPDFPageObj_SetIsActive(one, True)
    return whole == without


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
