"""The benchmarks, rebuilt: Flickr30K-EE from e-SNLI-VE, COCO-EE from COCO captions."""

from capedit.data.builders.coco_ee import CocoEeBuild, CocoEeOptions, build_coco_ee
from capedit.data.builders.flickr30k_ee import EsnliRow, Mode, flickr30k_ee, read_esnli

__all__ = [
    "CocoEeBuild",
    "CocoEeOptions",
    "EsnliRow",
    "Mode",
    "build_coco_ee",
    "flickr30k_ee",
    "read_esnli",
]
