"""Every refusal has one shape: a problem document (RFC 9457) whose `detail` says what to mend."""

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from capedit.errors import CapeditError
from capedit.server.refusal import Refusal

MEDIA_TYPE = "application/problem+json"


class Problem(BaseModel):
    """Why a request was refused."""

    title: str
    status: int
    detail: str
    field: str | None = Field(default=None, description="The field to mend, where it is one.")


def problem_response(
    status: int, detail: str, *, field: str | None = None, headers: dict[str, str] | None = None
) -> JSONResponse:
    problem = Problem(title=HTTPStatus(status).phrase, status=status, detail=detail, field=field)
    return JSONResponse(problem.model_dump(exclude_none=True), status, headers, MEDIA_TYPE)


def describe(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI is told of the refusals of a route."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted(statuses)
    }


def install(app: FastAPI) -> None:
    """Have an app answer all errors that a client can mend as problems."""

    @app.exception_handler(Refusal)
    async def refused(_: Request, error: Refusal) -> JSONResponse:
        return problem_response(error.status, error.detail, field=error.field, headers=error.headers)

    @app.exception_handler(CapeditError)
    async def unusable(_: Request, error: CapeditError) -> JSONResponse:
        return problem_response(422, str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> JSONResponse:
        detail, field = _first(error.errors())
        return problem_response(422, detail, field=field)

    @app.exception_handler(HTTPException)
    async def other(_: Request, error: HTTPException) -> JSONResponse:
        headers = dict(error.headers) if error.headers else None
        return problem_response(error.status_code, str(error.detail), headers=headers)


def invalid_fields(errors: list[Any]) -> Refusal:
    """A refusal from what pydantic says."""
    detail, field = _first(errors)
    return Refusal(422, detail, field=field)


def _first(errors: Any) -> tuple[str, str]:
    first = errors[0]
    field = ".".join(str(part) for part in first["loc"] if part != "body")
    return (f"{field}: {first['msg']}" if field else str(first["msg"])), field
