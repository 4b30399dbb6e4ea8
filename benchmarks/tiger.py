"""All marks of a trained editor: on COCO-EE val, on Flickr30K-EE val, with shuffled images, and over its knobs.

    python benchmarks/tiger.py MODEL --features STORE --coco COCO_EE_val.json --flickr Flickr30K_EE_val.json

MODEL is a model folder (ONNX) or a run's weights.safetensors with vocabulary.json beside it (torch).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path

import numpy as np

from capedit.editing import Bundle, Knobs, Runtime
from capedit.editing.editor import load_modules
from capedit.models.decoding import Calibration
from capedit.models.runtime import Modules
from capedit.models.vocabulary import Vocabulary
from capedit.training.calibration import calibrate, plot_reliability
from capedit.training.examination import Examination, Question
from capedit.training.material import ImageKeys, read_questions
from capedit.vision import FeatureStore

SHOWN = (
    *"BLEU-1 BLEU-4 ROUGE-L CIDEr-D D A ES GPS broken clashing AUC".split(),
    *("steps on right", "right unchanged", "wrong unchanged"),
)


def load(path: Path, threads: int) -> tuple[Modules, Knobs, Calibration]:
    if path.is_dir():
        bundle = Bundle.load(path)
        return load_modules(bundle, Runtime.ONNX, threads), bundle.knobs, bundle.calibration
    import torch

    from capedit.models.tiger_files import load_tiger
    from capedit.models.tiger_torch import TorchModules

    torch.set_num_threads(threads)
    vocabulary = Vocabulary.load(path.with_name("vocabulary.json"))
    return TorchModules(load_tiger(path), vocabulary), Knobs(), Calibration()


def show(name: str, marks: dict[str, float]) -> None:
    print(f"{name:44s}", *(f"{mark} {marks[mark]:.2f}" for mark in SHOWN if mark in marks), sep="  ", flush=True)


def reference_row(questions: list[Question], store: FeatureStore) -> dict[str, float]:
    from capedit.edits import Trace
    from capedit.training.examination import Answers

    untouched = Answers([Trace(question.reference, ()) for question in questions], np.zeros(len(questions)))
    return Examination(questions, store, Knobs()).scores(untouched)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--coco", type=Path, required=True)
    parser.add_argument("--flickr", type=Path)
    parser.add_argument("--every", type=int, default=1, help="ask only every n-th question")
    parser.add_argument("--knobs", type=json.loads, default={}, help="JSON, over the model's own")
    parser.add_argument("--sweep", type=json.loads, help='JSON such as {"keep_bias": [0, 0.5, 1]}')
    parser.add_argument("--calibrate", type=Path, help="write the reliability plot here, and print temperatures")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--outputs", type=Path, help="write edits as JSON lines")
    args = parser.parse_args()

    modules, knobs, calibration = load(args.model, args.threads)
    knobs = replace(knobs, **args.knobs)
    store = FeatureStore(args.features)
    keys = ImageKeys(store)
    questions = read_questions([args.coco], keys)[:: args.every]
    exam = Examination(questions, store, knobs)
    print(f"{len(questions)} questions; {knobs}")
    show("Ref-Caps", reference_row(questions, store))
    if args.calibrate:
        found = calibrate(modules, exam)
        calibration = found.calibration
        plot_reliability(found, args.calibrate)
        print("temperatures", asdict(calibration))
        print("ECE %", {name: round(100 * one.error, 2) for name, one in found.before.items()}, "->")
        print("ECE %", {name: round(100 * one.error, 2) for name, one in found.after.items()})
    wrong, right = [q.reference for q in questions], [q.target for q in questions]
    if args.sweep:
        for values in product(*args.sweep.values()):
            changed = replace(knobs, **dict(zip(args.sweep, values, strict=True)))
            both = [exam.answers(modules, asked, knobs=changed, calibration=calibration) for asked in (wrong, right)]
            show(" ".join(f"{k}={v}" for k, v in zip(args.sweep, values, strict=True)), exam.marks(*both))
        return
    answers = exam.answers(modules, wrong, calibration=calibration)
    show("true image", exam.marks(answers, exam.answers(modules, right, calibration=calibration)))
    if args.outputs:
        with args.outputs.open("w") as file:
            for question, output, fits in zip(questions, answers.outputs, answers.fits, strict=True):
                record = {
                    "image": question.image,
                    "reference": " ".join(question.reference),
                    "output": " ".join(output),
                    "target": " ".join(question.target),
                    "fits": round(float(fits), 3),
                }
                file.write(json.dumps(record) + "\n")
    images = [q.image for q in questions]
    shuffled = np.random.default_rng(0).permutation(len(images))
    swapped = exam.answers(modules, wrong, calibration=calibration, images=[images[at] for at in shuffled])
    show("shuffled images", exam.scores(swapped))
    if keys.withheld:
        blind = exam.answers(modules, wrong, calibration=calibration, images=[keys.withheld] * len(images))
        show("no image", exam.scores(blind))
    if args.flickr:
        for name, withheld in (("Flickr30K-EE, with image", False), ("Flickr30K-EE, all, others withheld", True)):
            others = read_questions([args.flickr], keys, withheld=withheld)
            flickr = Examination(others, store, knobs)
            show(f"{name}: {len(others)} Ref-Caps", reference_row(others, store))
            show(name, flickr.scores(flickr.answers(modules, [q.reference for q in others], calibration=calibration)))


if __name__ == "__main__":
    main()
