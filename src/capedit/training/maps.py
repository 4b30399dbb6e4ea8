"""Maps of an encoder's frozen stages, computed once, for training what comes after them.

The stages that stay as they are make an encoder by themselves, whose visual tokens are the cells of a map. So maps are
kept in a feature store: it takes up where it was stopped, and knows which images could not be read.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from capedit.models.efficientnet import EfficientNetLite
from capedit.models.efficientnet_onnx import export_onnx
from capedit.vision import FeatureStore, GridEncoder, StoreWriter
from capedit.vision.extraction import ImageEntry, extract
from capedit.vision.store import TokenSource

BODY = "body.onnx"
"""The frozen stages, in the folder of their maps."""


def fill_maps(
    network: EfficientNetLite,
    stages: int,
    images: Sequence[ImageEntry],
    folder: Path,
    *,
    workers: int = 2,
    report: Callable[[int], None] = lambda done: None,
) -> FeatureStore:
    """Compute what the store in `folder` lacks of the maps after so many stages; `report` is told how many are done."""
    export_onnx(network, folder / BODY, name=f"first {stages} stages", stages=stages)
    body = GridEncoder(folder / BODY, threads=1)
    with StoreWriter(folder, body) as writer:
        extract(images, body, writer, workers=workers, report=lambda account: report(account.done))
    return FeatureStore(folder)


def maps_of(store: TokenSource, images: Sequence[str]) -> NDArray[np.float32]:
    """(B, cells, channels): all tokens but the first, which stands for the whole image."""
    return store.batch(images).features[:, 1:]


def mirror(maps: NDArray[np.float32]) -> NDArray[np.float32]:
    """Square maps (B, cells, C) with left and right exchanged."""
    side = round(maps.shape[1] ** 0.5)
    return maps.reshape(len(maps), side, side, maps.shape[2])[:, :, ::-1].reshape(maps.shape)
