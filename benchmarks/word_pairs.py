"""Build the tables behind the broken rate and the clashes from COCO train2014 captions, and show both on EE files.

python benchmarks/word_pairs.py captions_train2014.json --save src/capedit/metrics/tables
python benchmarks/word_pairs.py captions_train2014.json COCO_EE_val.json Flickr30K_EE_val.json
"""

import argparse
import json
from pathlib import Path

from capedit.edits.tokens import tokenize
from capedit.metrics.clashes import Clashes, find_clashes
from capedit.metrics.fluency import WordPairs, is_broken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path, help="captions_train2014.json")
    parser.add_argument("instances", type=Path, nargs="*", help="files of EE instances to measure")
    parser.add_argument("--save", type=Path, help="folder to write word_pairs.json and clashes.json into")
    args = parser.parse_args()
    annotations = json.loads(args.captions.read_text(encoding="utf-8"))["annotations"]
    captions = [tokenize(each["caption"]) for each in annotations]
    pairs = WordPairs.from_captions(captions, "COCO train2014 captions")
    clashes = Clashes.from_captions(captions, "COCO train2014 captions")
    print(
        f"{len(pairs.probability)} pairs of function words and {len(clashes.pairs)} clashes in {len(captions)} captions"
    )
    if args.save:
        pairs.save(args.save / "word_pairs.json")
        clashes.save(args.save / "clashes.json")
    for path in args.instances:
        instances = json.loads(path.read_text(encoding="utf-8"))
        for field in ("Ref-Cap", "GT-Cap"):
            tokens = [instance[field].split() for instance in instances]
            broken = sum(is_broken(caption, pairs) for caption in tokens) / len(tokens)
            clashing = sum(bool(find_clashes(caption, clashes)) for caption in tokens) / len(tokens)
            print(f"{path.name:24} {field:8} broken {broken:.2%}, clashing {clashing:.2%} of {len(tokens)}")


if __name__ == "__main__":
    main()
