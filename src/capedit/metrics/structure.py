"""Structure kept: the share of the words of a caption that an editor left standing, in their order."""

from collections.abc import Sequence

from capedit.edits import lcs_length


def structure_kept(source: Sequence[str], output: Sequence[str]) -> float:
    """Words of `source` that `output` has in the same order, as a share; 1 where there was nothing to keep."""
    return lcs_length(source, output) / len(source) if source else 1.0
