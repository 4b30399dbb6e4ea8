"""V-LaserTagger: one tag for each word, said from left to right.

A tag keeps or deletes its word, and may put a phrase of a fixed vocabulary before it. A two-stream encoder reads
caption and image; a small causal decoder goes along its states, and knows the tags that it has said. As published, the
decoder takes the encoder's state of the word at hand, and does not attend to the others; and a pair that needs a phrase
outside the vocabulary is not learned from. Departure: the end sentinel has a tag as well, for captions end without a
full stop before which the last phrase could go.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from capedit.edits import Alignment, LaserTag, Op, Operation, Script, Trace, align
from capedit.models.layers import Attention, TransformerLayer
from capedit.models.system import Exercise, Kind, Outcome, System, as_text, edit_what_fits
from capedit.models.vilbert import Vilbert, VilbertConfig, VisionInput
from capedit.models.vocabulary import END, START, Vocabulary


@dataclass(frozen=True)
class LaserTaggerConfig:
    """The shape of the tagger, and what it can say."""

    encoder: VilbertConfig
    phrases: tuple[tuple[int, ...], ...]
    """As word ids; see `PhraseVocabulary`."""
    decoder_layers: int = 1


class GoldTag(NamedTuple):
    """What becomes of a word, and the phrase (word ids) that goes before it."""

    deleted: bool
    phrase: tuple[int, ...]


def gold_tags(source: Sequence[int], target: Sequence[int]) -> list[GoldTag]:
    """A tag for each word and one for the end. A phrase goes before the first word of its gap, deleted or not."""
    tags: list[GoldTag] = []
    start = 0
    for kept, found in [*align(source, target, Alignment.REFERENCE), (len(source), len(target))]:
        phrase = tuple(target[start:found])
        for _ in range(len(tags), kept):
            tags.append(GoldTag(True, phrase))
            phrase = ()
        tags.append(GoldTag(False, phrase))
        start = found + 1
    return tags


class CausalAttention(Attention):
    """Attention to oneself and to what came before; padding comes last, so that it is never looked at."""

    def attend(self, x: Tensor, projected: Tensor, memory_mask: Tensor | None) -> Tensor:
        key, value = self._split(projected[:, 0]), self._split(projected[:, 1])
        mixed = F.scaled_dot_product_attention(self._split(self.query(x)), key, value, is_causal=True)
        return mixed.transpose(1, 2).flatten(2)


class LaserTagger(System):
    """The explicit editor. Tag 2n keeps and tag 2n + 1 deletes; n counts phrases from 1, and 0 is none."""

    kind = Kind.EXPLICIT
    config: LaserTaggerConfig

    def __init__(self, config: LaserTaggerConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        text = config.encoder.text
        self.tags = 2 * (len(config.phrases) + 1)
        self.begin = self.tags  # what was said before the first tag
        self._number = {(): 0} | {phrase: number for number, phrase in enumerate(config.phrases, start=1)}
        self.encoder = Vilbert(config.encoder)
        self.said = nn.Embedding(self.tags + 1, text.width)
        self.join = nn.Linear(2 * text.width, text.width)
        self.decoder = nn.ModuleList()
        for _ in range(config.decoder_layers):
            layer = TransformerLayer(text.width, text.heads, text.inner, config.encoder.dropout)
            layer.attention = CausalAttention(text.width, text.width, text.width, text.heads)
            self.decoder.append(layer)
        self.score = nn.Linear(text.width, self.tags)

    def decode(self, states: Tensor, before: Tensor) -> Tensor:
        """Encoder states (B, L, D) of words, and the tag said before each (B, L) -> decoder states (B, L, D)."""
        x: Tensor = self.join(torch.cat([states, self.said(before)], -1))
        for layer in self.decoder:
            x = layer(x, None)
        return x

    # --- learning ---

    def exercise(self, source: Sequence[int], target: Sequence[int]) -> Exercise | None:
        gold = gold_tags(source, target)
        if len(source) + 2 > self.config.encoder.positions or any(tag.phrase not in self._number for tag in gold):
            return None
        tags = [2 * self._number[tag.phrase] + tag.deleted for tag in gold]
        return Exercise({"reference": [START, *source, END], "before": [self.begin, *tags[:-1]]}, {"tags": tags})

    def answers(
        self, vision: VisionInput, shown: Mapping[str, Tensor], asked: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        states = self.encoder(as_text(shown["reference"]), vision)[:, 1:]  # the start has no tag
        return {"tags": self.score(self.decode(states, shown["before"])[asked["tags"]])}

    # --- editing ---

    def edit(self, vision: VisionInput, captions: Sequence[Sequence[str]]) -> list[Outcome]:
        return edit_what_fits(vision, captions, self.config.encoder.positions - 2, self._edit)

    @torch.no_grad()
    def _edit(self, vision: VisionInput, captions: Sequence[Sequence[str]]) -> list[Outcome]:
        states = self.encoder(self.read(captions), vision)[:, 1:]
        ends = torch.tensor([len(caption) for caption in captions])
        before = torch.full((len(captions), 1), self.begin)
        sure = torch.empty(len(captions), 0)
        for at in range(states.shape[1]):
            logits = self.score(self.decode(states[:, : at + 1], before)[:, -1])  # (B, tags)
            logits[:, 1::2] = logits[:, 1::2].masked_fill((ends == at).unsqueeze(1), -torch.inf)  # the end stays
            likely, best = logits.softmax(-1).max(-1)
            before, sure = torch.cat([before, best[:, None]], 1), torch.cat([sure, likely[:, None]], 1)
        said = zip(captions, before[:, 1:].tolist(), sure.tolist(), strict=True)
        return [Outcome.edited(self._trace(caption, tags, likely)) for caption, tags, likely in said]

    def _trace(self, caption: Sequence[str], tags: Sequence[int], likely: Sequence[float]) -> Trace:
        return realise([self.tag(number) for number in tags[: len(caption) + 1]], caption, likely)

    def tag(self, number: int) -> LaserTag:
        """A tag in words."""
        phrase = self.config.phrases[number // 2 - 1] if number > 1 else ()
        return LaserTag(Op.DELETE if number % 2 else Op.KEEP, tuple(self.vocabulary.words[word] for word in phrase))


def realise(tags: Sequence[LaserTag], caption: Sequence[str], likely: Sequence[float | None]) -> Trace:
    """Carry out tags, one for each word and one for the end; `likely` says how sure the tagger was of each."""
    operations: list[Operation] = []
    for place, (tag, sure) in enumerate(zip(tags, likely, strict=False)):
        operations += [Operation(Op.ADD, word, sure) for word in tag.phrase]
        if place < len(caption):
            operations.append(Operation(tag.op, caption[place], sure))
    script = Script(operations)
    return Trace(tuple(caption), (script,) if script.changes else ())
