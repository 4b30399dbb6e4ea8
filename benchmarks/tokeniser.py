"""The PTB tokeniser beside the Java original, on raw captions and on the published Flickr30K-EE file.

    python benchmarks/tokeniser.py --hypotheses esnlive_dev.csv --published Flickr30K_EE_val.json \
        --jar stanford-corenlp-3.4.1.jar --captions captions_val2014.json captions_train2014.json --limit 50000

The jar lies in the pycocoevalcap wheel. Caption files are COCO annotations, or lists of {"captions": [...]}.
"""

import argparse
import csv
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from capedit.edits import ptb, tokens


def published_pairs(hypotheses: Path) -> Iterator[tuple[str, str]]:
    """(reference, ground truth) in the order of the published file, with its bug: the last hit serves for all."""
    with hypotheses.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    contradictions = {row["pairID"]: row["hypothesis"] for row in rows if row["gold_label"] == "contradiction"}
    for row in rows:
        if row["gold_label"] == "entailment":
            prefix = row["pairID"][:-1]
            hits = [contradictions[prefix + old] for old in "cne" if prefix + old in contradictions]
            for _hit in hits:
                yield hits[-1], row["hypothesis"]


def published_misses(hypotheses: Path, published: Path) -> tuple[int, int]:
    records = json.loads(published.read_text(encoding="utf-8"))
    misses = 0
    for (reference, truth), record in zip(published_pairs(hypotheses), records, strict=True):
        misses += tokens.tokenize(reference) != record["Ref-Cap_tokens"]
        misses += tokens.tokenize(truth) != record["GT-Cap_tokens"]
    return misses, 2 * len(records)


def read_captions(path: Path) -> list[str]:
    data = json.loads(path.read_text(encoding="utf-8"))
    if isinstance(data, dict):
        captions = [annotation["caption"] for annotation in data["annotations"]]
    else:
        captions = [caption for image in data for caption in image["captions"]]
    # The original reads a line a caption; other line ends would put its output out of step.
    return [" ".join(caption.splitlines()) for caption in captions]


def java_lines(jar: Path, captions: Sequence[str]) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "captions.txt"
        source.write_text("\n".join(captions) + "\n", encoding="utf-8")
        command = ["java", "-cp", str(jar), "edu.stanford.nlp.process.PTBTokenizer", "-preserveLines", "-lowerCase"]
        run = subprocess.run([*command, str(source)], capture_output=True, check=True)
    return run.stdout.decode("utf-8").split("\n")[: len(captions)]


def full_tokens(caption: str, following: str) -> list[str]:
    """All tokens of a caption, punctuation too; the next caption decides whether "etc." ends a sentence."""
    return [token.text for token in ptb.tokenize(f"{caption}\n{following}") if token.start <= len(caption)]


def kept(line: str) -> list[str]:
    return [part for token in line.split(" ") if token not in tokens.DROPPED for part in token.split()]


def compare_with_java(jar: Path, path: Path, limit: int | None, show: int) -> None:
    captions = read_captions(path)[:limit]
    started = time.perf_counter()
    lines = java_lines(jar, captions)
    java_seconds = time.perf_counter() - started

    started = time.perf_counter()
    words = [tokens.tokenize(caption) for caption in captions]
    word_seconds = time.perf_counter() - started
    started = time.perf_counter()
    for caption in captions:
        tokens.spans(caption)
    span_seconds = time.perf_counter() - started

    following = [*captions[1:], ""]
    full = [
        index
        for index, (caption, after, line) in enumerate(zip(captions, following, lines, strict=True))
        if full_tokens(caption, after) != line.rstrip().split(" ")
        and not (line.strip() == "" and not full_tokens(caption, after))
    ]
    normal = [index for index, line in enumerate(lines) if words[index] != kept(line.rstrip())]
    # "plan b." before a caption that begins with "The" loses its dot in the original, which reads on across
    # the line end; so ask it again with a neutral line after each of these.
    apart = java_lines(jar, [line for index in normal for line in (captions[index], "-")])[::2] if normal else []
    alone = sum(words[index] != kept(line.rstrip()) for index, line in zip(normal, apart, strict=True))
    print(f"{path.name}: {len(captions)} captions")
    print(f"  misses, all tokens        {len(full)}")
    print(f"  misses, words kept        {len(normal)}, of which {alone} also where the caption stands alone")
    print(f"  captions/s, Java + start  {len(captions) / java_seconds:,.0f}")
    print(f"  captions/s, words         {len(captions) / word_seconds:,.0f}")
    print(f"  captions/s, spans         {len(captions) / span_seconds:,.0f}")
    for index in full[:show]:
        print(f"    {captions[index]!r}\n      java {lines[index]!r}")
        print(f"      ours {' '.join(full_tokens(captions[index], following[index]))!r}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hypotheses", type=Path, help="e-SNLI-VE csv")
    parser.add_argument("--published", type=Path, help="the Flickr30K-EE json made from it")
    parser.add_argument("--jar", type=Path, help="stanford-corenlp-3.4.1.jar")
    parser.add_argument("--captions", type=Path, nargs="*", default=[], help="caption files to compare on")
    parser.add_argument("--limit", type=int, help="captions of each file")
    parser.add_argument("--show", type=int, default=0, help="misses to print for each file")
    arguments = parser.parse_args()
    if arguments.hypotheses and arguments.published:
        misses, captions = published_misses(arguments.hypotheses, arguments.published)
        print(f"{arguments.published.name}: {misses} misses in {captions} captions")
    if arguments.captions and not arguments.jar:
        parser.error("--captions needs --jar")
    for path in arguments.captions:
        compare_with_java(arguments.jar, path, arguments.limit, arguments.show)


if __name__ == "__main__":
    main()
