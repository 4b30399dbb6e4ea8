"""The two apps, service and review: the same shell around different rooms."""

import hmac
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import FileResponse
from pydantic import BaseModel
from starlette.middleware import Middleware

from capedit import __version__
from capedit.editing import Editor
from capedit.server import bodies, problems
from capedit.server.examples import Examples, drawn_examples
from capedit.server.guard import Guard, cookie_name, session_secret
from capedit.server.metrics import MEDIA_TYPE, Metrics
from capedit.server.problems import Problem, describe
from capedit.server.refusal import Refusal
from capedit.server.review.review import Review
from capedit.server.review.routes import review_routes
from capedit.server.routes import edit_routes
from capedit.server.schemas import BatchIn, EditIn, GazeIn, SessionIn, TraceOut
from capedit.server.service import EditService
from capedit.server.settings import Access, Limits

STATIC = Path(__file__).parent / "static"
"""The built front end; its sources are in `web/`."""


def service_app(
    editor: Editor, *, limits: Limits | None = None, access: Access | None = None, examples: Examples | None = None
) -> FastAPI:
    """The editing service with its playground."""
    limits, access, metrics = limits or Limits(), access or Access(), Metrics()
    service = EditService(editor, limits, metrics)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await service.close()

    app = _shell("index.html", access, limits, metrics, lifespan)
    app.include_router(edit_routes(service, drawn_examples() if examples is None else examples))
    _publish(app, EditIn, BatchIn, GazeIn, TraceOut, SessionIn)
    app.state.service = service
    return app


def review_app(
    review: Review, *, reviewer: str = "", limits: Limits | None = None, access: Access | None = None
) -> FastAPI:
    """The review app of one run; `reviewer` is the name that the page goes by until it is told another."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        review.close()

    app = _shell("review.html", access or Access(), limits or Limits(), Metrics(), lifespan)
    app.include_router(review_routes(review, reviewer))
    app.include_router(_health())
    _publish(app, SessionIn)
    return app


def _health() -> APIRouter:
    router = APIRouter()

    @router.get("/api/v1/health", summary="Whether the app works", tags=["about"])
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    return router


def _shell(
    page: str,
    access: Access,
    limits: Limits,
    metrics: Metrics,
    lifespan: Any = None,
) -> FastAPI:
    """An app that has a page, metrics and a guard, and nothing to do yet."""
    app = FastAPI(
        title="capedit",
        version=__version__,
        summary="Repair image captions by editing them, and show every step.",
        openapi_url="/api/v1/openapi.json",
        # The usual documentation pages load their scripts from elsewhere; docs/serve.md and the document must do.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        middleware=[Middleware(Guard, access=access, body_bytes=limits.body_bytes, metrics=metrics)],
    )
    problems.install(app)
    app.include_router(_page_routes(page))
    app.include_router(_door_routes(access, limits, metrics))
    return app


def _door_routes(access: Access, limits: Limits, metrics: Metrics) -> APIRouter:
    router = APIRouter()

    @router.post(
        "/api/v1/session",
        summary="Sign in a browser",
        status_code=204,
        responses=describe(400, 401, 408, 413, 415, 422),
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/SessionIn"}}},
            }
        },
        tags=["about"],
    )
    async def sign_in(request: Request) -> Response:
        """Trade the token for a cookie, so that pictures, too, can be loaded. Other clients send a bearer token."""
        given = await bodies.read_json(request, SessionIn, limits.upload_seconds)
        answer = Response(status_code=204)
        if access.token is not None:
            if not hmac.compare_digest(given.token.encode(), access.token.encode()):
                raise Refusal(401, "this is not the token", field="token")
            answer.set_cookie(cookie_name(access.token), session_secret(access.token), httponly=True, samesite="strict")
        return answer

    @router.get("/metrics", summary="For Prometheus", response_class=Response, tags=["about"])
    async def show_metrics() -> Response:
        return Response(metrics.text(), media_type=MEDIA_TYPE)

    return router


def _page_routes(page: str) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    files = {path.name: path for path in (STATIC / "assets").glob("*")}

    @router.get("/")
    async def show_page() -> FileResponse:
        return FileResponse(STATIC / page, headers={"Cache-Control": "no-cache"})

    @router.get("/assets/{name}")
    async def asset(name: str) -> FileResponse:
        # Looked up in a table, never joined to a path. Names carry a hash of the content.
        if name not in files:
            raise Refusal(404, "no such file")
        return FileResponse(files[name], headers={"Cache-Control": "public, max-age=31536000, immutable"})

    @router.get("/favicon.svg")
    async def icon() -> FileResponse:
        return FileResponse(STATIC / "favicon.svg", headers={"Cache-Control": "public, max-age=86400"})

    return router


def _publish(app: FastAPI, *models: type[BaseModel]) -> None:
    """Add the bodies that routes read by hand, and the shape of refusals, to the OpenAPI document."""
    generated = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schemas = generated().setdefault("components", {}).setdefault("schemas", {})
            shown: list[type[BaseModel]] = [*models, Problem]
            for model in shown:
                schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
                schemas.update(schema.pop("$defs", {}))
                schemas[model.__name__] = schema
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
