"""`capedit models`: which models are there, and the import of the published one."""

import json as json_module
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

import capedit
from capedit.cli.console import out, print_json, warn
from capedit.errors import CapeditError, MissingExtraError
from capedit.models.bits import Bits
from capedit.paths import cache_dir

models = typer.Typer(help="List the models that are known here, or import the published one.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
PACKAGE = Path(capedit.__file__).parent
SYSTEM_FILE = "system.safetensors"
"""What `capedit train` writes of a compared system."""


@dataclass(frozen=True)
class Known:
    """A model, or what one can be made from."""

    name: str
    kind: str
    """`bundled`, `folder`, `recipe` (for `capedit train`) or `shape` (for `capedit models import`); a
    compared system says whether it is a captioner, implicit or explicit."""
    where: str
    parameters: int | None
    bytes: int | None
    score: float | None
    """CIDEr-D, where the model was examined."""


@models.callback(invoke_without_command=True)
def list_models(
    context: typer.Context,
    folders: Annotated[
        list[Path] | None, typer.Option("--in", help="A model folder, a training run, or a folder of them.")
    ] = None,
    json: Json = False,
) -> None:
    """List the models that are known here: the bundled one, those in the cache, and those in `--in` folders."""
    if context.invoked_subcommand is not None:
        return
    known = [*_with_weights(folders or []), *_recipes(), *_systems(), *_shapes()]
    if json:
        print_json([asdict(one) for one in known])
        return
    table = Table("model", "kind", "parameters", "size", "CIDEr-D", box=None)
    table.add_column("where", overflow="fold")
    for one in known:
        parameters = "" if one.parameters is None else f"{one.parameters / 1e6:,.1f} M"
        size = "" if one.bytes is None else f"{one.bytes / 1e6:,.1f} MB"
        score = "" if one.score is None else f"{one.score:.1f}"
        table.add_row(one.name, one.kind, parameters, size, score, one.where)
    out.print(table)


@models.command("import")
def import_model(
    delete: Annotated[Path, typer.Argument(metavar="DEL", help="Checkpoint of Tagger_del.", show_default=False)],
    add: Annotated[Path, typer.Argument(metavar="ADD", help="Checkpoint of Tagger_add.", show_default=False)],
    insert: Annotated[Path, typer.Argument(metavar="INS", help="Checkpoint of the Inserter.", show_default=False)],
    vocabulary: Annotated[Path, typer.Option(help="vocab.txt of bert-base-uncased.", show_default=False)],
    output: Annotated[Path, typer.Option("--out", "-o", help="The new model folder.", show_default=False)],
    shape: Annotated[str, typer.Option(help="Sizes of the network: tiger-base, or a JSON file.")] = "tiger-base",
    bits: Annotated[Bits, typer.Option(help="How the ONNX files keep weights.")] = Bits.FLOAT32,
    json: Json = False,
) -> None:
    """Import the three checkpoints that TIger's authors published: safetensors or torch files; no pickled code is run.

    The model reads word pieces and bottom-up regions (docs/models.md).
    """
    try:
        from capedit.editing.export import Description, export_bundle
        from capedit.editing.regions import BOTTOM_UP
        from capedit.models.decoding import Knobs
        from capedit.models.published import import_published
        from capedit.models.tiger import Module
        from capedit.models.tiger_files import named_config
        from capedit.models.word_pieces import WordPieces, rows_of_bert
    except ImportError as error:
        raise MissingExtraError("capedit models import", "train", str(error)) from error
    if output.is_dir() and any(output.iterdir()):
        raise CapeditError(f"{output}: is not empty")
    files = {Module.DELETE: delete, Module.ADD: add, Module.INSERT: insert}
    found = import_published(files, named_config(shape), rows_of_bert(vocabulary))
    sources = {module.value: {"file": path.name, "sha256": _sha256(path)} for module, path in files.items()}
    card = {"imported": sources, "unused tensors": dict(found.unused)}
    name = Path(shape).stem
    description = Description(name, BOTTOM_UP, Knobs(fluent=False), card=card)
    pieces = WordPieces.read_bert(vocabulary)
    bundle = export_bundle(found.model, pieces, description, output, bits=bits, with_torch=True)
    if json:
        print_json({"model": bundle.label, "out": str(output), "used": found.used, "unused": dict(found.unused)})
        return
    out.print(f"{bundle.label} in {output}: {found.used} tensors used")
    for reason, count in found.unused.items():
        out.print(f"  {count} not used: {reason}")


def _with_weights(folders: list[Path]) -> Iterator[Known]:
    bundled = PACKAGE / "editing" / "weights"
    if (bundled / "model.json").is_file():
        yield _folder(bundled, "bundled")
    for parent in (*folders, cache_dir("models")):
        if not parent.is_dir():
            raise CapeditError(f"--in {parent}: not a folder")
        for path in sorted({parent, parent / "model", *parent.iterdir()}):
            if (path / SYSTEM_FILE).is_file():
                yield from _trained_system(path)
            if (path / "model.json").is_file():
                try:
                    yield _folder(path, "folder")
                except (OSError, ValueError, KeyError, TypeError) as error:
                    warn(f"{path}: not a model folder ({error!r})")


def _folder(path: Path, kind: str) -> Known:
    told = json_module.loads((path / "model.json").read_text(encoding="utf-8"))
    size = sum(file.stat().st_size for file in path.iterdir() if file.is_file())
    score = told.get("marks", {}).get("CIDEr-D")
    return Known(str(told["name"]), kind, str(path), told.get("parameters"), size, score)


def _trained_system(path: Path) -> Iterator[Known]:
    """A compared system that was trained; not listed where there is no torch to run it."""
    try:
        from capedit.models.systems import SYSTEMS, describe_system
    except ImportError:
        return
    try:
        found = describe_system(path / SYSTEM_FILE)
        kind = str(SYSTEMS[found.name].kind)
    except (CapeditError, KeyError) as error:
        warn(str(error))
        return
    size = (path / SYSTEM_FILE).stat().st_size
    yield Known(found.name, kind, str(path), found.parameters, size, found.card.marks.get("CIDEr-D"))


def _systems() -> Iterator[Known]:
    """The compared systems, which `capedit train` makes by name."""
    try:
        from capedit.models.systems import SYSTEMS
    except ImportError:
        return
    for name, entry in SYSTEMS.items():
        yield Known(name, f"{entry.kind} recipe", f"capedit train {name}", None, None, None)


def _recipes() -> Iterator[Known]:
    for path in sorted((PACKAGE / "training" / "recipes").glob("*.json")):
        yield Known(path.stem, "recipe", str(path), None, None, None)


def _shapes() -> Iterator[Known]:
    for path in sorted((PACKAGE / "models" / "configs").glob("*.json")):
        shape = json_module.loads(path.read_text(encoding="utf-8"))
        yield Known(path.stem, "shape", str(path), _parameters(shape), None, None)


def _parameters(shape: Mapping[str, Any]) -> int | None:
    """Of a network with this shape; None where there is no torch to build it with."""
    try:
        import torch

        from capedit.models.accounting import parameters
        from capedit.models.tiger import Tiger
        from capedit.models.tiger_files import read_config
    except ImportError:
        return None
    with torch.device("meta"):
        return parameters(Tiger(read_config(dict(shape))))


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
