"""What an edit by the published network costs, in its own order of computation and in ours, and by a model beside it.

    python benchmarks/tiger_base.py [MODEL] [--edits COCO_EE_val.json] [--batch 1] [--repeats 3]

Counted: the multiply-accumulates of an edit of up to four rounds, gold edits setting the lengths; over all instances of
`--edits`, or the examples below. Measured: the same for one example at batch 1, with random weights, which cost as much
as trained ones; one encoder stands for the three of equal shape. As published, captions are padded to 32 tokens, all
heads run on all tokens, and all rounds are run. CPU seconds are printed, for wall time means little on a busy machine.

MODEL is a model folder; without one, a network of random weights in the shape of `tiger-small` is made. It is measured
through ONNX Runtime, as it is and (where it has its weights) in 8 bits: encoding an image, a four-round edit at batch
1, captions in bulk with features in a store, and memory.
"""

import argparse
import io
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from capedit.data import open_dataset
from capedit.editing import Bundle, Editor, Runtime
from capedit.editing.editor import load_modules
from capedit.editing.export import Description, export_bundle, reexport
from capedit.edits import Alignment, expand, gold_script
from capedit.edits.tokens import tokenize
from capedit.errors import CapeditError
from capedit.models.accounting import encoder_cost, published_module, tag_head_cost, word_head_cost
from capedit.models.bits import Bits
from capedit.models.runtime import Modules, Seen, Text
from capedit.models.tiger import Module, TagHead, Tiger, WordHead
from capedit.models.tiger_files import named_config
from capedit.models.vilbert import TextInput, Vilbert, VisionInput
from capedit.models.vocabulary import END, MASK, START, Vocabulary
from capedit.training.recipe import Recipe
from capedit.vision import FeatureStore, StoreWriter, VisualTokens, load_encoder
from capedit.vision.encoder import Encoder
from capedit.vision.tokens import grid_corners

ROUNDS, PADDED, REGIONS = 4, 32, 37
EXAMPLES = [
    ("a man riding a wave on top of a surfboard", "a man is standing on a beach with a surfboard"),
    ("two dogs lying on a bed next to each other", "a cat and a dog are sleeping on a couch"),
    ("a kitchen with a stove and a refrigerator", "a white stove in a small kitchen with wooden cabinets"),
]
WORDS = 10_000
CONCEPTS = 2_000
BULK = 256
BASE = named_config("tiger-base").encoder


class Forward(NamedTuple):
    """One pass of a module: tokens with sentinels and masks, and how many masks."""

    module: Module
    tokens: int
    masks: int = 0


def plan(reference: Sequence[str], target: Sequence[str], *, early: bool) -> list[Forward]:
    """The forwards of a gold edit; `early` stops when nothing is left to add, as the taggers would say."""
    states = expand(gold_script(reference, target, Alignment.REFERENCE)).states
    forwards = [Forward(Module.DELETE, len(states[0]) + 2)]
    for number in range(1, ROUNDS + 1):
        before, after = (len(states[min(at, len(states) - 1)]) for at in (number, number + 1))
        forwards.append(Forward(Module.ADD, before + 2))
        if early and after == before:
            break
        forwards.append(Forward(Module.INSERT, after + 2, max(after - before, 1)))
    return forwards


class Counter:
    """Multiply-accumulates of forwards by `tiger-base`."""

    def __init__(self) -> None:
        with torch.device("meta"):
            encoder = Vilbert(BASE)
        self._still = encoder_cost(encoder, 0, REGIONS).macs
        self._token = encoder_cost(encoder, 1, REGIONS).macs - self._still
        self.embedding = REGIONS * sum(p.numel() for n, p in encoder.embed_vision.named_parameters() if p.ndim == 2)
        self.published = sum(p.cost.macs for p in published_module(BASE, PADDED, REGIONS) if p.run)

    def lean(self, forwards: Sequence[Forward]) -> int:
        """An image is embedded once for each of the three encoders, and only heads that are read are run."""
        total = 3 * self.embedding
        for module, tokens, masks in forwards:
            insert = module is Module.INSERT
            head = word_head_cost(BASE, masks) if insert else tag_head_cost(BASE, tokens)
            total += self._still - self.embedding + tokens * self._token + head.macs
        return total


