"""Step 4: of the image's own captions, the one that a candidate is edited into."""

from collections.abc import Sequence

from capedit.data.builders.captions import Tokens
from capedit.edits import edit_distance


def nearest_caption(candidate: Tokens, captions: Sequence[Tokens]) -> int:
    """The caption at the shortest edit distance in words, DELETE and ADD; of equals the first."""
    return min(range(len(captions)), key=lambda number: edit_distance(candidate, captions[number]))
