"""One readable loop that trains every model."""

from capedit.training.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from capedit.training.config import TrainConfig
from capedit.training.loop import fit
from capedit.training.task import LossTerm, Task

__all__ = ["Checkpoint", "LossTerm", "Task", "TrainConfig", "fit", "load_checkpoint", "save_checkpoint"]
