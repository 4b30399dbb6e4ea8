"""The house rules of DESIGN that a reader should never have to check by eye."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import capedit

PACKAGE = Path(capedit.__file__).parent

# Rooms from the ground up, each with the rooms below that it may use. Doors may use everything.
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "paths": set(),
    "edits": {"errors"},
    "metrics": {"errors", "edits"},
    "data": {"errors", "edits", "metrics"},
    "vision": {"errors", "paths"},
    "models": {"errors", "paths", "edits"},
    "training": {"errors", "paths", "edits", "metrics", "data", "vision", "models"},
    "editing": {"errors", "paths", "edits", "metrics", "vision", "models"},
    "pipeline": {"errors", "paths", "edits", "metrics", "data", "vision", "models", "editing"},
}
DOORS = {"cli", "server", "experiments", "demo", "__init__", "__main__"}
WITHOUT_TORCH = ("edits", "metrics", "data", "vision")


def sources() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module
            if node.module == "capedit":
                yield from (f"capedit.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_down_only(path: Path) -> None:
    room = room_of(path)
    if room in DOORS:
        return
    assert room in ROOMS, f"{room} is no room of the house: add it to the table"
    for module in imported_modules(path):
        parts = module.split(".")
        if parts[0] != "capedit" or len(parts) == 1 or parts[1] in ("__version__", room):
            continue
        assert parts[1] in ROOMS[room], f"{path.relative_to(PACKAGE)} imports {module}, which is not below {room}"


@pytest.mark.parametrize("path", [p for p in sources() if room_of(p) == "edits"], ids=lambda path: path.name)
def test_edits_stand_on_the_standard_library(path: Path) -> None:
    outside = {module.split(".")[0] for module in imported_modules(path)} - set(sys.stdlib_module_names)
    assert outside <= {"capedit"}


@pytest.mark.parametrize("room", WITHOUT_TORCH)
def test_light_rooms_load_without_torch(room: str) -> None:
    code = f"import sys, capedit.{room}; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_command_line_starts_light() -> None:
    code = (
        "import sys, capedit.cli\n"
        "try: capedit.cli.main(['version'])\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'pyarrow', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


# Where tensors come and go without `capedit.models.device` and `tensor_files`, and why that is no mistake.
ON_THE_CPU = {
    "models/device.py": "the one place for arrays",
    "models/tensor_files.py": "the one place for files",
    "models/scorers.py": "CLIP scores captions on the CPU, and is not trained",
    "vision/clip.py": "CLIP encodes images on the CPU, in a room below torch",
}


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_passes_by_the_device(path: Path) -> None:
    """`from_numpy` leaves a tensor on the CPU, and `numpy` fails on a GPU; where there is none, nobody notices."""
    if path.relative_to(PACKAGE).as_posix() in ON_THE_CPU:
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute):
            assert node.attr not in ("from_numpy", "numpy"), f"{path}:{node.lineno}: use tensor() and array()"
        if isinstance(node, ast.ImportFrom):
            assert node.module != "safetensors.torch", f"{path}:{node.lineno}: use capedit.models.tensor_files"


def test_files_stay_small() -> None:
    long = {str(p.relative_to(PACKAGE)): n for p in sources() if (n := len(p.read_text().splitlines())) > 400}
    assert not long, f"files beyond 400 lines want a second look: {long}"
