"""What goes over the wire."""

from base64 import b64decode
from binascii import Error as Base64Error
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from capedit.editing import Edit
from capedit.server.settings import Limits

CAPTION_CHARS = Limits().caption_chars
BATCH = Limits().batch
IMAGE_KEY = r"^[0-9a-f]{64}$"

Caption = Annotated[str, StringConstraints(min_length=1, max_length=CAPTION_CHARS)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=100)]
Probability = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Bias = Annotated[float, Field(ge=-20, le=20, allow_inf_nan=False)]


class Strict(BaseModel):
    """A misspelt field is refused, not overlooked."""

    model_config = ConfigDict(extra="forbid")


class KnobsIn(Strict):
    """How the editor behaves; what is left out is as the model was tuned."""

    rounds: int | None = Field(default=None, ge=1, le=10, description="Most rounds of insertion after a look.")
    looks: int | None = Field(
        default=None, ge=1, le=3, description="How often the caption is looked over for deletions."
    )
    keep_bias: Bias | None = Field(default=None, description="Higher deletes less.")
    stop_bias: Bias | None = Field(default=None, description="Higher adds less.")
    min_confidence: Probability | None = Field(default=None, description="Less sure operations are not made.")
    min_word: Probability | None = Field(default=None, description="Less likely words are not inserted.")
    fits_above: Probability | None = Field(
        default=None, description="Captions likelier than this to fit are left alone."
    )
    max_edits: int | None = Field(default=None, ge=0, le=1000, description="A caption that needs more is left alone.")
    protected: list[Word] | None = Field(default=None, max_length=100, description="Words that are never deleted.")
    embellish: bool | None = Field(default=None, description="Add words to captions of which none was deleted.")
    fluent: bool | None = Field(
        default=None, description="Fill or undo what would leave a broken sentence, insert no word twice."
    )

    def chosen(self) -> dict[str, Any]:
        """Those that were set, as `Editor.edit` takes them."""
        knobs = self.model_dump(exclude_none=True)
        if self.protected is not None:
            knobs["protected"] = frozenset(word.lower() for word in self.protected)
        return knobs


class Picture(Strict):
    """An image, as bytes or as the id of one that was sent before."""

    image: str | None = Field(
        default=None, description="The file (JPEG, PNG, WebP, ...) in base64.", json_schema_extra={"format": "byte"}
    )
    image_id: Annotated[str, StringConstraints(pattern=IMAGE_KEY)] | None = Field(
        default=None, description="From an earlier answer; ids are forgotten in time."
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> Self:
        if (self.image is None) == (self.image_id is None):
            raise ValueError("give either image or image_id")
        if self.image is not None:
            try:
                b64decode(self.image, validate=True)
            except (Base64Error, ValueError) as error:
                raise ValueError(f"image: not base64 ({error})") from None
        return self

    @property
    def data(self) -> bytes | None:
        return None if self.image is None else b64decode(self.image)


class EditIn(Picture):
    """One caption to edit."""

    caption: Caption
    knobs: KnobsIn = KnobsIn()


class BatchItem(Picture):
    """One caption of a batch."""

    caption: Caption


class BatchIn(Strict):
    """Captions to edit, all with the same knobs; an image that comes twice is encoded once."""

    items: list[BatchItem] = Field(min_length=1, max_length=BATCH)
    knobs: KnobsIn = KnobsIn()


class GazeIn(Strict):
    """A caption of which to tell where the model looks."""

    image_id: Annotated[str, StringConstraints(pattern=IMAGE_KEY)]
    caption: Caption


class SessionIn(Strict):
    token: Annotated[str, StringConstraints(max_length=1000)]


class OperationOut(BaseModel):
    op: Literal["KEEP", "DELETE", "ADD"]
    token: str
    probability: float | None = None
    round: int


class RoundOperation(BaseModel):
    op: Literal["KEEP", "DELETE", "ADD"]
    token: str
    probability: float | None = None
    link: int | None = None


class TraceOut(BaseModel):
    source: list[str]
    rounds: list[list[RoundOperation]]


class EditOut(BaseModel):
    """What became of a caption, and why; the fields of `capedit edit --json`, and the image's id."""

    source: str
    caption: str
    changed: bool
    operations: list[OperationOut]
    rounds: int
    steps: int
    confidence: float
    fits: float | None
    model: str
    trace: TraceOut
    image_id: str

    @classmethod
    def of(cls, edit: Edit, image_id: str) -> "EditOut":
        return cls(**edit.to_json(), changed=edit.changed, image_id=image_id)


class ItemError(BaseModel):
    """Why one caption of a batch was not edited."""

    status: int
    detail: str


class BatchResult(BaseModel):
    """Exactly one of the two."""

    edit: EditOut | None = None
    error: ItemError | None = None


class BatchOut(BaseModel):
    results: list[BatchResult]


class ImageOut(BaseModel):
    image_id: str
    width: int
    height: int


class GazeOut(BaseModel):
    """For each word how much each region of the image speaks for it, from 0 to 1."""

    words: list[str]
    boxes: list[list[float]] = Field(description="Left, top, right, bottom of each region, as shares of the image.")
    weights: list[list[float]] = Field(description="For each word a number for each region.")


class ExampleOut(BaseModel):
    """A picture to try, with a caption that does not quite fit."""

    url: str
    title: str
    caption: str


class Health(BaseModel):
    status: Literal["ok"] = "ok"
    waiting: int
    places: int


class ModelOut(BaseModel):
    """What the service runs."""

    model: str
    encoder: str
    version: str
    knobs: dict[str, Any] = Field(description="The model's own operating point.")
    max_words: int = Field(description="Of a caption.")
    limits: dict[str, float]
