"""The editor: load a model, edit one caption or many."""

from capedit.editing.bundle import Bundle
from capedit.editing.edit import Edit, EditOperation
from capedit.editing.editor import CaptionError, Editor, Runtime, Support
from capedit.models.decoding import Knobs

__all__ = ["Bundle", "CaptionError", "Edit", "EditOperation", "Editor", "Knobs", "Runtime", "Support"]
