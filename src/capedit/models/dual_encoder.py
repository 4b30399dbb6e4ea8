"""A small dual encoder: images and captions as vectors whose inner product says how well they fit.

It stands where the paper has CLIP: it ranks candidate captions when COCO-EE is built. It needs no download, since it
is trained contrastively on COCO captions over the frozen features of the default image encoder.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 (its usual name)

from capedit.errors import CapeditError
from capedit.models.device import array, placed, tensor
from capedit.models.tensor_files import read_tensors, save_tensors

PADDING, UNKNOWN = 0, 1
_WEIGHTS, _CONFIG = "weights.safetensors", "config.json"


@dataclass(frozen=True)
class DualEncoderConfig:
    """The shape of the network."""

    features: int = 1280
    """Width of the visual tokens."""
    width: int = 256
    """Width inside, and of the vectors that come out."""
    heads: int = 4
    """Ways in which either tower weighs its tokens."""
    text_layers: int = 0
    """Transformer layers over the words. Without any, order counts for little, and three times as many captions are
    seen in the same time, which is worth more in an hour on a CPU."""
    max_words: int = 24
    """Longer captions are cut; 0.3 % of COCO's are."""


class Vocabulary:
    """Words by number; 0 pads, 1 stands for every word that is not here."""

    def __init__(self, words: Iterable[str]) -> None:
        self.words = tuple(words)
        self._numbers = {word: number for number, word in enumerate(self.words, start=2)}

    @classmethod
    def from_captions(cls, captions: Iterable[Sequence[str]], min_count: int = 5) -> "Vocabulary":
        counts = Counter(word for caption in captions for word in caption)
        kept = (word for word, count in counts.items() if count >= min_count)
        return cls(sorted(kept, key=lambda word: (-counts[word], word)))

    def __len__(self) -> int:
        return len(self.words) + 2

    def encode(self, captions: Sequence[Sequence[str]], max_words: int) -> NDArray[np.int64]:
        """(captions, longest), padded."""
        cut = [caption[:max_words] for caption in captions]
        numbers = np.full((len(cut), max(map(len, cut), default=0)), PADDING, np.int64)
        for row, caption in zip(numbers, cut, strict=True):
            row[: len(caption)] = [self._numbers.get(word, UNKNOWN) for word in caption]
        return numbers


class ImageTower(nn.Module):
    """Visual tokens, the whole image first, to a unit vector.

    Each head looks at the image through weights of its own; the features so pooled are projected only then, which
    costs the same however many regions there are.
    """

    def __init__(self, config: DualEncoderConfig) -> None:
        super().__init__()
        self.score = nn.Linear(config.features, config.heads)
        self.place_score = nn.Linear(5, config.heads, bias=False)
        self.norm = nn.LayerNorm(config.features)
        self.mix = nn.Sequential(
            nn.Linear((config.heads + 1) * config.features, 2 * config.width),
            nn.GELU(),
            nn.Linear(2 * config.width, config.width),
        )

    def forward(self, features: Tensor, boxes: Tensor) -> Tensor:
        """features (B, N, F), boxes (B, N, 5) -> (B, D)."""
        weights = (self.score(features) + self.place_score(boxes)).softmax(dim=1)  # (B, N, H)
        pooled = weights.transpose(1, 2) @ features  # (B, H, F)
        views = self.norm(torch.cat([features[:, :1], pooled], dim=1))
        return F.normalize(self.mix(views.flatten(1)), dim=-1)


