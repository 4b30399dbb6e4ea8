"""How fast gold alignments are: caption pairs a second, one core, beside rapidfuzz (C++) where that is installed.

usage: alignment.py [EE_JSON] [--pairs N]

Without a file, pairs of ten words are drawn with the word frequencies of a caption (Zipf), so that it runs anywhere.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from capedit.edits import Alignment, align, edit_distance, gold_script

Pair = tuple[list[str], list[str]]


def made_pairs(count: int) -> list[Pair]:
    rng = random.Random(0)
    words = [f"w{rank}" for rank in range(3000)]
    weights = [1 / (rank + 2) for rank in range(3000)]
    return [(rng.choices(words, weights, k=10), rng.choices(words, weights, k=10)) for _ in range(count)]


def read_pairs(path: Path, count: int) -> list[Pair]:
    pairs = [(r["Ref-Cap_tokens"], r["GT-Cap_tokens"]) for r in json.loads(path.read_text())]
    return (pairs * (count // len(pairs) + 1))[:count]


def rate(work: Callable[[Sequence[str], Sequence[str]], object], pairs: list[Pair]) -> float:
    start = time.perf_counter()
    for source, target in pairs:
        work(source, target)
    return len(pairs) / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--pairs", type=int, default=50_000)
    args = parser.parse_args()
    pairs = read_pairs(args.file, args.pairs) if args.file else made_pairs(args.pairs)

    jobs: dict[str, Callable[[Sequence[str], Sequence[str]], object]] = {
        "edit distance": edit_distance,
        **{f"align, {name}": lambda s, t, a=name: align(s, t, a) for name in Alignment},  # type: ignore[misc]
        "gold script, reference": lambda s, t: gold_script(s, t, Alignment.REFERENCE),
    }
    try:
        from rapidfuzz.distance import Indel
    except ImportError:
        print("rapidfuzz is not installed: its row is left out")
    else:
        jobs["rapidfuzz edit distance"] = Indel.distance
        jobs["rapidfuzz opcodes"] = Indel.opcodes
    print(f"{len(pairs)} pairs, one core\n{'':24}{'pairs/s':>10}{'1 M pairs':>12}")
    for name, work in jobs.items():
        per_second = rate(work, pairs)
        print(f"{name:24}{per_second:10,.0f}{1e6 / per_second:10.0f} s")


if __name__ == "__main__":
    main()
