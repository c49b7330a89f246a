"""Convert images: OCR reads them as scanned pages."""

import io
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from local_rag.errors import ReadError
from local_rag.reading.converters.converted import Converted
from local_rag.reading.formats import NO_TEXT

if TYPE_CHECKING:
    from local_rag.reading.converters.pdf import Recognize

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp"})
_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP")
_SMALLEST = 24  # pixels of a side
_MOST_PIXELS, _MOST_PAGES = 60_000_000, 200


def convert_image(data: bytes, recognize: "Recognize | None" = None) -> Converted:
    """Convert a photo or a scan; without OCR it waits for that, unless it is too small to show text."""
    from local_rag.reading.converters.pdf import convert_pdf

    if _is_small(data):
        raise ReadError(NO_TEXT)
    if recognize is None:
        raise ReadError("an image that waits for OCR, the extra `ocr`", waiting=1)
    return replace(convert_pdf(pdf_of_image(data), recognize), pages=())


def _is_small(data: bytes) -> bool:
    from PIL import Image, UnidentifiedImageError

    try:
        with (
            warnings.catch_warnings(action="ignore"),
            Image.open(io.BytesIO(data), formats=_FORMATS) as image,
        ):
            return min(image.size) < _SMALLEST
    except (Image.DecompressionBombError, UnidentifiedImageError, OSError, ValueError, SyntaxError):
        return False  # `pdf_of_image` says what is wrong


def pdf_of_image(data: bytes) -> bytes:
    """Put an image, or each page of a fax, on a page of a PDF as a scanner does; raise ReadError if it is too large."""
    from PIL import Image, ImageOps, ImageSequence, UnidentifiedImageError

    pages: list[Any] = []
    try:
        with (
            warnings.catch_warnings(action="error", category=Image.DecompressionBombWarning),
            Image.open(io.BytesIO(data), formats=_FORMATS) as image,
        ):
            for frame in ImageSequence.Iterator(image):
                if len(pages) == _MOST_PAGES or frame.width * frame.height * (len(pages) + 1) > _MOST_PIXELS:
                    raise ReadError("an image that is too large")
                upright = ImageOps.exif_transpose(frame).convert("RGBA")
                page = Image.new("RGB", upright.size, "white")
                page.paste(upright, mask=upright)
                pages.append(page)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ReadError("an image that is too large") from error
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise ReadError(f"damaged image ({type(error).__name__})") from error
    written = io.BytesIO()
    pages[0].save(written, "PDF", save_all=True, append_images=pages[1:])
    return written.getvalue()
