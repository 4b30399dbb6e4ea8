"""What README and docs show must run."""

import re
from pathlib import Path

import pytest

from capedit.cli import COMMANDS

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    parts = re.split(r"^```(\w*)\n", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [code for opening, code in zip(parts[1::4], parts[2::4], strict=True) if opening == language]


@pytest.mark.parametrize("code", blocks(ROOT / "README.md", "python"))
def test_python_of_the_readme_runs(code: str) -> None:
    exec(compile(code, "README.md", "exec"), {})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_that_are_shown_exist(page: Path) -> None:
    for block in blocks(page, ""):
        for line in block.splitlines():
            words = line.split()
            if words[:1] == ["capedit"]:
                assert words[1] in COMMANDS, f"{page.name}: {line}"
            if words[:1] == ["make"]:
                assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), (
                    f"{page.name}: {line}"
                )


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "benchmarks/README.md", ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name
)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / link).exists(), f"{page.name}: {link}"
