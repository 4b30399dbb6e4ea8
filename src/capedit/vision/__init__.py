"""Image to visual tokens: encoders, published region files, and a feature store on disk."""

from capedit.vision.encoder import Encoder
from capedit.vision.grid import GridEncoder
from capedit.vision.image import ImageError, ImageSource, load_image
from capedit.vision.registry import load_encoder
from capedit.vision.shard import Precision, StoreError
from capedit.vision.store import FeatureStore
from capedit.vision.store_writer import StoreWriter
from capedit.vision.tokens import WITHHELD, VisualTokens

__all__ = [
    "WITHHELD",
    "Encoder",
    "FeatureStore",
    "GridEncoder",
    "ImageError",
    "ImageSource",
    "Precision",
    "StoreError",
    "StoreWriter",
    "VisualTokens",
    "load_encoder",
    "load_image",
]
