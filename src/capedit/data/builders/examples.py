"""A page of examples to look at: the picture, both captions, and the gold edit between them."""

import base64
import io
from collections.abc import Iterable
from html import escape

import numpy as np
from PIL import Image

from capedit.data.instance import Instance
from capedit.edits import count_script, gold_script, render_html
from capedit.edits.render.html import STYLE

THUMBNAIL = 200
"""Pixels along the longer side; embedded, so that the page is one file."""

_PAGE_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
article { display: flex; gap: 1.25rem; padding: 1rem 0; border-top: 1px solid #8884; }
article img, article .none { width: 200px; flex: none; align-self: start; border-radius: 6px; }
article .none { display: grid; place-items: center; height: 120px; background: #8882; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1rem; margin: 0; align-content: start; }
dt, small, header p { color: #777; } dd { margin: 0; }
@media (max-width: 36rem) { article { flex-direction: column; } }
"""


def sample(instances: Iterable[Instance], count: int, seed: int = 0) -> list[Instance]:
    """`count` instances at random, in their order, in one pass and the memory of `count` (reservoir sampling)."""
    rng = np.random.default_rng(seed)
    kept: list[tuple[int, Instance]] = []
    for number, instance in enumerate(instances):
        if len(kept) < count:
            kept.append((number, instance))
        elif (place := int(rng.integers(number + 1))) < count:
            kept[place] = (number, instance)
    return [instance for _, instance in sorted(kept, key=lambda pair: pair[0])]


def examples_page(instances: Iterable[Instance], title: str) -> str:
    """One HTML page without scripts or outside files; instances need a target."""
    articles = [_article(instance) for instance in instances]
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_PAGE_STYLE}{STYLE}</style></head>\n<body><header><h1>{escape(title)}</h1>"
        f"<p>{len(articles)} examples, drawn at random. Ref: the caption to be edited. GT: what it is edited into."
        "</p></header>\n" + "\n".join(articles) + "\n</body></html>\n"
    )


def _article(instance: Instance) -> str:
    reference, target = instance.reference_tokens, instance.target_tokens or ()
    script = gold_script(reference, target)
    steps = count_script(script)
    rows = {
        "Ref": escape(" ".join(reference)),
        "GT": escape(" ".join(target)),
        "Edit": render_html(script),
        "": f"<small>image {escape(str(instance.image_id))}, instance {escape(str(instance.id))}: "
        f"{steps.deletes} deleted, {steps.adds} added</small>",
    }
    words = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in rows.items())
    return f"<article>{_picture(instance)}<dl>{words}</dl></article>"


def _picture(instance: Instance) -> str:
    missing = '<div class="none">no picture</div>'
    if instance.image is None:
        return missing
    try:
        with Image.open(io.BytesIO(instance.image.read())) as picture:
            small = picture.convert("RGB")
    except (OSError, ValueError):
        return missing
    small.thumbnail((THUMBNAIL, THUMBNAIL))
    buffer = io.BytesIO()
    small.save(buffer, "JPEG", quality=80)
    data = base64.b64encode(buffer.getvalue()).decode()
    return f'<img src="data:image/jpeg;base64,{data}" alt="image {escape(str(instance.image_id))}">'
