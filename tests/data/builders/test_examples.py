"""The page of examples."""

import io

from PIL import Image

from capedit.data.builders.examples import examples_page, sample
from capedit.data.images import ImageBytes
from capedit.data.instance import Instance


def instance(number: int, reference: str = "a dog <runs>", image: ImageBytes | None = None) -> Instance:
    return Instance(id=number, reference=reference, target="a cat runs", image_id=7, image=image)


def test_a_page_shows_picture_captions_and_edit() -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (400, 300), "red").save(buffer, "PNG")
    page = examples_page([instance(1, image=ImageBytes(buffer.getvalue()))], "a & b")
    assert "<title>a &amp; b</title>" in page
    assert 'src="data:image/jpeg;base64,' in page
    assert "<del>dog</del>" in page
    assert "<ins>cat</ins>" in page
    assert "<runs>" not in page
    assert "http" not in page


def test_a_missing_or_broken_picture_does_not_stop_the_page() -> None:
    page = examples_page([instance(1), instance(2, image=ImageBytes(b"no image"))], "t")
    assert page.count("no picture") == 2


def test_a_sample_is_in_order_and_without_repeats() -> None:
    instances = [instance(n) for n in range(50)]
    chosen = [one.id for one in sample(instances, 10, seed=1)]
    assert len(set(chosen)) == 10
    assert chosen == sorted(chosen, key=int)
    assert chosen == [one.id for one in sample(iter(instances), 10, seed=1)]
    assert chosen != [one.id for one in sample(instances, 10, seed=2)]
    assert sample(instances[:3], 10) == instances[:3]
