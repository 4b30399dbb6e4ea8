"""A benchmark as a reproduction uses it: pairs to learn from, questions to answer, and the images of both."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path

from capedit.data import open_dataset
from capedit.data.statistics import Statistics, collect_statistics
from capedit.errors import CapeditError
from capedit.models.vocabulary import Vocabulary
from capedit.training.examination import Question
from capedit.training.material import ImageKeys, Material, read_questions
from capedit.vision import FeatureStore


@dataclass(frozen=True)
class BenchmarkFiles:
    """Where a benchmark lies."""

    name: str
    train: tuple[Path, ...]
    questions: Path
    """The file that systems are examined on."""
    split: str = "val"
    """Which split of the paper's that is."""


@dataclass(frozen=True)
class Benchmark:
    """A benchmark that has been read."""

    files: BenchmarkFiles
    material: Material
    """Pairs, and their targets as right captions."""
    questions: tuple[Question, ...]
    store: FeatureStore

    @classmethod
    def read(cls, files: BenchmarkFiles, store: FeatureStore) -> "Benchmark":
        keys = ImageKeys(store)
        questions = tuple(read_questions([files.questions], keys))
        if not questions:
            raise CapeditError(f"{files.questions}: no instance whose image is in {store.path}")
        seen = frozenset(question.image for question in questions)
        edits = Material.read(files.train, [], keys).without(seen).edits
        return cls(files, Material(edits, [(image, target) for image, _, target in edits]), questions, store)

    @property
    def name(self) -> str:
        return self.files.name

    @cached_property
    def statistics(self) -> dict[str, Statistics]:
        """Of the whole files, by split: instances without an image count here, too. Takes minutes on large files."""
        return {"train": _statistics(self.files.train), self.files.split: _statistics([self.files.questions])}

    def vocabulary(self, min_count: int) -> Vocabulary:
        """The words of the training pairs, counted as TIger's training counts them: all systems have the same."""
        captions = [caption for _, caption in self.material.right]
        captions += [caption for _, source, target in self.material.edits for caption in (source, target)]
        return Vocabulary.from_captions(captions, min_count)

    def fingerprint(self) -> str:
        """A hash of all that is learned from and asked."""
        digest = sha256(self.store.header.encoder_hash.encode())
        for part in (self.material.edits, self.questions):
            for item in part:
                digest.update(repr(item).encode())
        return digest.hexdigest()[:12]

    def describe(self) -> str:
        return (
            f"{self.name}: trained on {len(self.material.edits):,} pairs, examined on {len(self.questions):,} "
            f"instances of {self.files.split} (those whose image there is); visual tokens by "
            f"{self.store.header.encoder} ({self.store.header.encoder_hash})"
        )


def _statistics(paths: Iterable[Path]) -> Statistics:
    return collect_statistics(
        (instance.image_id, instance.reference_tokens, instance.target_tokens)
        for path in paths
        for instance in open_dataset(path)
        if instance.target_tokens is not None
    )