def count(pairs: Sequence[tuple[list[str], list[str]]]) -> None:
    counter = Counter()
    all_rounds = [plan(*pair, early=False) for pair in pairs]
    finished = [plan(*pair, early=True) for pair in pairs]
    padded = [[forward._replace(tokens=PADDED) for forward in forwards] for forwards in all_rounds]
    published = (2 * ROUNDS + 1) * counter.published
    print(f"multiply-accumulates of an edit, mean of {len(pairs)}")
    print(f"  {'published order':52s} {published / 1e9:7.2f} G")
    for label, plans in [
        ("without what no word sees and heads nobody reads", padded),
        ("... and without padding", all_rounds),
        ("... and finished when nothing is left to add", finished),
    ]:
        macs = fmean(map(counter.lean, plans))
        print(f"  {label:52s} {macs / 1e9:7.2f} G   {published / macs:5.2f} times less")


class PublishedModule(nn.Module):
    """A published module with all that its code computes; `lean` is the part of its encoder that words can see."""

    def __init__(self) -> None:
        super().__init__()
        with torch.device("meta"):
            self.encoder = Vilbert(replace(BASE, whole=True, dropout=0.0))
            lean = Vilbert(replace(BASE, dropout=0.0))
            self.tag_head, self.word_head = TagHead(BASE.text.width), WordHead(BASE.text.width, BASE.vocabulary)
            self.poolers = nn.ModuleList(nn.Linear(w.width, BASE.co_width) for w in (BASE.text, BASE.vision))
            self.image_head = nn.Sequential(
                nn.Linear(BASE.vision.width, BASE.vision.width), nn.Linear(BASE.vision.width, 1601)
            )
        self.to_empty(device="cpu")
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.03, 0.03)
        lean.load_state_dict(self.encoder.state_dict(), strict=False, assign=True)
        self.lean = [lean.eval()]  # in a list: not a part of this module

    def forward(self, text: TextInput, vision: VisionInput) -> Tensor:
        x: Tensor = self.encoder(text, vision)
        y = x.new_zeros(len(x), REGIONS, BASE.vision.width)  # stands for the end of the vision stream: equal in size
        for unread, tokens in [
            (self.tag_head, x),
            (self.image_head, y),
            *zip(self.poolers, (x[:, 0], y[:, 0]), strict=True),
        ]:
            unread(tokens)
        words: Tensor = self.word_head(x, self.encoder.embed_text.word.weight)
        return words


@torch.no_grad()
def measure_base(pair: tuple[list[str], list[str]], batch: int, repeats: int) -> None:
    """Time grows with counted work only where a forward has many tokens: with few, it waits for weights from memory."""
    module = PublishedModule().eval()
    encoder = module.lean[0]
    vision = VisionInput(torch.randn(batch, REGIONS, BASE.feature_width), torch.rand(batch, REGIONS, 5))
    seen_mask = VisionInput(*vision[:2], torch.ones(batch, REGIONS, dtype=torch.bool))

    def published() -> None:
        for forward in plan(*pair, early=False):
            there = (torch.arange(PADDED) < forward.tokens).expand(batch, -1)
            module(TextInput(torch.full((batch, PADDED), 9), there), seen_mask)

    def lean(forwards: Sequence[Forward]) -> None:
        sights = {name: encoder.see(vision) for name in Module}
        for name, tokens, masks in forwards:
            text = TextInput(torch.full((batch, tokens), 9), torch.ones(batch, tokens, dtype=torch.bool))
            x = encoder.read(text, sights[name])
            if name is Module.INSERT:
                module.word_head(x[:, :masks], encoder.embed_text.word.weight)
            else:
                module.tag_head(x)

    counter, all_rounds, finished = Counter(), plan(*pair, early=False), plan(*pair, early=True)
    ways: list[tuple[str, int, Callable[[], None]]] = [
        ("published order", len(all_rounds) * counter.published, published),
        ("ours, all four rounds", counter.lean(all_rounds), lambda: lean(all_rounds)),
        ("ours, finished when nothing is left to add", counter.lean(finished), lambda: lean(finished)),
    ]
    lean(finished[:1])  # warm
    spent = [[cpu(work) for _, _, work in ways] for _ in range(repeats)]
    print(f"\ntiger-base by torch, one thread, batch {batch}: {' '.join(pair[0])} -> {' '.join(pair[1])}")
    base, most = ways[0][1], median(times[0] for times in spent)
    for (label, macs, _), seconds in zip(ways, map(median, zip(*spent, strict=True)), strict=True):
        less = f"{base / macs:5.2f} times less work, {most / seconds:5.2f} times less time"
        print(f"  {label:43s} {batch * macs / 1e9:7.2f} G {seconds:7.2f} s  {less}")


def cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def walk(modules: Modules, seen: Seen, forwards: Sequence[Forward]) -> None:
    """The forwards of an edit through a model, whatever it makes of them."""
    for module, tokens, masks in forwards:
        ids = np.full((1, tokens), len(modules.vocabulary) - 1, np.int64)
        ids[0, 0], ids[0, -1] = START, END
        text = Text(ids, np.ones((1, tokens), bool))
        if module is Module.DELETE:
            modules.delete(text, seen)
        elif module is Module.ADD:
            modules.add(text, seen)
        else:
            ids[0, 1 : masks + 1] = MASK
            modules.insert(text, seen, np.zeros(masks, np.int64), np.arange(1, masks + 1))


def measure_folder(folder: Path, pairs: Sequence[tuple[list[str], list[str]]], repeats: int) -> None:
    bundle = Bundle.load(folder)
    encoder = encoder_for(bundle)
    editor = Editor(bundle, load_modules(bundle, Runtime.ONNX, 1), encoder)
    size = sum(file.stat().st_size for file in folder.iterdir() if file.suffix in (".onnx", ".json"))
    print(f"\n{bundle.label} ({bundle.card['bits']}, {size / 1e6:.1f} MB) by ONNX Runtime, one thread")
    if not isinstance(encoder, _NoEncoder):
        picture = jpeg()
        encoder.encode([picture])
        report("encoding an image (640 x 480)", [cpu(lambda: encoder.encode([picture])) for _ in range(5 * repeats)])
    chance = np.random.default_rng(0)
    images = [made_tokens(chance, encoder.dim) for _ in range(64)]
    seen = editor.see(images[:1])
    report("seeing an image", [cpu(lambda: editor.see(images[:1])) for _ in range(5 * repeats)])
    forwards = plan(*(tokenize(caption) for caption in EXAMPLES[0]), early=False)
    walk(editor.modules, seen, forwards)
    report(
        "a four-round edit, 9 forwards", [cpu(lambda: walk(editor.modules, seen, forwards)) for _ in range(5 * repeats)]
    )
    captions = [" ".join(pairs[at % len(pairs)][0]) for at in range(BULK)]
    with tempfile.TemporaryDirectory() as place:
        with StoreWriter(Path(place, "store"), encoder) as writer:
            for number, tokens in enumerate(images):
                writer.add(str(number), tokens)
        store = FeatureStore(Path(place, "store"))

        def bulk() -> None:
            for start in range(0, BULK, 64):
                shown = editor.see([store.tokens(str(number)) for number in range(64)])
                editor.edit_seen(shown, captions[start : start + 64])

        editor.edit_seen(seen, captions[:1])
        seconds = cpu(bulk)
    print(f"  {'in bulk, features in a store':40s} {BULK / seconds:8.1f} captions/s of CPU")
    print(f"  {'most memory of a process that edits':40s} {memory(folder) / 2**20:8.1f} MB")


