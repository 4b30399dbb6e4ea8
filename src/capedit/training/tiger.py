"""Train TIger.

The published way: each module learns from gold states alone, on captions that are wrong. What is ours, and off by
default: right captions and slips (so that the editor learns to leave alone what is right), an image-text matching head,
captions with holes (pre-training), the model's own intermediate captions, and unknown words.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from capedit.edits import Alignment, Order
from capedit.models.decoding import Calibration, Scale
from capedit.models.device import array, tensor
from capedit.models.runtime import Images
from capedit.models.tiger import Module, Tiger, TigerSight
from capedit.models.tiger_torch import TorchModules
from capedit.models.vilbert import TextInput, VisionInput
from capedit.models.vocabulary import END, MASK, PAD, SPECIALS, START, Vocabulary
from capedit.training.images import vision_of
from capedit.training.pairs import Lesson, Pair, Slips, as_it_stands, with_holes
from capedit.training.rows import Gathered, Rows
from capedit.training.states import CHANGE, IGNORE, KEEP, Path, Sample, Sampler, Sentinels, find_path
from capedit.training.task import LossTerm
from capedit.training.trials import Round, Trials, Tried
from capedit.training.worth import Opening, Rewards
from capedit.vision.store import TokenSource


@dataclass(frozen=True)
class TigerTraining:
    """What TIger learns from; the defaults are the paper's."""

    keep_weight: float = 1.5
    """Lambda: the weight of KEEP in the loss of both taggers."""
    alignment: Alignment = Alignment.REFERENCE
    order: Order = Order.LEFT_TO_RIGHT
    right: float = 0.0
    """Right captions that Tagger_del sees for each wrong one."""
    unchanged: float = 0.0
    """Share of examples that are right captions, of which nothing should become: edits of these are drawn as well."""
    slips: float = 0.0
    """Right captions with a word or two mistaken, for each wrong one."""
    slip_words: int = 2
    """Most words mistaken in such a caption."""
    strangers: float = 0.0
    """Captions of other images, for each wrong one: for the matching head only."""
    holes: float = 0.0
    """Share of examples in which words are inserted into a right caption with holes, not into a pruned reference."""
    fillings: int = 1
    """Captions that the Inserter fills for each example; one of them also goes to Tagger_add."""
    own_states: float = 0.0
    """Share of examples that start from the model's own deletions and insertions."""
    flips: int = 0
    """Deletions of each such example that are also decided the other way round. With any, edits are rewarded by
    CIDEr-D: decisions that lead to better captions than their opposites are made likelier."""
    rivals: int = 8
    """Words that are compared for each place where such an edit inserted one."""
    overlap: float = 0.0
    """What ROUGE-L (0 to 1) counts beside CIDEr-D (0 to 10) in the reward."""
    witnesses: float = 0.0
    """What the other right captions of an image count in the reward, beside the target. The target is what one person
    happened to say; five say more of the image."""
    word_noise: float = 0.0
    """Share of words hidden from the model as unknown."""
    factors: Mapping[str, float] | None = None
    """Share of each loss in the objective; 1 where not named. They are delete, add, insert, match; of what was tried
    reward (of deleting and adding) and rivals (of words)."""
    body_rate: float = 1.0
    """Learning rate of the encoder over that of the heads; 0.02 in the paper, which starts from a trained one."""


class Batch(NamedTuple):
    """Images, the captions of each module, and the places in which words are compared."""

    vision: VisionInput
    rows: dict[str, Rows]
    openings: list[Opening]


