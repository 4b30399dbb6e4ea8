"""The conditions of a score. Scores without them cannot be compared."""

from dataclasses import dataclass
from importlib.metadata import version
from typing import Literal

Duplicates = Literal["kept", "dropped"]


@dataclass(frozen=True, slots=True)
class Signature:
    """Everything that changes the numbers, and can change between two runs."""

    tokeniser: str
    """`given` where the captions came as tokens."""
    references: str
    """References per instance: "1", "5", or "1-7" where it varies."""
    instances: int
    document_frequencies: str
    """Where they are from, and the number of documents."""
    duplicates: Duplicates
    spice: str
    """Which SPICE; `none` where it was left out."""
    version: str = version("capedit")

    def __str__(self) -> str:
        return (
            f"tok:{self.tokeniser}|refs:{self.references}|n:{self.instances}|df:{self.document_frequencies}"
            f"|dup:{self.duplicates}|spice:{self.spice}|version:capedit-{self.version}"
        )
