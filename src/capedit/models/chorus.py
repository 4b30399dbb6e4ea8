"""Several TIgers that speak with one voice.

Networks that were trained apart make different mistakes, and the mean of their opinions makes fewer. They see with the
same eyes: concept head and grounding, which TIger reads but does not train, are one and the same for all voices, so
that a further voice costs its encoders and heads alone. Not in the paper.
"""

from collections.abc import Iterator, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from capedit.errors import CapeditError
from capedit.models.grounding import Evidence
from capedit.models.tiger import Tiger, TigerConfig, TigerSight
from capedit.models.vilbert import TextInput, VisionInput

EYES = ("concepts", "concept_words", "grounding")
"""Parts of a TIger that all voices share."""


class Chorus(nn.Module):
    """One or more TIgers behind the face of one; every logit is the mean of theirs."""

    def __init__(self, voices: Sequence[Tiger]) -> None:
        """From now on, all of them see with the eyes of the first."""
        super().__init__()
        first, *others = voices
        for voice in others:
            _share_eyes(first, voice)
        self.voices = cast(Sequence[Tiger], nn.ModuleList(voices))

    @classmethod
    def of(cls, model: "Tiger | Chorus") -> "Chorus":
        """A single TIger is a chorus of one."""
        return cls([model]) if isinstance(model, Tiger) else model

    @property
    def first(self) -> Tiger:
        return self.voices[0]

    @property
    def config(self) -> TigerConfig:
        """The shape of each voice."""
        return self.first.config

    def see(self, vision: VisionInput) -> TigerSight:
        """All of the images that no caption changes: the views of one voice after those of another."""
        concepts, cells = self.first.look(vision)
        sights = [voice.views(vision, concepts) for voice in self.voices]
        return TigerSight(torch.cat([sight.view for sight in sights], 1), sights[0].mask, concepts, cells)

    def delete(self, text: TextInput, sight: TigerSight) -> tuple[Tensor, Tensor | None]:
        """Logits of KEEP and DELETE (B, T, 2), and of caption and image belonging together (B,)."""
        tags, matches = zip(*(voice.delete(text, part) for voice, part in self.parts(sight)), strict=True)
        return mean(tags), None if matches[0] is None else mean(matches)

    def add(self, text: TextInput, sight: TigerSight) -> Tensor:
        """Logits of KEEP and ADD-after (B, T, 2)."""
        return mean([voice.add(text, part) for voice, part in self.parts(sight)])

    def insert(self, text: TextInput, sight: TigerSight, rows: Tensor, columns: Tensor) -> Tensor:
        """Logits of words (N, V) for the N places (rows, columns) of the batch."""
        return mean([voice.insert(text, part, rows, columns) for voice, part in self.parts(sight)])

    def ground(self, text: TextInput, sight: TigerSight) -> Evidence | None:
        """How the images support the captions."""
        return self.first.ground(text, sight)

    def parts(self, sight: TigerSight) -> Iterator[tuple[Tiger, TigerSight]]:
        """Each voice, and the images as it sees them."""
        for voice, views in zip(self.voices, sight.views.chunk(len(self.voices), 1), strict=True):
            yield voice, sight._replace(views=views)


def mean(opinions: Sequence[Tensor]) -> Tensor:
    """Of what several voices say."""
    first, *others = opinions
    return sum(others, first) / len(opinions) if others else first


def _share_eyes(first: Tiger, other: Tiger) -> None:
    """Give a voice the eyes of another, if they are alike."""
    if first.config != other.config:
        raise CapeditError("voices of a chorus must have one shape")
    for name in EYES:
        mine, its = getattr(first, name, None), getattr(other, name, None)
        if not isinstance(mine, nn.Module) or not isinstance(its, nn.Module):
            continue
        for (part, one), another in zip(mine.state_dict().items(), its.state_dict().values(), strict=True):
            if not one.is_meta and not torch.equal(one, another):
                raise CapeditError(f"voices of a chorus must see with the same eyes; {name}.{part} differs")
        setattr(other, name, mine)
