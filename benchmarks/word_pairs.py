"""Build the table of word pairs behind the broken rate from COCO train2014 captions, and show the rate on EE files.

python benchmarks/word_pairs.py captions_train2014.json --save src/capedit/metrics/tables/word_pairs.json
python benchmarks/word_pairs.py captions_train2014.json COCO_EE_val.json Flickr30K_EE_val.json
"""

import argparse
import json
from pathlib import Path

from capedit.edits.tokens import tokenize
from capedit.metrics.fluency import WordPairs, is_broken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path, help="captions_train2014.json")
    parser.add_argument("instances", type=Path, nargs="*", help="files of EE instances to measure")
    parser.add_argument("--save", type=Path, help="where to write the table")
    args = parser.parse_args()
    annotations = json.loads(args.captions.read_text(encoding="utf-8"))["annotations"]
    pairs = WordPairs.from_captions((tokenize(each["caption"]) for each in annotations), "COCO train2014 captions")
    print(f"{len(pairs.probability)} pairs of function words in {pairs.captions} captions")
    if args.save:
        pairs.save(args.save)
    for path in args.instances:
        instances = json.loads(path.read_text(encoding="utf-8"))
        for field in ("Ref-Cap", "GT-Cap"):
            broken = sum(is_broken(instance[field].split(), pairs) for instance in instances)
            print(f"{path.name:24} {field:8} broken {100 * broken / len(instances):.2f} % of {len(instances)}")


if __name__ == "__main__":
    main()
