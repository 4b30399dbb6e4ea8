from dataclasses import replace

import pytest
import torch
from torch import Tensor

from capedit.models.concepts import ConceptConfig
from capedit.models.grounding import GroundingConfig
from capedit.models.tiger import Module, Tiger, TigerConfig
from capedit.models.vilbert import StreamConfig, TextInput, Vilbert, VilbertConfig, VisionInput

SMALL = VilbertConfig(
    vocabulary=40,
    text=StreamConfig(width=16, layers=4, heads=2, inner=32),
    vision=StreamConfig(width=12, layers=3, heads=2, inner=24),
    co_width=8,
    co_heads=2,
    feature_width=10,
    positions=20,
)
CONFIGS = {
    "published": TigerConfig(SMALL),
    "shared": TigerConfig(SMALL, shared=True),
    "concepts": TigerConfig(SMALL, shared=True, concepts=ConceptConfig(words=30, shown=4), matching=True),
    "grounded": TigerConfig(
        SMALL, shared=True, matching=True, grounding=GroundingConfig(40, 10, 16, heads=2, inner=16)
    ),
    "one way": TigerConfig(replace(SMALL, vision_reads_text=False), concepts=ConceptConfig(words=30, shown=4)),
}


def make(config: TigerConfig) -> Tiger:
    torch.manual_seed(0)
    return Tiger(config).eval()


def text_of(*captions: list[int], padding: int = 0) -> TextInput:
    length = max(map(len, captions)) + padding
    ids = torch.tensor([caption + [0] * (length - len(caption)) for caption in captions])
    mask = torch.tensor([[True] * len(caption) + [False] * (length - len(caption)) for caption in captions])
    return TextInput(ids, mask)


def images(count: int, tokens: int = 6) -> VisionInput:
    generator = torch.Generator().manual_seed(1)
    return VisionInput(
        torch.randn(count, tokens, 10, generator=generator), torch.rand(count, tokens, 5, generator=generator)
    )


def outputs(model: Tiger, text: TextInput, vision: VisionInput, masks: Tensor) -> list[Tensor]:
    with torch.no_grad():
        sight = model.see(vision)
        tags, match = model.delete(text, sight)
        found = [tags, model.add(text, sight), model.insert(text, sight, *masks.nonzero().T)]
    return found if match is None else [*found, match]


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_padding_changes_nothing(config: TigerConfig) -> None:
    model = make(config)
    captions, vision = [[1, 5, 9, 2], [1, 7, 2]], images(2)
    batched = outputs(model, text_of(*captions, padding=3), vision, text_of(*captions, padding=3).ids == 5)
    for row, caption in enumerate(captions):
        single = text_of(caption)
        one = outputs(
            model, single, VisionInput(vision.features[row : row + 1], vision.locations[row : row + 1]), single.ids == 5
        )
        for whole, part in zip(batched[:2], one[:2], strict=True):
            torch.testing.assert_close(whole[row, : len(caption)], part[0])
        if row == 0:
            torch.testing.assert_close(batched[2], one[2])


def test_masked_visual_tokens_change_nothing() -> None:
    model, text, vision = make(CONFIGS["concepts"]), text_of([1, 5, 2]), images(1)
    more = VisionInput(
        torch.cat([vision.features, torch.full((1, 2, 10), 9.0)], 1),
        torch.cat([vision.locations, torch.zeros(1, 2, 5)], 1),
        torch.tensor([[True] * 6 + [False] * 2]),
    )
    for one, other in zip(
        outputs(model, text, vision, text.ids == 5), outputs(model, text, more, text.ids == 5), strict=True
    ):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS.keys())
def test_every_parameter_is_there_for_a_reason(config: TigerConfig) -> None:
    model = make(config).train()
    text, vision = text_of([1, 5, 9, 2], [1, 7, 2]), images(2)
    sight = model.see(vision)
    tags, match = model.delete(text, sight)
    total = tags.square().sum() + model.add(text, sight).square().sum()
    total = total + model.insert(text, sight, *(text.ids == 5).nonzero().T).square().sum()
    (total if match is None else total + match.square().sum()).backward()
    idle = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert not idle


def test_captions_share_what_was_seen_of_an_image() -> None:
    model, vision = make(CONFIGS["one way"]), images(2)
    sight = model.see(vision).rows(torch.tensor([1, 0, 1]))
    text = text_of([1, 5, 2], [1, 7, 2], [1, 9, 2])
    again = VisionInput(vision.features[[1, 0, 1]], vision.locations[[1, 0, 1]])
    torch.testing.assert_close(model.add(text, sight), model.add(text, model.see(again)))


def test_the_image_matters() -> None:
    model, text = make(CONFIGS["published"]), text_of([1, 5, 2])
    one, other = images(2).features[:1], images(2).features[1:]
    locations = images(1).locations
    first = model.add(text, model.see(VisionInput(one, locations)))
    assert not torch.allclose(first, model.add(text, model.see(VisionInput(other, locations))))


def test_concepts_favour_the_words_that_the_image_speaks_for() -> None:
    model, text, vision = make(CONFIGS["concepts"]), text_of([1, 5, 2]), images(1)
    place = (text.ids == 5).nonzero().T
    before = model.insert(text, model.see(vision), *place)
    with torch.no_grad():
        model.concepts.score.bias[17] += 50
    after = model.insert(text, model.see(vision), *place)
    assert after[0, 17] - before[0, 17] > 1


def test_modules_share_an_encoder_only_when_told_to() -> None:
    separate, shared = make(CONFIGS["published"]), make(CONFIGS["shared"])
    assert separate.encoder(Module.ADD) is not separate.encoder(Module.DELETE)
    assert shared.encoder(Module.ADD) is shared.encoder(Module.DELETE)
    text, vision = text_of([1, 5, 2]), images(1)
    with torch.no_grad():  # a shared encoder still knows which module it works for
        states = [shared._read(module, text, shared.see(vision), None) for module in Module]
    assert not torch.allclose(states[0], states[1])


@pytest.mark.parametrize(("config", "shown"), [("published", 0), ("one way", 4)])
def test_gaze_is_a_share_of_the_image_for_each_word(config: str, shown: int) -> None:
    model = make(CONFIGS[config])
    gaze = model.gaze(text_of([1, 5, 2]), model.see(images(1)))
    assert gaze.shape == (1, 3, 6 + shown)
    torch.testing.assert_close(gaze.sum(-1), torch.ones(1, 3))


def test_more_co_attention_than_text_layers_is_refused() -> None:
    with pytest.raises(ValueError, match="co-attention layers need as many text layers"):
        Vilbert(replace(SMALL, text=StreamConfig(width=16, layers=2, heads=2, inner=32)))
