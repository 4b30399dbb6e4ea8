"""Caption datasets: instances, and eight formats both ways behind `open_dataset` and `write_dataset`."""

from capedit.data.dataset import Dataset, Written, open_dataset, restore_instances, rewrite_dataset, write_dataset
from capedit.data.errors import DataError, Problem
from capedit.data.formats import FORMATS
from capedit.data.images import Image, ImageBytes, ImageFile
from capedit.data.instance import Instance

__all__ = [
    "FORMATS",
    "DataError",
    "Dataset",
    "Image",
    "ImageBytes",
    "ImageFile",
    "Instance",
    "Problem",
    "Written",
    "open_dataset",
    "restore_instances",
    "rewrite_dataset",
    "write_dataset",
]
