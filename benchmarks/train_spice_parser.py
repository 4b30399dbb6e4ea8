"""Train the parser behind `SPICE (capedit)` on trees of the original's grammar, and keep its averaged weights.

    python benchmarks/train_spice_parser.py TREES.txt.gz --run DIR --minutes 75 [--text captions.txt ...]
    python benchmarks/export_spice_parser.py DIR src/capedit/metrics/spice

Training goes on from DIR/checkpoint.pt if it is there. `--text` files (one tokenised
caption a line, from train images only) give the word vectors that all words start from.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from capedit.metrics.spice.decoding import best_heads
from capedit.metrics.spice.vocabulary import SHAPES, Vocabulary, normalised


@dataclass(frozen=True)
class Tree:
    words: list[str]
    tags: list[str]
    heads: list[int]  # 0 = root, else the number of a word from 1
    relations: list[str]


def read_trees(path: Path) -> list[Tree]:
    trees: list[Tree] = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            kind, *fields = line.rstrip("\n").split("\t")
            if kind == "#C":
                trees.append(Tree([], [], [], []))
                continue
            tree = trees[-1]
            if kind == "T":
                tree.words.append(fields[1])
                tree.tags.append(fields[2])
                tree.heads.append(0)
                tree.relations.append("root")
            else:
                child = int(fields[2]) - 1
                tree.heads[child] = int(fields[0])
                tree.relations[child] = fields[1]
    return trees


def projective(tree: Tree) -> bool:
    arcs = [(min(h, d), max(h, d)) for d, h in enumerate(tree.heads, 1)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


# --- word vectors from plain text ------------------------------------------------------------------------------------


def word_vectors(words: Sequence[str], lines: Iterator[str], size: int) -> npt.NDArray[np.float32]:
    """Vectors by singular value decomposition of how words and their four nearest neighbours occur together."""
    ids = {w: i for i, w in enumerate(words)}
    sentences = [[ids.get(normalised(w), 0) for w in line.split()] for line in lines]
    counts = Counter(i for s in sentences for i in s)
    common = {i: c for c, (i, _) in enumerate(counts.most_common(1200))}
    table = np.zeros((len(words), 4 * len(common)), dtype=np.float32)
    for s in sentences:
        for at, word in enumerate(s):
            for k, step in enumerate((-2, -1, 1, 2)):
                if 0 <= at + step < len(s) and s[at + step] in common:
                    table[word, k * len(common) + common[s[at + step]]] += 1
    rows, columns, total = table.sum(1, keepdims=True) + 1, table.sum(0, keepdims=True) + 1, table.sum()
    np.log(np.maximum(table * total / (rows * columns), 1.0), out=table)  # positive pointwise mutual information
    values, vectors = np.linalg.eigh(table.T @ table)
    top = vectors[:, -size:] / np.sqrt(np.sqrt(np.maximum(values[-size:], 1e-6)))
    found = table @ top
    return np.asarray(found / found.std(), dtype=np.float32)


# --- the network -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shape:
    word: int = 100
    ending: int = 24
    shape: int = 8
    hidden: int = 200
    layers: int = 3
    arc: int = 256
    relation: int = 100
    dropout: float = 0.33


def drop_same(x: Tensor, p: float) -> Tensor:
    """Dropout with one mask for all words of a caption; x is (n, B, D)."""
    return x * torch.empty_like(x[:1]).bernoulli_(1 - p) / (1 - p)


class Parser(nn.Module):
    """Word features -> BiLSTM -> tags, arc scores and relation scores (biaffine)."""

    def __init__(self, shape: Shape, vocabulary: Vocabulary, trained_words: int, vectors: Tensor | None) -> None:
        super().__init__()
        self.shape, self.trained_words = shape, trained_words
        known = len(vocabulary.words)
        # A word is a fixed vector from plain text plus a learnt one; only words frequent in the trees learn one.
        self.text_vectors: Tensor
        self.register_buffer("text_vectors", torch.zeros(known, shape.word) if vectors is None else vectors)
        self.word = nn.Embedding(trained_words, shape.word)
        nn.init.zeros_(self.word.weight)
        self.ending3 = nn.Embedding(len(vocabulary.endings3), shape.ending)
        self.ending2 = nn.Embedding(len(vocabulary.endings2), shape.ending)
        self.kind = nn.Embedding(SHAPES, shape.shape)
        size = shape.word + 2 * shape.ending + shape.shape
        self.rnn = nn.ModuleList(
            nn.LSTM(size if k == 0 else 2 * shape.hidden, shape.hidden, bidirectional=True) for k in range(shape.layers)
        )
        out = 2 * shape.hidden
        self.root = nn.Parameter(torch.zeros(out))
        self.tag = nn.Linear(out, len(vocabulary.tags))
        self.arc_head, self.arc_child = nn.Linear(out, shape.arc), nn.Linear(out, shape.arc)
        self.relation_head, self.relation_child = nn.Linear(out, shape.relation), nn.Linear(out, shape.relation)
        self.arc = nn.Parameter(torch.zeros(shape.arc + 1, shape.arc))
        self.relation = nn.Parameter(torch.zeros(len(vocabulary.relations), shape.relation + 1, shape.relation + 1))

    def forward(self, ids: Tensor, heads: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """ids (B, n, 4) -> tags (B, n, T), arcs (B, n, n + 1), relations (B, n, R) of the given heads,
        or (B, n, n + 1, R) of all heads."""
        p = self.shape.dropout
        word = ids[..., 0].T  # (n, B)
        learnt = self.word(torch.where(word < self.trained_words, word, 0))
        fixed = self.text_vectors[word]
        if self.training:
            # Words are now and then unknown: at times only unlearnt, at times wholly.
            keep = torch.rand(word.shape)
            learnt = torch.where(keep[..., None] < 0.15, self.word.weight[0], learnt)
            fixed = torch.where(keep[..., None] < 0.05, self.text_vectors[0], fixed)
        x = torch.cat(
            [fixed + learnt, self.ending3(ids[..., 1].T), self.ending2(ids[..., 2].T), self.kind(ids[..., 3].T)], -1
        )
        for layer in self.rnn:
            x = layer(drop_same(x, p) if self.training else x)[0]
        x = x.transpose(0, 1)  # (B, n, D)
        if self.training:
            x = drop_same(x.transpose(0, 1), p).transpose(0, 1)
        tags = self.tag(x)
        above = torch.cat([self.root.expand(x.shape[0], 1, -1), x], 1)  # (B, n + 1, D)

        def side(layer: nn.Linear, y: Tensor) -> Tensor:
            y = F.leaky_relu(layer(y), 0.1)
            return drop_same(y.transpose(0, 1), p).transpose(0, 1) if self.training else y

        arc_h, arc_c = side(self.arc_head, above), side(self.arc_child, x)
        arcs = F.pad(arc_c, (0, 1), value=1.0) @ self.arc @ arc_h.transpose(1, 2)
        rel_h = F.pad(side(self.relation_head, above), (0, 1), value=1.0)
        rel_c = F.pad(side(self.relation_child, x), (0, 1), value=1.0)
        if heads is not None:
            chosen = rel_h.gather(1, heads[..., None].expand(-1, -1, rel_h.shape[-1]))
            relations = torch.einsum("bnrj,bnj->bnr", torch.einsum("bni,rij->bnrj", rel_c, self.relation), chosen)
        else:
            relations = torch.einsum("bni,rij,bmj->bnmr", rel_c, self.relation, rel_h)
        return tags, arcs, relations


# --- training --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    ids: Tensor
    tags: Tensor
    heads: Tensor
    relations: Tensor


def batches(trees: Sequence[Tree], vocabulary: Vocabulary, size: int) -> list[Batch]:
    """Captions of one length together: nothing to pad, nothing to mask."""
    tag = {t: i for i, t in enumerate(vocabulary.tags)}
    relation = {r: i for i, r in enumerate(vocabulary.relations)}
    by_length: dict[int, list[Tree]] = {}
    for tree in trees:
        by_length.setdefault(len(tree.words), []).append(tree)
    found = []
    for same in by_length.values():
        for start in range(0, len(same), size):
            part = same[start : start + size]
            found.append(
                Batch(
                    torch.from_numpy(np.stack([vocabulary.encode(t.words) for t in part])),
                    torch.tensor([[tag[x] for x in t.tags] for t in part]),
                    torch.tensor([t.heads for t in part]),
                    torch.tensor([[relation[x] for x in t.relations] for t in part]),
                )
            )
    return found


@torch.no_grad()
def agreement(parser: Parser, held_out: Sequence[Batch]) -> dict[str, float]:
    """Shares of words with the right tag, head, head and relation; of captions right in the latter, and in all."""
    parser.eval()
    sums = np.zeros(5)
    words = captions = 0
    for batch in held_out:
        tags, arcs, relations = parser(batch.ids)
        heads = torch.from_numpy(best_heads(joint_scores(arcs, relations).numpy()))
        at_head = relations.gather(2, heads[..., None, None].expand(-1, -1, 1, relations.shape[-1])).squeeze(2)
        right_tag = tags.argmax(-1) == batch.tags
        right_head = heads == batch.heads
        right_both = right_head & (at_head.argmax(-1) == batch.relations)
        whole = right_both.all(1)
        sums += [float(x.sum()) for x in (right_tag, right_head, right_both, whole, whole & right_tag.all(1))]
        words += right_tag.numel()
        captions += len(whole)
    parser.train()
    shares = sums / np.array([words, words, words, captions, captions])
    return dict(zip(("tag", "head", "labelled", "tree", "tree+tags"), shares.round(4).tolist(), strict=True))


def joint_scores(arcs: Tensor, relations: Tensor) -> Tensor:
    """Log probability of each head with its best relation."""
    return arcs.log_softmax(-1) + relations.log_softmax(-1).max(-1).values


def make_vocabulary(trees: Sequence[Tree], text: Sequence[Path], least: int) -> tuple[Vocabulary, int]:
    """Words seen twice in the trees first (they learn vectors), then words seen `least` times in the text."""
    in_trees = Counter(normalised(w) for t in trees for w in t.words)
    learnt = [w for w, c in in_trees.most_common() if c > 1]
    in_text = Counter(normalised(w) for path in text for w in path.read_text(encoding="utf-8").split())
    known = set(learnt)
    others = [w for w, c in in_text.most_common() if c >= least and w not in known]
    three, two = (Counter(w[-k:] for w in in_trees.elements()) for k in (3, 2))
    vocabulary = Vocabulary(
        ["<unknown>", *learnt, *others],
        ["<unknown>", *(e for e, c in three.most_common() if c > 4)],
        ["<unknown>", *(e for e, c in two.most_common() if c > 4)],
        [t for t, _ in Counter(t for x in trees for t in x.tags).most_common()],
        [r for r, _ in Counter(r for x in trees for r in x.relations).most_common()],
    )
    return vocabulary, 1 + len(learnt)


def fit(
    trees: list[Tree], run: Path, text: list[Path], minutes: float, batch_size: int, rate: float, seed: int
) -> None:
    run.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    shuffled = random.Random(1)  # the same held-out captions in every run
    shuffled.shuffle(trees)
    held_out, trees = trees[:1500], [t for t in trees[1500:] if projective(t)]
    shape = Shape()
    vectors = None
    if not (run / "vocabulary.json").exists():
        vocabulary, trained = make_vocabulary(trees, text, least=4)
        found = word_vectors(vocabulary.words, (line for p in text for line in p.open(encoding="utf-8")), shape.word)
        vectors = torch.from_numpy(0.5 * found)
        vocabulary.save(run / "vocabulary.json")
        (run / "shape.json").write_text(json.dumps({**asdict(shape), "trained_words": trained}))
        print(f"{len(vocabulary.words)} words, {trained} learnt", flush=True)
    vocabulary = Vocabulary.load(run / "vocabulary.json")
    trained = int(json.loads((run / "shape.json").read_text())["trained_words"])
    parser = Parser(shape, vocabulary, trained, vectors)
    for parameter in (parser.arc, parser.relation):
        nn.init.normal_(parameter, std=0.01)
    average = {k: v.clone() for k, v in parser.state_dict().items()}
    optimiser = torch.optim.Adam(parser.parameters(), lr=rate, betas=(0.9, 0.95))
    step, spent, epoch = 0, 0.0, 0
    checkpoint = run / "checkpoint.pt"
    if checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        parser.load_state_dict(state["parser"])
        optimiser.load_state_dict(state["optimiser"])
        average, step, spent, epoch = state["average"], state["step"], state["spent"], state["epoch"]
    scored = Parser(shape, vocabulary, trained, None)
    dev = batches(held_out, vocabulary, 128)
    last = time.monotonic()
    order = random.Random(seed + step)
    total, count = np.zeros(3), 0
    while spent < 60 * minutes:
        order.shuffle(trees)
        mixed = batches(trees, vocabulary, batch_size)
        order.shuffle(mixed)
        for batch in mixed:
            progress = min(spent / (60 * minutes), 1.0)
            now = rate * min(1.0, (step + 1) / 300) * (0.5 + 0.5 * float(np.cos(np.pi * progress)))
            for group in optimiser.param_groups:
                group["lr"] = max(now, 1e-6)
            tags, arcs, relations = parser(batch.ids, batch.heads)
            losses = [
                F.cross_entropy(arcs.flatten(0, 1), batch.heads.flatten()),
                F.cross_entropy(relations.flatten(0, 1), batch.relations.flatten()),
                0.5 * F.cross_entropy(tags.flatten(0, 1), batch.tags.flatten()),
            ]
            optimiser.zero_grad()
            torch.stack(losses).sum().backward()
            nn.utils.clip_grad_norm_(parser.parameters(), 5.0)
            optimiser.step()
            step += 1
            keep = min(0.9995, (1 + step) / (10 + step))
            with torch.no_grad():
                for name, value in parser.state_dict().items():
                    average[name].lerp_(value, 1 - keep)
            total += [float(x.detach()) for x in losses]
            count += 1
            spent += time.monotonic() - last
            last = time.monotonic()
            if spent >= 60 * minutes:
                break
        epoch += 1
        scored.load_state_dict(average)
        shares = agreement(scored, dev)
        losses_now = (total / count).round(4).tolist()
        print(json.dumps({"epoch": epoch, "step": step, "s": round(spent), "loss": losses_now, **shares}), flush=True)
        total, count = np.zeros(3), 0
        state = {"parser": parser.state_dict(), "optimiser": optimiser.state_dict(), "average": average}
        torch.save({**state, "step": step, "spent": spent, "epoch": epoch}, run / "checkpoint.new")
        (run / "checkpoint.new").replace(checkpoint)
        spent += time.monotonic() - last
        last = time.monotonic()


def load_average(run: Path) -> tuple[Parser, Vocabulary]:
    """The averaged weights of a run, ready to parse."""
    vocabulary = Vocabulary.load(run / "vocabulary.json")
    sizes = json.loads((run / "shape.json").read_text())
    trained = sizes.pop("trained_words")
    parser = Parser(Shape(**sizes), vocabulary, trained, None)
    parser.load_state_dict(torch.load(run / "checkpoint.pt", weights_only=True)["average"])
    return parser.eval(), vocabulary


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("trees", type=Path)
    arguments.add_argument("--run", type=Path, required=True)
    arguments.add_argument("--text", type=Path, nargs="*", default=[])
    arguments.add_argument("--minutes", type=float, default=75.0)
    arguments.add_argument("--batch", type=int, default=64)
    arguments.add_argument("--rate", type=float, default=2e-3)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    fit(read_trees(given.trees), given.run, given.text, given.minutes, given.batch, given.rate, given.seed)


if __name__ == "__main__":
    main()
