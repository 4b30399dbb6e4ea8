"""What an edit is: operations, scripts, alignment, rounds, counting and rendering. Standard library only."""

from capedit.edits.alignment import Alignment, align, gold_script, longest_gap
from capedit.edits.counting import (
    FelixTag,
    LaserTag,
    Steps,
    count_felix,
    count_implicit,
    count_lasertagger,
    count_script,
    count_trace,
)
from capedit.edits.lcs import edit_distance, lcs_length
from capedit.edits.operations import EditError, Op, Operation, add, delete, keep, move_token, replace_token
from capedit.edits.realise import realise
from capedit.edits.render import render_html, render_plain, render_svg, render_terminal
from capedit.edits.rounds import Order, expand, rounds_needed
from capedit.edits.script import Composite, Script, apply
from capedit.edits.trace import Trace

__all__ = [
    "Alignment",
    "Composite",
    "EditError",
    "FelixTag",
    "LaserTag",
    "Op",
    "Operation",
    "Order",
    "Script",
    "Steps",
    "Trace",
    "add",
    "align",
    "apply",
    "count_felix",
    "count_implicit",
    "count_lasertagger",
    "count_script",
    "count_trace",
    "delete",
    "edit_distance",
    "expand",
    "gold_script",
    "keep",
    "lcs_length",
    "longest_gap",
    "move_token",
    "realise",
    "render_html",
    "render_plain",
    "render_svg",
    "render_terminal",
    "replace_token",
    "rounds_needed",
]
