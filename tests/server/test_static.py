"""The built front end: what users get must be what the sources say."""

import re
from hashlib import sha256
from pathlib import Path

import pytest

from capedit.server.app import STATIC

WEB = Path(__file__).parents[2] / "web"


SUFFIXES = {".ts", ".css", ".html", ".svg"}


def test_the_built_files_are_of_these_sources() -> None:
    """By content alone, as `web/vite.config.ts` does it: times, line ends and stray files are no matter."""
    files = [WEB / "index.html", WEB / "review.html", *WEB.glob("src/**/*"), *WEB.glob("public/**/*")]
    digest = sha256()
    for file in sorted(path.relative_to(WEB).as_posix() for path in files if path.suffix in SUFFIXES):
        text = (WEB / file).read_bytes().decode().replace("\r\n", "\n")
        digest.update(f"{file}\0{text}".encode())
    told = (STATIC / "sources.sha256").read_text().strip()
    assert told == digest.hexdigest(), "the front end has changed: cd web && npm ci && npm run build"


@pytest.mark.parametrize("page", ["index.html", "review.html"])
def test_pages_hold_no_code_and_point_nowhere_else(page: str) -> None:
    text = (STATIC / page).read_text()
    assert not re.search(r"<script(?![^>]*src=)|<style|style=|\son\w+=", text)
    for address in re.findall(r'(?:src|href)="([^"]*)"', text):
        assert address.startswith("/")
        assert (STATIC / address.lstrip("/")).is_file()


def test_scripts_are_small_and_need_no_one_else() -> None:
    for file in STATIC.glob("assets/*"):
        text = file.read_text()
        assert len(text) < 100_000
        assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", text), file.name
        assert "innerHTML" not in text
        assert "eval(" not in text


def test_the_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in (WEB / "package-lock.json").read_text()
