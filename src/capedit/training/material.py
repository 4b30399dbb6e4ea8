"""What a model is trained and examined on, read from files and tied to the images of a feature store."""

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from capedit.data import Instance, open_dataset
from capedit.errors import CapeditError
from capedit.training.examination import Question
from capedit.vision import WITHHELD, FeatureStore

Edits = list[tuple[str, tuple[str, ...], tuple[str, ...]]]
Captions = list[tuple[str, tuple[str, ...]]]


class ImageKeys:
    """From the image ids of caption files to the ids of a store, which are file names without their ending."""

    def __init__(self, store: FeatureStore) -> None:
        self._known = set(store.ids)
        # COCO writes 000000391895 for image 391895, Flickr 1000268201_693b08cb0e for image 1000268201.
        self._numbers = {image.split("_")[0].lstrip("0"): image for image in self._known}
        self.withheld = WITHHELD if WITHHELD in self._known else None

    def find(self, image_id: str | int | None) -> str | None:
        """The store's id of an image, or None if it is not there."""
        name = str(image_id)
        return name if name in self._known else self._numbers.get(name.lstrip("0"))


@dataclass(frozen=True)
class Material:
    """Edits and right captions by image."""

    edits: Edits
    right: Captions

    @classmethod
    def read(cls, edits: Iterable[Path], captions: Iterable[Path], keys: ImageKeys) -> "Material":
        """Instances with a target from `edits`, plain captions from `captions`, in any format.

        Edits of images that the store lacks are kept if it holds a blank token for them, else left out.
        """
        found: Edits = []
        for instance in _instances(edits):
            image = keys.find(instance.image_id) or keys.withheld
            if instance.target_tokens is None:
                raise CapeditError(f"instance {instance.id}: no target caption to learn from")
            if image is not None and instance.reference_tokens and instance.target_tokens:
                found.append((image, instance.reference_tokens, instance.target_tokens))
        right: Captions = []
        for instance in _instances(captions):
            image = keys.find(instance.image_id)
            if image is not None and instance.reference_tokens:
                right.append((image, instance.reference_tokens))
        return cls(found, right)

    def without(self, images: Set[str]) -> "Material":
        """What is left if some images may not be used."""
        return Material([e for e in self.edits if e[0] not in images], [c for c in self.right if c[0] not in images])


def read_questions(paths: Sequence[Path], keys: ImageKeys, *, withheld: bool = False) -> list[Question]:
    """Instances with a target as questions; those whose image the store lacks are left out, or asked without it."""
    questions = []
    for instance in _instances(paths):
        image = keys.find(instance.image_id) or (keys.withheld if withheld else None)
        if image is not None and instance.target_tokens:
            questions.append(Question(image, instance.reference_tokens, instance.target_tokens))
    return questions


def _instances(paths: Iterable[Path]) -> Iterator[Instance]:
    for path in paths:
        yield from open_dataset(path)
