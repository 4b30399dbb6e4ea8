"""The routes of the editing service."""

import asyncio
from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from capedit import __version__
from capedit.edits import EditError, Trace, render_svg
from capedit.errors import CapeditError
from capedit.server import bodies
from capedit.server.examples import Examples
from capedit.server.problems import describe
from capedit.server.refusal import Refusal
from capedit.server.schemas import (
    BatchIn,
    BatchItem,
    BatchOut,
    BatchResult,
    EditIn,
    EditOut,
    ExampleOut,
    GazeIn,
    GazeOut,
    Health,
    ImageOut,
    ItemError,
    ModelOut,
    Picture,
    TraceOut,
)
from capedit.server.service import EditService
from capedit.server.sight import Sight

_REFUSALS = (400, 401, 403, 408, 413, 415, 421, 422, 429, 503)
_DRAWN = 5_000
"""Operations that a picture can show."""
_FORM = {
    "type": "object",
    "required": ["caption"],
    "properties": {
        "image": {"type": "string", "format": "binary", "description": "The file."},
        "image_id": {"type": "string", "description": "Instead of the file: an id from an earlier answer."},
        "caption": {"type": "string"},
        "keep_bias": {"type": "number", "description": "This and all other knobs are fields of the form."},
    },
}


def _body(model: type[BaseModel], form: dict[str, Any] | None = None) -> dict[str, Any]:
    """The request body for OpenAPI, as routes read theirs by hand: within a time limit, and in more than one shape."""
    content: dict[str, Any] = {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}
    if form is not None:
        content["multipart/form-data"] = {"schema": form}
    return {"requestBody": {"required": True, "content": content}}


