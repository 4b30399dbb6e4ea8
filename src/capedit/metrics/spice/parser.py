"""Tokens -> dependency trees: the bundled network, run by ONNX Runtime on captions of one length at a time.

The network imitates the grammar SPICE was built on, oddities included (see `benchmarks/train_spice_parser.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort

from capedit.metrics.spice.decoding import best_heads
from capedit.metrics.spice.tree import Tree
from capedit.metrics.spice.vocabulary import Vocabulary

Tokens = tuple[str, ...]

BUNDLED = Path(__file__).parent

BATCH_WORDS = 2048  # words a batch: large enough to keep the processor busy, small enough for its caches
LONGEST = 60  # words; the table of all arcs grows with the square, so longer captions are refused here


class Parser:
    """Parses tokenised captions. One thread by default: whoever scores in parallel runs several processes."""

    def __init__(self, folder: Path = BUNDLED, threads: int = 1) -> None:
        self.vocabulary = Vocabulary.load(folder / "vocabulary.json")
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        self._session = ort.InferenceSession(str(folder / "parser.onnx"), options, providers=["CPUExecutionProvider"])

    def parse(self, captions: Iterable[Tokens]) -> dict[Tokens, Tree]:
        """Trees of the captions, each of 1 to LONGEST words; a caption given twice is parsed once."""
        by_length: dict[int, list[Tokens]] = {}
        for tokens in dict.fromkeys(captions):
            if not 0 < len(tokens) <= LONGEST:
                raise ValueError(f"a caption to parse has 1 to {LONGEST} words, not {len(tokens)}")
            by_length.setdefault(len(tokens), []).append(tokens)
        trees: dict[Tokens, Tree] = {}
        for length, group in sorted(by_length.items()):
            size = max(1, BATCH_WORDS // length)
            for start in range(0, len(group), size):
                trees.update(self._parse_batch(group[start : start + size]))
        return trees

    def _parse_batch(self, captions: Sequence[Tokens]) -> dict[Tokens, Tree]:
        ids = np.stack([self.vocabulary.encode(tokens) for tokens in captions])
        tags, scores, relations = self._session.run(("tags", "scores", "relations"), {"ids": ids})
        heads = best_heads(scores)
        chosen = np.take_along_axis(relations, heads[..., None], 2)[..., 0]
        tag_names, relation_names = self.vocabulary.tags, self.vocabulary.relations
        return {
            tokens: Tree(
                tokens,
                tuple(tag_names[t] for t in row_tags),
                tuple(row_heads),
                tuple(relation_names[r] for r in row_relations),
            )
            for tokens, row_tags, row_heads, row_relations in zip(
                captions, tags.tolist(), heads.tolist(), chosen.tolist(), strict=True
            )
        }
