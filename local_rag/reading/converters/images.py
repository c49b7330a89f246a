"""Prepare images that are attached to something for OCR."""

import io
import warnings
from typing import Any

from local_rag.errors import ReadError

IMAGE_SUFFIXES = frozenset({".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp"})
_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP")
_MOST_PIXELS, _MOST_PAGES = 60_000_000, 200


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
