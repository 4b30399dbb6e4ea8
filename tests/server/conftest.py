"""A service with the small random editor: it edits nonsense, but really."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from capedit.data import ImageBytes
from capedit.editing import Editor
from capedit.server.app import service_app
from capedit.server.examples import Example
from capedit.server.settings import Limits
from tests.editing.tiny import tiny_editor
from tests.server.browsing import launch

BASE = "http://127.0.0.1"


def picture(seed: int = 0, size: tuple[int, int] = (60, 40), format: str = "PNG") -> bytes:
    """An image file of coloured noise."""
    width, height = size
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    out = BytesIO()
    Image.fromarray(pixels).save(out, format)
    return out.getvalue()


@pytest.fixture(scope="session")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Editor:
    return tiny_editor(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="session")
def examples() -> list[Example]:
    return [Example("noise", "a dog is on the sofa", ImageBytes(picture(7)))]


@pytest.fixture
def client(editor: Editor, examples: list[Example]) -> Iterator[TestClient]:
    with TestClient(service_app(editor, examples=examples, limits=Limits(seconds=20)), base_url=BASE) as client:
        yield client


@pytest.fixture
def picture_file(tmp_path: Path) -> Path:
    path = tmp_path / "photo.png"
    path.write_bytes(picture(1, (320, 240)))
    return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For a module, not longer: while Playwright runs, its thread has an event loop that others would trip over."""
    with sync_playwright() as playwright:
        found = launch(playwright)
        yield found
        found.close()
