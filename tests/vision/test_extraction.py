from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from capedit.errors import CapeditError
from capedit.vision.extraction import Account, ImageEntry, extract, find_images
from capedit.vision.grid import GridEncoder
from capedit.vision.image import ImageError, load_image
from capedit.vision.store import FeatureStore
from capedit.vision.store_writer import StoreWriter


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Twenty pictures, one of them in a sub-folder, and three files that are none."""
    folder = tmp_path / "images"
    (folder / "deep").mkdir(parents=True)
    chance = np.random.default_rng(0)
    for number in range(20):
        picture = Image.fromarray(chance.integers(0, 256, (4, 6, 3), dtype=np.uint8)).resize((60, 40))
        picture.save(folder / ("deep" if number == 19 else "") / f"{number:02d}.jpg")
    (folder / "07.jpg").write_bytes((folder / "06.jpg").read_bytes()[:300])
    (folder / "empty.png").write_bytes(b"")
    (folder / "notes.md").write_text("not an image, and not tried")
    return folder


def test_finding_images(folder: Path, tmp_path: Path) -> None:
    found = find_images([folder])
    assert [entry.image_id for entry in found] == [f"{n:02d}" for n in range(19)] + ["deep/19", "empty"]
    names = tmp_path / "list.txt"
    names.write_text("images/03.jpg\n\nimages/deep/19.jpg\n")
    assert find_images([names, folder / "04.jpg"]) == [
        ImageEntry("03", tmp_path / "images/03.jpg"),
        ImageEntry("19", tmp_path / "images/deep/19.jpg"),
        ImageEntry("04", folder / "04.jpg"),
    ]
    with pytest.raises(CapeditError, match="nowhere: no such file or folder"):
        find_images([tmp_path / "nowhere"])


@pytest.mark.parametrize("workers", [1, 3])
def test_every_image_is_accounted_for(folder: Path, tmp_path: Path, encoder: GridEncoder, workers: int) -> None:
    reports: list[int] = []
    with StoreWriter(tmp_path / "store", encoder) as writer:
        account = extract(
            find_images([folder]), encoder, writer, workers=workers, report=lambda now: reports.append(now.stored)
        )
    assert account == Account(seen=21, stored=19, already=0, failed=2)
    assert reports == sorted(reports)
    store = FeatureStore(tmp_path / "store", encoder_hash=encoder.hash)
    assert store.ids == [f"{n:02d}" for n in range(19) if n != 7] + ["deep/19"]
    (expected,) = encoder.encode([folder / "deep" / "19.jpg"])
    np.testing.assert_array_equal(store.tokens("deep/19").features, expected.features.astype(np.float16))
    failures = {failure.image_id: failure for failure in store.failures()}
    assert set(failures) == {"07", "empty"}
    assert "truncated" in failures["07"].reason
    assert failures["empty"].source == str(folder / "empty.png")


def test_a_second_run_does_only_what_is_missing(folder: Path, tmp_path: Path, encoder: GridEncoder) -> None:
    entries = find_images([folder])
    with StoreWriter(tmp_path / "store", encoder) as writer:
        extract(entries[:9], encoder, writer)
    Image.new("RGB", (50, 50), "green").save(folder / "07.jpg")  # mended meanwhile
    with StoreWriter(tmp_path / "store", encoder) as writer:
        assert extract(entries, encoder, writer) == Account(seen=21, stored=12, already=8, failed=1)
    assert [failure.image_id for failure in FeatureStore(tmp_path / "store").failures()] == ["empty"]


def test_two_images_of_one_id(folder: Path, tmp_path: Path, encoder: GridEncoder) -> None:
    Image.new("RGB", (50, 50)).save(folder / "03.png")
    with StoreWriter(tmp_path / "store", encoder) as writer:
        account = extract([*find_images([folder / "03.jpg", folder / "03.png"])], encoder, writer)
    assert account == Account(seen=2, stored=1, already=0, failed=1)
    assert "same id as" in (tmp_path / "store" / "failures.jsonl").read_text()


def test_an_interrupt_keeps_what_was_done(folder: Path, tmp_path: Path, encoder: GridEncoder) -> None:
    def interrupt(account: Account) -> None:
        raise KeyboardInterrupt

    with StoreWriter(tmp_path / "store", encoder) as writer, pytest.raises(KeyboardInterrupt):
        extract(find_images([folder]), encoder, writer, workers=2, report=interrupt)
    done = len(FeatureStore(tmp_path / "store"))
    assert 0 < done < 19
    with StoreWriter(tmp_path / "store", encoder) as writer:
        assert extract(find_images([folder]), encoder, writer).already == done
    assert len(FeatureStore(tmp_path / "store")) == 19


def test_large_pictures_are_encoded_before_more_are_decoded(
    folder: Path, tmp_path: Path, encoder: GridEncoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("capedit.vision.extraction._CHUNK_PIXELS", 5000)  # two of the pictures
    sizes: list[int] = []
    encode = encoder.encode

    def counting(images: list[Image.Image]) -> object:
        sizes.append(len(images))
        return encode(images)

    monkeypatch.setattr(encoder, "encode", counting)
    with StoreWriter(tmp_path / "store", encoder) as writer:
        assert extract(find_images([folder]), encoder, writer).stored == 19
    assert max(sizes) == 3


def test_errors_cross_processes() -> None:
    import pickle

    with pytest.raises(ImageError) as caught:
        load_image(b"junk", name="x.jpg")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.source, copy.reason, str(copy)) == ("x.jpg", caught.value.reason, str(caught.value))
