"""The images of a review, as a browser can show them."""

from io import BytesIO

from capedit.data import Image
from capedit.server.examples import media_type_of
from capedit.server.problems import Refusal
from capedit.vision import ImageError, load_image

_SHOWN = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_SIDE = 1600


def shown(image: Image | None) -> tuple[bytes, str]:
    """The file as it is where browsers know the format, else as JPEG; what is no image is never handed out."""
    if image is None:
        raise Refusal(404, "this caption has no image")
    try:
        data = image.read()
    except ValueError as error:
        raise Refusal(404, str(error)) from error
    media_type = media_type_of(data)
    if media_type in _SHOWN:
        return data, media_type
    try:
        picture = load_image(data, name=image.name)
    except ImageError as error:
        raise Refusal(404, str(error)) from error
    picture.thumbnail((_SIDE, _SIDE))
    out = BytesIO()
    picture.save(out, "JPEG", quality=90)
    return out.getvalue(), "image/jpeg"
