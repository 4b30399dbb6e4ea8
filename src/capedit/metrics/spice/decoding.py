"""The best tree under arc scores: SPICE's grammar gives projective trees, so Eisner's algorithm finds it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.float32]


def best_heads(scores: Scores) -> npt.NDArray[np.int64]:
    """Heads of the best projective tree with one root, for captions of one length at once.

    `scores` is (B, n, n + 1): for each word (row) the score of each head (column; 0 is the root, j is word j).
    Returns (B, n) heads in the same numbering. Time O(n^2) numpy calls over the batch.
    """
    batch, n, _ = scores.shape
    # arc[b, h, d], words 0..n-1
    arc = np.swapaxes(scores[:, :, 1:], 1, 2)
    # Complete spans: right[i, j] has its head at i, left[i, j] at j; open spans end in an arc i -> j or j -> i.
    # The batch is the last axis: each step below is one numpy call over all captions.
    right = np.zeros((n, n, batch), dtype=np.float32)
    left = np.zeros((n, n, batch), dtype=np.float32)
    open_right = np.zeros((n, n, batch), dtype=np.float32)
    open_left = np.zeros((n, n, batch), dtype=np.float32)
    split_open = np.zeros((n, n, batch), dtype=np.int64)
    split_right = np.zeros((n, n, batch), dtype=np.int64)
    split_left = np.zeros((n, n, batch), dtype=np.int64)
    for width in range(1, n):
        for i in range(n - width):
            j = i + width
            joined = right[i, i:j] + left[i + 1 : j + 1, j]  # (width, B)
            where = joined.argmax(0)
            best = np.take_along_axis(joined, where[None], 0)[0]
            split_open[i, j] = where + i
            open_right[i, j] = best + arc[:, i, j]
            open_left[i, j] = best + arc[:, j, i]
            whole = open_right[i, i + 1 : j + 1] + right[i + 1 : j + 1, j]
            where = whole.argmax(0)
            right[i, j] = np.take_along_axis(whole, where[None], 0)[0]
            split_right[i, j] = where + i + 1
            whole = left[i, i:j] + open_left[i:j, j]
            where = whole.argmax(0)
            left[i, j] = np.take_along_axis(whole, where[None], 0)[0]
            split_left[i, j] = where + i
    # One root r: everything before it hangs below it on the left, everything after on the right.
    roots = (left[0] + right[:, n - 1] + scores[:, :, 0].T).argmax(0)  # (B,)
    heads = np.zeros((batch, n), dtype=np.int64)
    for b in range(batch):
        root = int(roots[b])
        todo = [(0, root, "left"), (root, n - 1, "right")]
        while todo:
            i, j, kind = todo.pop()
            if i == j:
                continue
            if kind == "right":
                k = int(split_right[i, j, b])
                todo += [(i, k, "open right"), (k, j, "right")]
            elif kind == "left":
                k = int(split_left[i, j, b])
                todo += [(i, k, "left"), (k, j, "open left")]
            else:
                heads[b, j if kind == "open right" else i] = (i if kind == "open right" else j) + 1
                k = int(split_open[i, j, b])
                todo += [(i, k, "right"), (k + 1, j, "left")]
    return heads