def report(label: str, seconds: Sequence[float]) -> None:
    print(f"  {label:40s} {1e3 * median(seconds):8.1f} ms of CPU (best {1e3 * min(seconds):.1f})")


class _NoEncoder:
    """Where the encoder of a model is not at hand: its tokens are made."""

    def __init__(self, hash_: str, dim: int) -> None:
        self.name, self.hash, self.dim = "made tokens", hash_, dim

    def encode(self, images: Sequence[object]) -> list[VisualTokens]:
        raise NotImplementedError


def encoder_for(bundle: Bundle) -> Encoder:
    width = int(bundle.card["shape"]["encoder"]["feature_width"])
    try:
        found = load_encoder("default", threads=1)
    except CapeditError:
        return _NoEncoder(bundle.encoder, width)
    return found if found.dim == width else _NoEncoder(bundle.encoder, width)


def made_tokens(chance: np.random.Generator, dim: int) -> VisualTokens:
    return VisualTokens.from_regions(chance.random((16, dim)).astype(np.float32), grid_corners(4, 4))


def jpeg() -> bytes:
    noise = np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).resize((640, 480), Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


ALONE = """
import sys
import numpy as np
from capedit.editing import Bundle, Editor, Runtime
from capedit.editing.editor import load_modules
from capedit.pipeline.workbench import peak_memory
from capedit.vision import VisualTokens
from capedit.vision.tokens import grid_corners

bundle = Bundle.load(sys.argv[1])
width = bundle.card["shape"]["encoder"]["feature_width"]
modules = load_modules(bundle, Runtime.ONNX, 1)
encoder = type("Encoder", (), {"dim": width})()
tokens = VisualTokens.from_regions(np.ones((16, width), np.float32), grid_corners(4, 4))
editor = Editor(bundle, modules, encoder)
editor.edit_seen(editor.see([tokens]), [sys.argv[2]])
assert "torch" not in sys.modules
print(peak_memory())
"""
"""Without torch, which the core install does not have; and without the image encoder."""


def memory(folder: Path) -> int:
    """Most bytes that a fresh process holds while it edits a caption."""
    command = [sys.executable, "-c", ALONE, str(folder), EXAMPLES[0][0]]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def made_model(folder: Path) -> Path:
    """Random weights in the shape of `tiger-small`."""
    encoder = load_encoder("default", threads=1)
    model = Tiger(Recipe.load("tiger-small").config(WORDS, encoder.dim, CONCEPTS)).eval()
    words = sorted({word for pair in EXAMPLES for sentence in pair for word in sentence.split()})
    vocabulary = Vocabulary([*words, *(f"word{number}" for number in range(WORDS - 5 - len(words)))])
    export_bundle(model, vocabulary, Description("random tiger-small", encoder.hash), folder, with_torch=True)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--edits", type=Path, help="an EE file for the counts and for captions in bulk")
    parser.add_argument("--batch", type=int, default=1, help="captions of a forward of tiger-base")
    parser.add_argument("--repeats", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    pairs = [(tokenize(one), tokenize(other)) for one, other in EXAMPLES]
    if options.edits:
        read = [(tokenize(one.reference), tokenize(one.target)) for one in open_dataset(options.edits) if one.target]
        pairs = [pair for pair in read if max(map(len, pair)) <= PADDED - 2]
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    count(pairs)
    measure_base((tokenize(EXAMPLES[0][0]), tokenize(EXAMPLES[0][1])), options.batch, options.repeats)
    with tempfile.TemporaryDirectory() as place:
        folder = options.model or made_model(Path(place, "made"))
        measure_folder(folder, pairs, options.repeats)
        if (folder / "weights.safetensors").is_file():
            reexport(folder, Path(place, "int8"), Bits.INT8)
            measure_folder(Path(place, "int8"), pairs, options.repeats)


if __name__ == "__main__":
    main()
