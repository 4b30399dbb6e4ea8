"""Request bodies: one edit may come as a form with a file, or as JSON."""

import asyncio
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from capedit.server.problems import invalid_fields
from capedit.server.refusal import Refusal
from capedit.server.schemas import KnobsIn

_M = TypeVar("_M", bound=BaseModel)
_FIELDS = 200  # of a form: a repeated `protected` is a field each


async def read_json(request: Request, model: type[_M], seconds: float) -> _M:
    """A JSON body of this shape."""
    if _media_type(request) not in ("application/json", ""):
        raise Refusal(415, "send application/json")
    data = await _within(seconds, request.body())
    return parse(model, data)


async def read_bytes(request: Request, seconds: float) -> bytes:
    """A body that is a file."""
    if is_form(request):
        raise Refusal(415, "the body is the file itself, not a form")
    data: bytes = await _within(seconds, request.body())
    return data


async def read_upload(request: Request, seconds: float) -> tuple[dict[str, Any], bytes | None]:
    """A form: its text fields (knobs apart, under "knobs") and the file "image", if there is one."""
    try:
        form = await _within(seconds, request.form(max_files=1, max_fields=_FIELDS, max_part_size=64 * 1024))
    except HTTPException as error:
        raise Refusal(error.status_code, f"form: {error.detail}") from error
    fields: dict[str, Any] = {}
    knobs: dict[str, Any] = {}
    data: bytes | None = None
    try:
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                if name != "image":
                    raise Refusal(422, f"{name}: the only file is called image", field=name)
                data = await value.read()
            elif name == "protected":
                knobs.setdefault(name, []).append(value)
            else:
                target = knobs if name in KnobsIn.model_fields else fields
                if name in target:
                    raise Refusal(422, f"{name}: given twice", field=name)
                target[name] = value
    finally:
        await form.close()
    return fields | {"knobs": knobs}, data


def is_form(request: Request) -> bool:
    return _media_type(request) in ("multipart/form-data", "application/x-www-form-urlencoded")


def parse(model: type[_M], data: bytes | dict[str, Any]) -> _M:
    """Data as a model, or a refusal that names the field."""
    try:
        return model.model_validate_json(data) if isinstance(data, bytes) else model.model_validate(data)
    except ValidationError as error:
        told = error.errors(include_url=False, include_context=False, include_input=False)
        if told[0]["type"] == "json_invalid":
            raise Refusal(400, f"not JSON: {told[0]['msg']}") from None
        raise invalid_fields(told) from None


async def _within(seconds: float, reading: Any) -> Any:
    try:
        async with asyncio.timeout(seconds):
            return await reading
    except TimeoutError as error:
        raise Refusal(408, f"the request took longer than {seconds:g} s to arrive") from error
    except ClientDisconnect as error:
        raise Refusal(400, "the request ended before its body did") from error


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").split(";")[0].strip().lower()