class TigerTask:
    """An example is a pair; its rows are drawn anew each time it is seen."""

    name = "tiger"
    metric = "CIDEr-D"

    def __init__(
        self,
        model: Tiger,
        vocabulary: Vocabulary,
        lesson: Lesson,
        store: TokenSource,
        training: TigerTraining,
        examine: Callable[[TorchModules], Mapping[str, float]],
        calibration: Calibration | None = None,
    ) -> None:
        """`examine` scores the model on validation data. With a `calibration`, losses are of opinions as it reads them:
        those of a model that was rewarded for its edits mean other probabilities than they say."""
        self._model, self._lesson, self._store, self._training = model, lesson, store, training
        self._modules = TorchModules(model, vocabulary)
        self._examine, self._calibration = examine, calibration or Calibration()
        self._sampler = Sampler(Sentinels(START, END, MASK))
        self._slips = Slips(lesson.pairs) if training.slips else None
        self._trials = Trials(self._modules, self._make_rewards(vocabulary), training.flips)

    def _make_rewards(self, vocabulary: Vocabulary) -> Rewards | None:
        training = self._training
        return Rewards(self._lesson, vocabulary, training.overlap, training.witnesses) if training.flips else None

    @property
    def model(self) -> Tiger:
        return self._model

    def __len__(self) -> int:
        return len(self._lesson.pairs)

    def fingerprint(self) -> str:
        parts = [self._lesson.fingerprint(), self._store.header.encoder_hash]
        parts += [
            json.dumps(asdict(part), sort_keys=True, default=str) for part in (self._model.config, self._training)
        ]
        return sha256("\n".join(parts).encode()).hexdigest()[:16]

    def rate_factor(self, parameter: str) -> float:
        if parameter.startswith(("concepts.", "grounding.")):
            return 0.0  # trained before, on more images than have pairs
        if parameter == "match_fit":
            return 20.0  # two numbers that must find the scale of another network's opinion
        return self._training.body_rate if parameter.startswith("encoders.") else 1.0

    def evaluate(self) -> Mapping[str, float]:
        return self._examine(self._modules)

    # --- examples ---

    def batch(self, indices: NDArray[np.int64], rng: np.random.Generator) -> Batch:
        step = int(rng.integers(2**32))  # the same in every process; so is what an example draws
        draws = [np.random.default_rng([step, int(index)]) for index in indices]
        pairs = [self._pair(int(index), draw) for index, draw in zip(indices, draws, strict=True)]
        tokens = self._store.batch([pair.image for pair in pairs])
        gathered = Gathered(self._training.word_noise)
        own = self._own_edits(pairs, Images(*tokens), draws)
        for image, (pair, draw) in enumerate(zip(pairs, draws, strict=True)):
            tried = own.get(image)
            self._add_deletions(gathered, image, pair, tried, draw)
            self._add_insertions(
                gathered, image, pair, None if tried is None else self._trials.state(tried, draw), draw
            )
            for round in [] if tried is None else tried.rounds:
                self._add_round(gathered, image, round, draw)
        return Batch(vision_of(tokens), gathered.rows(), gathered.openings)

    def _pair(self, index: int, rng: np.random.Generator) -> Pair:
        """An edit, or now and then a right caption of its image."""
        pair, unchanged = self._lesson.pairs[index], self._training.unchanged
        if not unchanged or rng.random() >= unchanged:
            return pair
        caption = self._lesson.right_caption(pair, rng)
        return Pair(pair.image, caption, caption)

    def _add_deletions(
        self, gathered: Gathered, image: int, pair: Pair, tried: Tried | None, rng: np.random.Generator
    ) -> None:
        training = self._training
        gold = self._sampler.deletion(self._path(pair.source, pair.target))
        worth = None if tried is None or tried.worth is None else np.pad(tried.worth, 1)  # sentinels are not deleted
        gathered.add(Module.DELETE, image, gold, rng, fits=pair.source == pair.target, worth=worth)
        for _ in range(_times(training.right, rng)):
            caption = self._lesson.right_caption(pair, rng)
            gathered.add(Module.DELETE, image, self._sampler.deletion(self._path(caption, caption)), rng, fits=True)
        for _ in range(_times(training.slips, rng)):
            assert self._slips is not None
            caption = self._lesson.right_caption(pair, rng)
            wrong = self._slips.slip(caption, int(rng.integers(1, training.slip_words + 1)), rng)
            labels = [int(one != other) for one, other in zip(wrong, caption, strict=True)]
            sample = Sample([START, *wrong, END], [IGNORE, *labels, IGNORE])
            gathered.add(Module.DELETE, image, sample, rng, fits=wrong == caption)
        for _ in range(_times(training.strangers, rng)):
            other = self._lesson.pairs[int(rng.integers(len(self)))]
            if other.image != pair.image:
                sample = Sample([START, *other.target, END], [IGNORE] * (len(other.target) + 2))
                gathered.add(Module.DELETE, image, sample, rng, fits=False)

    def _add_insertions(
        self, gathered: Gathered, image: int, pair: Pair, own: list[int] | None, rng: np.random.Generator
    ) -> None:
        if own is None:
            path = self._gappy(pair, rng)
        else:
            second_look = self._path(own, pair.target)
            gathered.add(Module.DELETE, image, self._sampler.deletion(second_look), rng)
            path = as_it_stands(own, pair.target, self._training.alignment, self._training.order)
        after = int(rng.integers(path.rounds + 1))
        gathered.add(Module.ADD, image, self._sampler.addition(path, after), rng)
        for gappy in (path, *(self._gappy(pair, rng) for _ in range(1, self._training.fillings))):
            if (round := gappy.draw_round(rng)) is not None:
                gathered.add(Module.INSERT, image, self._sampler.insertion(gappy, round), rng)

    def _add_round(self, gathered: Gathered, image: int, round: Round, rng: np.random.Generator) -> None:
        """Where an edit added words in a round and which, and what that was worth."""
        adding = self._sampler.addition(round.path, round.number - 1)
        worth = np.zeros(len(adding.labels), np.float32)
        worth[np.array(adding.labels) == CHANGE] = round.gains
        tried = Sample(
            adding.tokens, [label if gain else IGNORE for label, gain in zip(adding.labels, worth, strict=True)]
        )
        gathered.add(Module.ADD, image, tried, rng, worth=worth)
        inserting = self._sampler.insertion(round.path, round.number)
        gathered.add(Module.INSERT, image, inserting, rng, openings=round.openings)

    def _gappy(self, pair: Pair, rng: np.random.Generator) -> Path:
        """The way to the target from the pruned reference, or to a right caption from one with holes."""
        if rng.random() >= self._training.holes:
            return self._path(pair.source, pair.target)
        return with_holes(self._lesson.right_caption(pair, rng), self._training.order, rng)

    def _own_edits(
        self, pairs: Sequence[Pair], images: Images, draws: Sequence[np.random.Generator]
    ) -> dict[int, Tried]:
        """For some of the pairs, what the model itself makes of them."""
        chosen = [at for at, rng in enumerate(draws) if rng.random() < self._training.own_states]
        shown = Images(images.features[chosen], images.boxes[chosen], images.counts[chosen])
        found = self._trials.of([pairs[at] for at in chosen], shown, [draws[at] for at in chosen])
        return dict(zip(chosen, found, strict=True))

    def _path(self, source: list[int], target: list[int]) -> Path:
        return find_path(source, target, self._training.alignment, self._training.order)

    # --- losses ---

    def loss_weights(self, batch: Batch) -> Mapping[str, float]:
        weights = {name: float(self._label_weights(name, rows).sum()) for name, rows in batch.rows.items()}
        if self._model.config.matching:
            weights["match"] = float((batch.rows[Module.DELETE].fits >= 0).sum())
        if self._trials.rewards is not None:
            weights["reward"] = float(sum((rows.worth != 0).sum() for rows in batch.rows.values()))
            weights["rivals"] = float(len(batch.openings))
        return weights

    def loss(self, batch: Batch) -> Mapping[str, LossTerm]:
        sight = self._model.see(batch.vision)
        sums: dict[str, Tensor] = {}
        for name, rows in batch.rows.items():
            for part in rows.by_length():
                for term, total in self._losses(Module(name), part, sight.rows(part.images), batch.openings).items():
                    sums[term] = sums[term] + total if term in sums else total
        factors = self._training.factors or {}
        return {name: LossTerm(total, factors.get(name, 1.0)) for name, total in sums.items()}

    def _losses(self, module: Module, rows: Rows, sight: TigerSight, openings: Sequence[Opening]) -> dict[str, Tensor]:
        """Summed over rows of one module."""
        text = TextInput(rows.ids, rows.ids != PAD)
        if module is Module.INSERT:
            return self._word_losses(text, rows, sight, openings)
        tags, match = (
            self._model.delete(text, sight) if module is Module.DELETE else (self._model.add(text, sight), None)
        )
        read = self._calibration
        tags = _read_tags(tags, read.delete if module is Module.DELETE else read.add)
        weights = self._label_weights(module, rows)
        losses: dict[str, Tensor] = {module: (weights * _cross_entropy(tags, rows.labels)).sum()}
        if match is not None:
            known = rows.fits >= 0
            losses["match"] = nn.functional.binary_cross_entropy_with_logits(
                _as_read(match[known], read.match), rows.fits[known].float(), reduction="sum"
            )
        if self._trials.rewards is not None:
            losses["reward"] = -(rows.worth * tags.softmax(-1)[..., CHANGE]).sum()
        return losses

    def _word_losses(
        self, text: TextInput, rows: Rows, sight: TigerSight, openings: Sequence[Opening]
    ) -> dict[str, Tensor]:
        at = (rows.labels != IGNORE).nonzero(as_tuple=True)
        logits = _as_read(self._model.insert(text, sight, *at), self._calibration.insert)
        opening = rows.opening[at]
        weights = self._label_weights(Module.INSERT, rows)[at]
        losses: dict[str, Tensor] = {Module.INSERT: (weights * _cross_entropy(logits, rows.labels[at])).sum()}
        if self._trials.rewards is not None:
            tried = (opening >= 0).nonzero().squeeze(1)
            places = [openings[number] for number in opening[tried].tolist()]
            losses["rivals"] = self._expected_loss(logits[tried], places, self._trials.rewards)
        return losses

    def _expected_loss(self, logits: Tensor, openings: Sequence[Opening], rewards: Rewards) -> Tensor:
        """How far the reward that is to be expected of the likeliest words is below that of the best."""
        words = logits[:, len(SPECIALS) :].detach().topk(self._training.rivals).indices + len(SPECIALS)
        reward = tensor(rewards.of_words(openings, array(words)), logits.device)
        best = reward.max(1, keepdim=True).values
        return ((best - reward) * logits.gather(1, words).softmax(1)).sum()

    def _label_weights(self, name: str, rows: Rows) -> Tensor:
        """Of gold labels; what was only tried has none."""
        counted = (rows.labels != IGNORE) & (rows.opening < 0)
        if name == Module.INSERT:
            return counted.float()
        if name == Module.ADD:  # in Tagger_del, worth stands beside gold labels
            counted = counted & (rows.worth == 0)
        return counted * torch.where(rows.labels == KEEP, self._training.keep_weight, 1.0)


def _as_read(logits: Tensor, scale: Scale) -> Tensor:
    """As `Scale` itself does with arrays."""
    return logits / scale.temperature + scale.shift


def _read_tags(tags: Tensor, scale: Scale) -> Tensor:
    """Logits of KEEP and change (…, 2) whose difference is read by a scale."""
    if scale == Scale():
        return tags
    change = _as_read(tags[..., CHANGE] - tags[..., KEEP], scale)
    return torch.stack([torch.zeros_like(change), change], -1)


def _cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Of each label; 0 where there is none."""
    flat = nn.functional.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=IGNORE, reduction="none")
    return flat.view_as(labels)


def _times(rate: float, rng: np.random.Generator) -> int:
    """How often something happens that happens `rate` times on average."""
    return int(rate) + int(rng.random() < rate - int(rate))


def config_of(values: Mapping[str, Any]) -> TigerTraining:
    """From JSON."""
    known = dict(values)
    for name, kind in (("alignment", Alignment), ("order", Order)):
        if name in known:
            known[name] = kind(known[name])
    return TigerTraining(**known)
