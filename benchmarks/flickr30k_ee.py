"""Does the builder reproduce the published Flickr30K-EE file?

python benchmarks/flickr30k_ee.py ESNLIVE.csv PUBLISHED.json
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from capedit.data import write_dataset
from capedit.data.builders import Mode, flickr30k_ee, read_esnli


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("esnlive", type=Path)
    parser.add_argument("published", type=Path)
    arguments = parser.parse_args()
    published = json.loads(arguments.published.read_text(encoding="utf-8"))

    with tempfile.TemporaryDirectory() as folder:
        rebuilt_path = Path(folder, "rebuilt.json")
        started = time.perf_counter()
        write_dataset(flickr30k_ee(read_esnli(arguments.esnlive), Mode.AS_RELEASED), rebuilt_path)
        seconds = time.perf_counter() - started
        rebuilt = json.loads(rebuilt_path.read_text(encoding="utf-8"))
        same_bytes = rebuilt_path.read_bytes() == arguments.published.read_bytes()
    fixed = list(flickr30k_ee(read_esnli(arguments.esnlive), Mode.FIXED))
    differing = sum(one != other for one, other in zip(rebuilt, published, strict=False))
    mended = sum(one.reference != record["Ref-Cap"] for one, record in zip(fixed, published, strict=False))
    print(f"published records       {len(published)}")
    print(f"as-released records     {len(rebuilt)}, {differing} differ, same bytes: {same_bytes} ({seconds:.1f} s)")
    print(f"fixed records           {len(fixed)}, {mended} with a Ref that the published file has overwritten")


if __name__ == "__main__":
    main()
