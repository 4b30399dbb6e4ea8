import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

from capedit.vision.image import ImageSource
from capedit.vision.shard import Precision, StoreError
from capedit.vision.store import Failure, FeatureStore
from capedit.vision.store_writer import StoreWriter
from capedit.vision.tokens import VisualTokens, grid_corners


class FakeEncoder:
    name, hash, dim = "fake", "0123456789abcdef", 16

    def encode(self, images: Sequence[ImageSource]) -> list[VisualTokens]:
        raise NotImplementedError


class OtherEncoder(FakeEncoder):
    hash = "fedcba9876543210"


def tokens_of(number: int, side: int = 3) -> VisualTokens:
    features = np.random.default_rng(number).normal(size=(side * side, 16)).astype(np.float32) * (1 + number)
    return VisualTokens.from_regions(features, grid_corners(side, side))


def fill(path: Path, numbers: range, precision: Precision = Precision.FLOAT16, shard_bytes: int = 1000) -> None:
    with StoreWriter(path, FakeEncoder(), precision, shard_bytes=shard_bytes) as writer:
        for number in numbers:
            writer.add(f"image/{number}", tokens_of(number))


def test_half_precision_is_exactly_that(tmp_path: Path) -> None:
    fill(tmp_path, range(20))
    store = FeatureStore(tmp_path, encoder_hash=FakeEncoder.hash)
    assert store.ids == [f"image/{number}" for number in range(20)]
    assert len(list(tmp_path.glob("shard-*"))) == 5
    for number in range(20):
        read, written = store.tokens(f"image/{number}"), tokens_of(number)
        np.testing.assert_array_equal(read.features, written.features.astype(np.float16))
        np.testing.assert_array_equal(read.boxes, written.boxes)


def test_int8_is_within_half_a_step_of_each_token(tmp_path: Path) -> None:
    fill(tmp_path, range(20), Precision.INT8)
    store = FeatureStore(tmp_path)
    for number in range(20):
        written = tokens_of(number).features
        step = np.abs(written).max(axis=1, keepdims=True) / 127
        assert (np.abs(store.tokens(f"image/{number}").features - written) <= 0.5001 * step).all()


def test_a_token_of_zeros_survives_int8(tmp_path: Path) -> None:
    nothing = VisualTokens.from_regions(np.zeros((4, 16), np.float32), grid_corners(2, 2))
    with StoreWriter(tmp_path, FakeEncoder(), Precision.INT8) as writer:
        writer.add("black", nothing)
    assert not FeatureStore(tmp_path).tokens("black").features.any()


def test_stored_tokens_are_views_of_the_file(tmp_path: Path) -> None:
    fill(tmp_path, range(4))
    store = FeatureStore(tmp_path)
    first, again = store.stored("image/2"), store.stored("image/2")
    assert np.shares_memory(first.features, again.features)
    assert not first.features.flags.owndata
    assert not first.features.flags.writeable
    assert first.features.dtype == np.float16


def test_many_shards_take_few_file_handles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("capedit.vision.store.MAX_MAPPED", 3)
    fill(tmp_path, range(40), shard_bytes=1)  # a shard for each image
    store = FeatureStore(tmp_path)
    kept = store.stored("image/0")
    for number in (*range(40), 0, 39, 7):
        expected = tokens_of(number).features.astype(np.float16)
        np.testing.assert_array_equal(store.stored(f"image/{number}").features, expected)
    np.testing.assert_array_equal(kept.features, tokens_of(0).features.astype(np.float16))
    handles = [str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()]
    assert 1 <= sum(str(tmp_path) in handle for handle in handles) <= 4  # three mapped, and the view that is kept


@pytest.mark.parametrize("precision", list(Precision))
def test_a_batch_is_the_singles_side_by_side(tmp_path: Path, precision: Precision) -> None:
    with StoreWriter(tmp_path, FakeEncoder(), precision, shard_bytes=500) as writer:
        for number, side in enumerate((3, 1, 2, 4)):
            writer.add(str(number), tokens_of(number, side))
    store = FeatureStore(tmp_path)
    batch = store.batch(["3", "1", "0", "1"])
    assert batch.features.shape == (4, 17, 16)
    assert batch.counts.tolist() == [17, 2, 10, 2]
    for row, image_id in enumerate(["3", "1", "0", "1"]):
        single, count = store.tokens(image_id), batch.counts[row]
        np.testing.assert_array_equal(batch.features[row, :count], single.features)
        np.testing.assert_array_equal(batch.boxes[row, :count], single.boxes)
        assert not batch.features[row, count:].any()
    assert store.batch([]).features.shape == (0, 0, 16)


def test_a_second_run_adds_to_the_first(tmp_path: Path) -> None:
    fill(tmp_path, range(7))
    with StoreWriter(tmp_path, FakeEncoder(), shard_bytes=1000) as writer:
        assert ("image/3" in writer, "image/8" in writer, len(writer)) == (True, False, 7)
        with pytest.raises(StoreError, match="'image/3' is there already"):
            writer.add("image/3", tokens_of(3))
        writer.add("image/8", tokens_of(8))
        assert "image/8" in writer
    assert len(FeatureStore(tmp_path)) == 8
    np.testing.assert_array_equal(FeatureStore(tmp_path).tokens("image/8").boxes, tokens_of(8).boxes)