def edit_routes(service: EditService, examples: Examples) -> APIRouter:
    """The API of one editor."""
    router = APIRouter(prefix="/api/v1")
    seconds = service.limits.upload_seconds

    async def sight_of(picture: Picture) -> tuple[str, Sight]:
        if picture.image_id is not None:
            return picture.image_id, service.recall(picture.image_id)
        data = picture.data
        assert data is not None  # one of the two is there
        return await service.remember(data)

    @router.post(
        "/edit",
        summary="Edit one caption",
        response_model=EditOut,
        response_model_exclude_unset=True,
        responses=describe(*_REFUSALS, 404),
        openapi_extra=_body(EditIn, form=_FORM),
        tags=["edit"],
    )
    async def edit(request: Request) -> EditOut:
        """The caption of an image, refined, with every operation and its probability.

        Send a form (`image` is the file) or JSON (`image` is base64). The answer's `image_id` may stand for the image
        in further requests.
        """
        async with service.admitted():
            data = None
            if bodies.is_form(request):
                fields, data = await bodies.read_upload(request, seconds)
                if data is not None and fields.get("image_id"):
                    raise Refusal(422, "image: give either image or image_id", field="image")
                # The file is already at hand; what stands in for it only has to be well-formed.
                wanted = bodies.parse(EditIn, fields | ({"image": ""} if data is not None else {}))
            else:
                wanted = await bodies.read_json(request, EditIn, seconds)
            key, sight = await (service.remember(data) if data is not None else sight_of(wanted))
            found = await service.edit(sight, wanted.caption, wanted.knobs.chosen())
            return EditOut.of(found, key)

    @router.post(
        "/edits",
        summary="Edit a batch of captions",
        response_model=BatchOut,
        response_model_exclude_unset=True,
        responses=describe(*_REFUSALS),
        openapi_extra=_body(BatchIn),
        tags=["edit"],
    )
    async def edit_batch(request: Request) -> BatchOut:
        """Many captions at once; one that cannot be edited says why in its place, and the rest goes on."""

        async def one(item: BatchItem) -> BatchResult:
            try:
                key, sight = await sight_of(item)
                return BatchResult(edit=EditOut.of(await service.edit(sight, item.caption, batch.knobs.chosen()), key))
            except Refusal as error:
                return BatchResult(error=ItemError(status=error.status, detail=error.detail))
            except CapeditError as error:
                return BatchResult(error=ItemError(status=422, detail=str(error)))

        async with service.admitted():  # to read it; then as many places as it has captions
            batch = await bodies.read_json(request, BatchIn, seconds)
            async with service.admitted(len(batch.items) - 1):
                return BatchOut(results=list(await asyncio.gather(*map(one, batch.items))))

    @router.post(
        "/images",
        summary="Send an image ahead",
        response_model=ImageOut,
        responses=describe(*_REFUSALS),
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
            }
        },
        tags=["edit"],
    )
    async def put_image(request: Request) -> ImageOut:
        """Have an image encoded, so that captions for it can be edited at once by its id. The body is the file."""
        async with service.admitted():
            key, sight = await service.remember(await bodies.read_bytes(request, seconds))
            return ImageOut(image_id=key, width=sight.width, height=sight.height)

    @router.post(
        "/gaze",
        summary="Where the model looks",
        response_model=GazeOut,
        responses=describe(*_REFUSALS, 404),
        openapi_extra=_body(GazeIn),
        tags=["edit"],
    )
    async def look_at(request: Request) -> GazeOut:
        """For each word of a caption, how much each region of the image speaks for it."""
        async with service.admitted():
            wanted = await bodies.read_json(request, GazeIn, seconds)
            found = await service.gaze(service.recall(wanted.image_id), wanted.caption)
            return GazeOut(
                words=found.words,
                boxes=found.boxes.round(4).tolist(),
                weights=found.weights.round(4).tolist(),
            )

    @router.post(
        "/picture",
        summary="Draw a trace",
        response_class=Response,
        responses={200: {"content": {"image/svg+xml": {}}, "description": "The trace as SVG."}, **describe(*_REFUSALS)},
        openapi_extra=_body(TraceOut),
        tags=["edit"],
    )
    async def draw(request: Request) -> Response:
        """The `trace` of an edit as a picture."""
        async with service.admitted():
            wanted = await bodies.read_json(request, TraceOut, seconds)
            if sum(map(len, wanted.rounds), len(wanted.source)) > _DRAWN:
                raise Refusal(422, f"rounds: more than {_DRAWN} operations are not drawn", field="rounds")
            try:
                trace = Trace.from_json(wanted.model_dump(exclude_none=True))
            except EditError as error:
                raise Refusal(422, str(error), field="rounds") from error
            return Response(render_svg(trace), media_type="image/svg+xml")

    @router.get("/examples", summary="Pictures to try", response_model=list[ExampleOut], tags=["about"])
    async def list_examples() -> list[ExampleOut]:
        return [
            ExampleOut(url=f"/api/v1/examples/{number}", caption=example.caption, title=example.title)
            for number, example in enumerate(examples)
        ]

    @router.get(
        "/examples/{number}",
        summary="One of them",
        response_class=Response,
        responses={200: {"content": {"image/*": {}}}, **describe(404, 422)},
        tags=["about"],
    )
    async def example_image(number: int) -> Response:
        if not 0 <= number < len(examples):
            raise Refusal(404, f"there are {len(examples)} examples")
        data, media_type = examples[number].read()
        return Response(data, media_type=media_type, headers={"Cache-Control": "private, max-age=3600"})

    @router.get("/health", summary="Whether the service works", response_model=Health, tags=["about"])
    async def health() -> Health:
        return Health(waiting=service.gate.taken, places=service.gate.places)

    @router.get(
        "/model", summary="What the service runs", response_model=ModelOut, responses=describe(401), tags=["about"]
    )
    async def model() -> ModelOut:
        editor = service.editor
        knobs = asdict(editor.knobs)
        return ModelOut(
            model=editor.model,
            encoder=f"{editor.encoder.name}@{editor.encoder.hash}",
            version=__version__,
            knobs={**knobs, "protected": sorted(knobs["protected"])},
            max_words=service.max_words,
            limits=asdict(service.limits),
        )

    return router
