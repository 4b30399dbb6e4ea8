"""A WordNet of a few words, so that these tests need no other package's data."""

from __future__ import annotations

from pathlib import Path

import pytest

from capedit.metrics.spice.wordnet import WordNet

# word, part of speech, synset offsets
_ENTRIES: dict[str, dict[str, tuple[int, ...]]] = {
    "noun": {
        "bicycle": (2834778,),
        "bike": (2834778, 3790512),
        "clothing": (3051540,),
        "cloth": (3309808,),
        "cow": (1887787,),
        "goose": (1855672,),
        "man": (10287213, 9605289),
        "motorcycle": (3790512,),
        "player": (10439851,),
    },
    "verb": {"clothe": (46534,), "play": (1072949,), "ride": (1955984,), "run": (1926311,)},
    "adj": {"big": (1382086,), "large": (1382086,), "small": (1391351,)},
    "adv": {},
}
_IRREGULAR = {"noun": "geese goose\n", "verb": "running run\n", "adj": "player player\n", "adv": ""}


@pytest.fixture(scope="session")
def wordnet_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wordnet")
    for part, words in _ENTRIES.items():
        lines = ["  1 This software and database is being provided to you", "  2 under a licence"]
        for word, offsets in sorted(words.items()):
            numbers = " ".join(f"{offset:08d}" for offset in offsets)
            # word, part, synsets, pointer kinds and the pointers, senses, tagged senses, offsets
            lines.append(f"{word} {part[0]} {len(offsets)} 2 @ ~ {len(offsets)} 1 {numbers}  ")
        (folder / f"index.{part}").write_text("\r\n".join(lines) + "\r\n", newline="")
        (folder / f"{part}.exc").write_text(_IRREGULAR[part])
    return folder


@pytest.fixture(scope="session")
def wordnet(wordnet_folder: Path) -> WordNet:
    return WordNet(wordnet_folder)
