"""The images of a review, as a browser can show them."""

from io import BytesIO

from capedit.errors import CapeditError
from capedit.pipeline import EditRow, Run
from capedit.server.examples import media_type_of
from capedit.server.refusal import Refusal
from capedit.vision import ImageError, load_image

_SHOWN = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_SIDE = 1600


def shown(run: Run, row: EditRow) -> tuple[bytes, str]:
    """The file as it is where browsers know the format, else as JPEG; what is no image is never handed out."""
    try:
        data = run.image(row)
    except CapeditError as error:
        raise Refusal(404, str(error)) from error
    media_type = media_type_of(data)
    if media_type in _SHOWN:
        return data, media_type
    try:
        picture = load_image(data, name=f"image of caption {row.row}")
    except ImageError as error:
        raise Refusal(404, str(error)) from error
    picture.thumbnail((_SIDE, _SIDE))
    out = BytesIO()
    picture.save(out, "JPEG", quality=90)
    return out.getvalue(), "image/jpeg"