class TextTower(nn.Module):
    """Words to a unit vector: heads weigh them, after as many transformer layers as the config has."""

    def __init__(self, config: DualEncoderConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.heads = config.heads
        self.word = nn.Embedding(vocabulary_size, config.width, padding_idx=PADDING)
        self.position = nn.Parameter(torch.zeros(config.max_words, config.width))
        nn.init.normal_(self.word.weight, std=0.05)
        nn.init.normal_(self.position, std=0.01)
        # No dropout: it is slow on a CPU, and words are dropped from the input instead.
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                config.width, config.heads, 2 * config.width, 0.0, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(config.text_layers)
        )
        self.norm = nn.LayerNorm(config.width)
        self.score = nn.Linear(config.width, config.heads)
        self.value = nn.Linear(config.width, config.width)
        self.mix = nn.Sequential(
            nn.Linear(config.width, 2 * config.width), nn.GELU(), nn.Linear(2 * config.width, config.width)
        )

    def forward(self, words: Tensor) -> Tensor:
        """words (B, T) -> (B, D)."""
        padding = words == PADDING
        tokens = self.word(words) + self.position[: words.shape[1]]
        for layer in self.layers:
            tokens = layer(tokens, src_key_padding_mask=padding)
        tokens = self.norm(tokens)
        weights = self.score(tokens).masked_fill(padding[..., None], -torch.inf).softmax(dim=1)  # (B, T, H)
        values = self.value(tokens).unflatten(-1, (self.heads, -1))  # (B, T, H, D/H)
        return F.normalize(self.mix(torch.einsum("bth,bthd->bhd", weights, values).flatten(1)), dim=-1)


class DualEncoder(nn.Module):
    """Both towers, the vocabulary, and a learned temperature for training."""

    def __init__(self, config: DualEncoderConfig, vocabulary: Vocabulary, features_hash: str = "") -> None:
        """`features_hash` names the image encoder whose features these weights belong to."""
        super().__init__()
        self.config, self.vocabulary, self.features_hash = config, vocabulary, features_hash
        self.image = ImageTower(config)
        self.text = TextTower(config, len(vocabulary))
        self.log_scale = nn.Parameter(torch.tensor(np.log(1 / 0.07), dtype=torch.float32))

    def loss(self, features: Tensor, boxes: Tensor, words: Tensor) -> Tensor:
        """Cross-entropy of finding each image's caption and each caption's image in the batch, summed over it."""
        logits = self.log_scale.exp().clamp(max=100) * self.image(features, boxes) @ self.text(words).T
        right = torch.arange(len(logits))
        return (F.cross_entropy(logits, right, reduction="sum") + F.cross_entropy(logits.T, right, reduction="sum")) / 2

    @torch.no_grad()
    def embed_captions(self, captions: Sequence[Sequence[str]], batch: int = 512) -> NDArray[np.float32]:
        """(captions, D). Captions of like length go together, so that little is padded."""
        vectors = np.zeros((len(captions), self.config.width), np.float32)
        order = sorted(range(len(captions)), key=lambda number: len(captions[number]))
        for start in range(0, len(order), batch):
            chosen = order[start : start + batch]
            words = self.vocabulary.encode([captions[number] for number in chosen], self.config.max_words)
            vectors[chosen] = array(self.text(tensor(words)))
        return vectors

    @torch.no_grad()
    def embed_images(self, features: NDArray[np.float32], boxes: NDArray[np.float32]) -> NDArray[np.float32]:
        """features (B, N, F), boxes (B, N, 5) -> (B, D)."""
        vectors: NDArray[np.float32] = array(self.image(tensor(features), tensor(boxes)))
        return vectors

    @property
    def hash(self) -> str:
        """Names these weights."""
        digest = sha256(self.features_hash.encode())
        for name, weights in sorted(self.state_dict().items()):
            digest.update(name.encode() + array(weights).tobytes())
        return digest.hexdigest()[:16]

    def save(self, folder: Path) -> None:
        """`weights.safetensors`, and all else in `config.json`."""
        folder.mkdir(parents=True, exist_ok=True)
        save_tensors(self.state_dict(), folder / _WEIGHTS)
        config: dict[str, Any] = {
            "model": "dual encoder",
            "shape": asdict(self.config),
            "features_hash": self.features_hash,
            "vocabulary": self.vocabulary.words,
        }
        (folder / _CONFIG).write_text(json.dumps(config, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> "DualEncoder":
        """Ready for use, not for training."""
        try:
            config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
            shape = DualEncoderConfig(**config["shape"])
            model = cls(shape, Vocabulary(config["vocabulary"]), config["features_hash"])
            model.load_state_dict(read_tensors(folder / _WEIGHTS)[1])
        except OSError as error:
            raise CapeditError(f"{folder}: no dual encoder here ({error})") from error
        except (ValueError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
            raise CapeditError(f"{folder}: not a dual encoder that can be loaded ({error})") from error
        return placed(model).eval()
