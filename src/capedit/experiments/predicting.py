"""Let a model write the predictions of a file, in order to score them."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from capedit.data import Instance
from capedit.errors import CapeditError
from capedit.experiments.reproduce.guest import Guest
from capedit.models.systems import SYSTEM_FILE, describe_system, load_system
from capedit.training.examination import Question
from capedit.training.material import ImageKeys
from capedit.training.systems import Edits, SystemExamination
from capedit.vision import FeatureStore


def load_model(model: str, encoder: str) -> Edits:
    """A compared system or a model folder, if it reads the visual tokens of that encoder."""
    path = Path(model) / SYSTEM_FILE
    if not path.is_file():
        return Guest.load(model, encoder).editor()
    trained_on = describe_system(path).card.encoder
    if trained_on != encoder:
        raise CapeditError(f"{path}: reads visual tokens of {trained_on}, not of {encoder}")
    return load_system(path)


def predict(instances: Iterable[Instance], editor: Edits, store: FeatureStore) -> list[Instance]:
    """The instances whose image is in the store, with what the editor makes of them and the steps that it took."""
    keys = ImageKeys(store)
    found = [(instance, image) for instance in instances if (image := keys.find(instance.image_id)) is not None]
    if not found:
        raise CapeditError(f"{store.path}: holds no image of these instances")
    questions = [Question(image, instance.reference_tokens, ()) for instance, image in found]
    outcomes = SystemExamination(questions, store).outcomes(editor)
    return [
        replace(
            instance.revised(prediction=" ".join(outcome.tokens)),
            extra={**instance.extra, "steps": outcome.steps.to_json()},
        )
        for (instance, _), outcome in zip(found, outcomes, strict=True)
    ]
