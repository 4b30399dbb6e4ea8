"""The qualitative figure: images with their captions, and the path of every system's edit."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from pathlib import Path

from capedit.edits import gold_script, render_html
from capedit.experiments.reproduce.tigers import MAIN
from capedit.experiments.reproduce.workshop import Model, Workshop
from capedit.models.systems import SYSTEMS
from capedit.vision import load_image

SIDE = 320
"""Pixels of the longer side of a picture in the report."""


@dataclass(frozen=True)
class Example:
    """A question, and what each system made of it, as HTML."""

    benchmark: str
    image: str
    picture: str | None
    """A data URI."""
    target: str
    edits: tuple[tuple[str, str], ...]
    """System and edit; a system that rewrites shows its caption beside the shortest edit that leads to it."""


def choose_examples(shop: Workshop, count: int, images: Path | None) -> list[Example]:
    """Questions spread evenly over the benchmark, answered by all systems whose outputs there are."""
    models: list[Model] = [*SYSTEMS, MAIN]
    written = {model: shop.outcomes(model) for model in models if shop.has_outputs(shop.output_name(model))}
    step = max(1, len(shop.benchmark.questions) // count)
    examples = []
    for at in range(0, step * count, step):
        if at >= len(shop.benchmark.questions):
            break
        question = shop.benchmark.questions[at]
        edits = [("Ref-Cap", escape(" ".join(question.reference)))]
        for model, outcomes in written.items():
            trace = outcomes[at].trace
            if trace is None:
                edits.append((shop.label(model), render_html(gold_script(question.reference, outcomes[at].tokens))))
            else:
                edits.append((shop.label(model), render_html(trace if trace.rounds else trace.script)))
        picture = None if images is None else _picture(images, question.image)
        target = " ".join(question.target)
        examples.append(Example(shop.benchmark.name, question.image, picture, target, tuple(edits)))
    return examples


def examples_html(examples: Sequence[Example]) -> str:
    """A section of a page."""
    return "".join(_figure(example) for example in examples)


def _figure(example: Example) -> str:
    picture = f'<img src="{example.picture}" alt="">' if example.picture else ""
    lines = "".join(f"<tr><th scope=row>{escape(name)}</th><td>{edit}</td></tr>" for name, edit in example.edits)
    target = f"<tr><th scope=row>GT-Cap</th><td>{escape(example.target)}</td></tr>"
    caption = f"{escape(example.benchmark)}, image {escape(example.image)}"
    return f"<figure>{picture}<table>{lines}{target}</table><figcaption>{caption}</figcaption></figure>"


def _picture(folder: Path, image: str) -> str | None:
    path = next((found for suffix in ("jpg", "jpeg", "png") if (found := folder / f"{image}.{suffix}").is_file()), None)
    if path is None:
        return None
    picture = load_image(path).copy()
    picture.thumbnail((SIDE, SIDE))
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=80)
    return "data:image/jpeg;base64," + b64encode(buffer.getvalue()).decode()
