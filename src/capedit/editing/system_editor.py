"""The compared systems behind the face of the editor: a picture and a caption in, an edit out. Needs torch."""

from hashlib import file_digest
from pathlib import Path

from capedit.editing.edit import Edit
from capedit.editing.editor import read_caption
from capedit.edits import Op, Operation, Script, Trace
from capedit.errors import CapeditError
from capedit.models.device import tensor
from capedit.models.system import Outcome, System
from capedit.models.systems import SYSTEM_FILE, describe_system, load_system
from capedit.models.vilbert import VisionInput
from capedit.vision import ImageSource, load_encoder
from capedit.vision.encoder import Encoder

LONGEST = 40
"""Words of a caption that is edited."""


class SystemEditor:
    """Edits captions one by one, to look at what a system does."""

    def __init__(self, system: System, encoder: Encoder, label: str) -> None:
        self._system, self._encoder, self.model = system, encoder, label

    @classmethod
    def load(cls, folder: str | Path) -> "SystemEditor":
        """The system that a training has left in a folder."""
        path = Path(folder) / SYSTEM_FILE
        described, encoder = describe_system(path), load_encoder("default")
        if described.card.encoder != encoder.hash:
            raise CapeditError(
                f"{path}: trained on the visual tokens of encoder {described.card.encoder}, not of {encoder.hash} "
                f"({encoder.name})"
            )
        with path.open("rb") as file:
            label = f"{described.name}@{file_digest(file, 'sha256').hexdigest()[:12]}"
        return cls(load_system(path), encoder, label)

    def edit(self, image: ImageSource, caption: str) -> Edit:
        words = read_caption(caption, LONGEST)
        tokens = self._encoder.encode([image])[0]
        vision = VisionInput(tensor(tokens.features)[None], tensor(tokens.boxes)[None])
        (outcome,) = self._system.edit(vision, [words])
        return Edit(caption, trace_of(outcome, words), None, self.model)


def trace_of(outcome: Outcome, source: list[str]) -> Trace:
    """How it went; an implicit system deletes everything and adds everything, which is also how its steps count."""
    if outcome.trace is not None:
        return outcome.trace
    gone = [Operation(Op.DELETE, word) for word in source]
    return Trace(tuple(source), (Script([*gone, *(Operation(Op.ADD, word) for word in outcome.tokens)]),))
