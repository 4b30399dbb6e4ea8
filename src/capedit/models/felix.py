"""V-Felix: tag all words at once, then fill all holes at once.

The tagger says of each word whether it stays and how many words are missing behind it. So many masks are put there, and
the inserter, a second two-stream encoder, says which words they are. As in Felix, deleted words stay in the inserter's
sight. Departure: an embedding marks them, where Felix puts brackets around them. As in the paper, nothing is reordered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from capedit.edits import Alignment, FelixTag, Op, Operation, Script, Trace, align
from capedit.models.system import UNASKED, Exercise, Kind, Outcome, System, as_text, edit_what_fits, padded
from capedit.models.tiger import TagHead, WordHead
from capedit.models.vilbert import TextInput, Vilbert, VilbertConfig, VisionInput
from capedit.models.vocabulary import END, MASK, PAD, SPECIALS, START, Vocabulary


@dataclass(frozen=True)
class FelixConfig:
    """The shape of both encoders, and how much one tag can insert."""

    encoder: VilbertConfig
    most: int = 20
    """Most words inserted behind one word; the published data have no longer gap."""


class Template(NamedTuple):
    """A caption with holes: framed word ids with masks, which of them were deleted, and where the masks stand."""

    tokens: list[int]
    deleted: list[int]
    holes: list[int]


def gold_tags(source: Sequence[int], target: Sequence[int]) -> tuple[list[FelixTag], list[list[int]]]:
    """A tag for the start and one for each word, and the words missing behind each.

    Words are inserted behind the last word of their gap, deleted or not.
    """
    tags, missing = [FelixTag(Op.KEEP)], [list[int]()]
    start = 0
    for kept, found in [*align(source, target, Alignment.REFERENCE), (len(source), len(target))]:
        deletions = kept + 1 - len(tags)
        tags += [FelixTag(Op.DELETE)] * deletions
        missing += [[] for _ in range(deletions)]
        tags[-1], missing[-1] = tags[-1]._replace(insertions=found - start), list(target[start:found])
        start = found + 1
        if kept < len(source):
            tags.append(FelixTag(Op.KEEP))
            missing.append([])
    return tags, missing


def template(source: Sequence[int], tags: Sequence[FelixTag]) -> Template:
    """The caption with masks where the tags want words."""
    tokens, deleted, holes = list[int](), list[int](), list[int]()
    for token, tag in zip([START, *source], tags, strict=True):
        tokens.append(token)
        deleted.append(int(tag.op is Op.DELETE))
        holes += range(len(tokens), len(tokens) + tag.insertions)
        tokens += [MASK] * tag.insertions
        deleted += [0] * tag.insertions
    return Template([*tokens, END], [*deleted, 0], holes)


class Felix(System):
    """The explicit editor. Label 2n keeps and label 2n + 1 deletes, with n words inserted behind."""

    kind = Kind.EXPLICIT
    config: FelixConfig

    def __init__(self, config: FelixConfig, vocabulary: Vocabulary) -> None:
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        width = config.encoder.text.width
        self.tagger = Vilbert(config.encoder)
        self.tags = TagHead(width, labels=2 * (config.most + 1))
        self.inserter = Vilbert(config.encoder)
        self.deleted = nn.Parameter(torch.randn(width) * 0.02)
        self.words = WordHead(width, config.encoder.vocabulary)

    def fill(self, text: TextInput, deleted: Tensor, vision: VisionInput, holes: Tensor) -> Tensor:
        """Logits of words (N, V) for the N holes that are true in `holes` (B, T)."""
        known = deleted.unsqueeze(-1) * self.deleted
        x = self.inserter.read(text, self.inserter.see(vision), known)
        logits: Tensor = self.words(x[holes], self.inserter.embed_text.word.weight)
        return logits

    # --- learning ---

    def exercise(self, source: Sequence[int], target: Sequence[int]) -> Exercise | None:
        tags, missing = gold_tags(source, target)
        holed = template(source, tags)
        if max(map(len, missing)) > self.config.most or len(holed.tokens) > self.config.encoder.positions:
            return None
        words = [UNASKED] * len(holed.tokens)
        for place, word in zip(holed.holes, [word for gap in missing for word in gap], strict=True):
            words[place] = word
        labels = [2 * tag.insertions + int(tag.op is Op.DELETE) for tag in tags]
        shown = {"reference": [START, *source, END], "template": holed.tokens, "deleted": holed.deleted}
        return Exercise(shown, {"tags": [*labels, UNASKED], "words": words})

    def answers(
        self, vision: VisionInput, shown: Mapping[str, Tensor], asked: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        states = self.tagger(as_text(shown["reference"]), vision)
        words = self.fill(as_text(shown["template"]), shown["deleted"], vision, asked["words"])
        return {"tags": self.tags(states[asked["tags"]]), "words": words}

    # --- editing ---

    def edit(self, vision: VisionInput, captions: Sequence[Sequence[str]]) -> list[Outcome]:
        return edit_what_fits(vision, captions, self.config.encoder.positions - 2, self._edit)

    @torch.no_grad()
    def _edit(self, vision: VisionInput, captions: Sequence[Sequence[str]]) -> list[Outcome]:
        text = self.read(captions)
        logits = self.tags(self.tagger(text, vision))
        logits[:, 0, 1::2] = -torch.inf  # the start stays
        likely, labels = logits.softmax(-1).max(-1)
        tags = [
            self._within(row[: len(caption) + 1], len(caption))
            for row, caption in zip(labels.tolist(), captions, strict=True)
        ]
        holed = [template(self.vocabulary.encode(caption), row) for caption, row in zip(captions, tags, strict=True)]
        found = self._found(holed, vision)
        made = zip(captions, tags, likely.tolist(), found, strict=True)
        return [Outcome.edited(realise(row, caption, sure, words)) for caption, row, sure, words in made]

    def _within(self, labels: Sequence[int], words: int) -> list[FelixTag]:
        """Tags in words; what no longer fits into the encoder is not inserted."""
        room = self.config.encoder.positions - words - 2
        tags = []
        for label in labels:
            insertions = min(label // 2, room)
            room -= insertions
            tags.append(FelixTag(Op.DELETE if label % 2 else Op.KEEP, insertions))
        return tags

    def _found(self, holed: Sequence[Template], vision: VisionInput) -> list[list[tuple[str, float]]]:
        """For each template the likeliest word of each hole, and its probability."""
        ids, deleted = padded([row.tokens for row in holed], PAD), padded([row.deleted for row in holed], 0)
        holes = torch.zeros_like(ids, dtype=torch.bool)
        for row, made in zip(holes, holed, strict=True):
            row[made.holes] = True
        if not holes.any():
            return [[] for _ in holed]
        logits = self.fill(as_text(ids), deleted, vision, holes)
        logits[:, : len(SPECIALS)] = -torch.inf
        likely, best = logits.softmax(-1).max(-1)
        words = iter(zip([self.vocabulary.words[word] for word in best.tolist()], likely.tolist(), strict=True))
        return [[next(words) for _ in row.holes] for row in holed]


def realise(
    tags: Sequence[FelixTag], caption: Sequence[str], likely: Sequence[float], words: Sequence[tuple[str, float]]
) -> Trace:
    """Carry out tags, one for the start and one for each word, with the words that were found for the holes."""
    operations: list[Operation] = []
    rest = iter(words)
    for place, (tag, sure) in enumerate(zip(tags, likely, strict=False)):
        if place > 0:
            operations.append(Operation(tag.op, caption[place - 1], sure))
        for _ in range(tag.insertions):
            word, found = next(rest)
            operations.append(Operation(Op.ADD, word, sure * found))
    script = Script(operations)
    return Trace(tuple(caption), (script,) if script.changes else ())