def test_stores_do_not_mix(tmp_path: Path) -> None:
    fill(tmp_path, range(2))
    with pytest.raises(StoreError, match=r"0123456789abcdef.*cannot join"):
        StoreWriter(tmp_path, OtherEncoder())
    with pytest.raises(StoreError, match=r"float16 features of encoder.*int8 features of.*cannot join"):
        StoreWriter(tmp_path, FakeEncoder(), Precision.INT8)
    with pytest.raises(StoreError, match="made by encoder 0123456789abcdef"):
        FeatureStore(tmp_path, encoder_hash=OtherEncoder.hash)
    StoreWriter(tmp_path, FakeEncoder()).close()  # the refused writers let go of the lock


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with StoreWriter(tmp_path, FakeEncoder()), pytest.raises(StoreError, match="another process is writing"):
        StoreWriter(tmp_path, FakeEncoder())


def test_bad_tokens_are_refused(tmp_path: Path) -> None:
    with StoreWriter(tmp_path, FakeEncoder()) as writer:
        narrow = VisualTokens.from_regions(np.zeros((1, 8), np.float32), grid_corners(1, 1))
        with pytest.raises(StoreError, match="'a' has features of 8, not 16"):
            writer.add("a", narrow)
        infinite = VisualTokens.from_regions(np.full((1, 16), np.inf, np.float32), grid_corners(1, 1))
        with pytest.raises(StoreError, match="'b' has features that are not finite"):
            writer.add("b", infinite)


def test_what_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="not a feature store"):
        FeatureStore(tmp_path)
    (tmp_path / "store.json").write_text("{}")
    with pytest.raises(StoreError, match=r"store\.json: cannot be understood"):
        FeatureStore(tmp_path)
    fill(tmp_path / "new", range(1))
    with pytest.raises(StoreError, match="no tokens for image 'x'"):
        FeatureStore(tmp_path / "new").stored("x")


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    fill(tmp_path, range(6))
    shard = sorted(tmp_path.glob("shard-*"))[1]
    whole = shard.read_bytes()
    for damage in (b"", whole[:100], whole[:-50], b"\xff" * 200):
        shard.write_bytes(damage)
        with pytest.raises(StoreError, match=r"shard-000001\.safetensors: damaged shard"):
            FeatureStore(tmp_path)


def test_failures_are_kept_until_the_image_succeeds(tmp_path: Path) -> None:
    broken = Failure("1", "1.jpg", "is truncated")
    for _ in range(2):
        with StoreWriter(tmp_path, FakeEncoder()) as writer:
            writer.fail(broken)
            writer.fail(Failure("2", "2.jpg", "is empty"))
    assert len((tmp_path / "failures.jsonl").read_text().splitlines()) == 2  # not once per run
    with (tmp_path / "failures.jsonl").open("a") as file:
        file.write('{"image_id": "3", "sou')  # the crash came here
    with StoreWriter(tmp_path, FakeEncoder()) as writer:
        writer.add("2", tokens_of(2))
    assert FeatureStore(tmp_path).failures() == [broken]


WRITE_FOR_EVER = """
    import sys
    from pathlib import Path
    from capedit.vision.store_writer import StoreWriter
    sys.path.insert(0, sys.argv[2])
    from test_store import FakeEncoder, tokens_of
    with StoreWriter(Path(sys.argv[1]), FakeEncoder(), shard_bytes=1500) as writer:
        number = 0
        while True:
            if f"image/{number}" not in writer:
                writer.add(f"image/{number}", tokens_of(number))
            number += 1
"""


def test_a_killed_writer_harms_nothing(tmp_path: Path) -> None:
    """Killed three times in the middle of writing; what the store then holds is whole, in order, and grows."""
    stored = 0
    for _ in range(3):
        before = len(list(tmp_path.glob("shard-*.safetensors")))
        command = [sys.executable, "-c", textwrap.dedent(WRITE_FOR_EVER), str(tmp_path), str(Path(__file__).parent)]
        process = subprocess.Popen(command)
        try:
            deadline = time.monotonic() + 60
            while len(list(tmp_path.glob("shard-*.safetensors"))) < before + 5:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.002)
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        store = FeatureStore(tmp_path)
        assert store.ids == [f"image/{number}" for number in range(len(store))]
        assert len(store) > stored
        stored = len(store)
        for number in range(0, stored, 7):
            expected = tokens_of(number).features.astype(np.float16)
            np.testing.assert_array_equal(store.tokens(f"image/{number}").features, expected)
    (tmp_path / "shard-999999.safetensors.partial").write_bytes(b"half a shard")
    StoreWriter(tmp_path, FakeEncoder()).close()
    assert not list(tmp_path.glob("*.partial"))


def _sum(store: FeatureStore, image_id: str) -> float:
    return float(store.tokens(image_id).features.sum())


def test_processes_read_together(tmp_path: Path) -> None:
    fill(tmp_path, range(12))
    store = FeatureStore(tmp_path)
    assert pickle.loads(pickle.dumps(store)).ids == store.ids
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        sums = list(pool.map(_sum, [store] * 12, store.ids))
    assert sums == [_sum(store, image_id) for image_id in store.ids]


def test_the_header_is_plain_json(tmp_path: Path) -> None:
    fill(tmp_path, range(1), Precision.INT8)
    assert json.loads((tmp_path / "store.json").read_text()) == {
        "encoder": "fake",
        "encoder_hash": "0123456789abcdef",
        "dim": 16,
        "precision": "int8",
        "format": 1,
    }
