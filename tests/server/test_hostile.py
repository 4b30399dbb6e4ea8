"""Whatever the OpenAPI documents allow, and what they do not: never a 5xx, never an answer that was not promised."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from capedit.editing import Editor
from capedit.server.app import review_app, service_app
from capedit.server.examples import Example
from capedit.server.review.review import Review
from capedit.server.settings import Access, Limits
from tests.server.runs import write_run

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
QUICK = settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
ANYONE = Access(token=None, hosts=None)
DOCUMENT = "/api/v1/openapi.json"


@pytest.fixture(scope="module")
def service(editor: Editor, examples: list[Example]) -> Any:
    limits = Limits(seconds=20, body_bytes=100_000)
    app = service_app(editor, examples=examples, limits=limits, access=ANYONE)
    return schemathesis.openapi.from_asgi(DOCUMENT, app)


@pytest.fixture(scope="module")
def review(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    going_on = Review(write_run(Path(tmp_path_factory.mktemp("run"))))
    yield schemathesis.openapi.from_asgi(DOCUMENT, review_app(going_on, access=ANYONE))
    going_on.close()


def attack(schema: Any) -> set[str]:
    """Call every operation with what its description allows, and with what it forbids; gives their names."""
    called = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in GenerationMode:

            @QUICK
            @given(case=operation.as_strategy(generation_mode=mode))
            def call(case: Any) -> None:
                case.call_and_validate(checks=CHECKS)

            with suppress(Unsatisfiable):  # where there is nothing to get wrong
                call()
        called.add(operation.label)
    return called


def test_the_service_keeps_its_promises(service: Any) -> None:
    assert {"POST /api/v1/edit", "POST /api/v1/edits", "POST /api/v1/gaze", "GET /metrics"} <= attack(service)


def test_the_review_keeps_its_promises(review: Any) -> None:
    assert {"POST /api/v1/review/decide", "POST /api/v1/review/bulk"} <= attack(review)
