"""Transformer parts in the published form: post-norm, exact GELU, biases everywhere."""

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

NORM_EPS = 1e-12


class Attention(nn.Module):
    """Multi-head attention from one stream's tokens to another's (or its own), without the output projection."""

    def __init__(self, query_width: int, memory_width: int, width: int, heads: int) -> None:
        super().__init__()
        if width % heads:
            raise ValueError(f"width {width} does not divide into {heads} heads")
        self.heads = heads
        self.query = nn.Linear(query_width, width)
        self.key = nn.Linear(memory_width, width)
        self.value = nn.Linear(memory_width, width)

    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None) -> Tensor:
        """x (B, T, Dq), memory (B, S, Dm), memory_mask (B, S) true where there is a token -> (B, T, width)."""
        return self.attend(x, self.project(memory), memory_mask)

    def project(self, memory: Tensor) -> Tensor:
        """Keys and values of a memory, (B, 2, S, width): all that can be computed before anyone looks."""
        return torch.stack([self.key(memory), self.value(memory)], 1)

    def attend(self, x: Tensor, projected: Tensor, memory_mask: Tensor | None) -> Tensor:
        """Like `forward`, on a memory that was projected before."""
        key, value = (self._split(part) for part in projected.unbind(1))  # cheaper to differentiate than indexing
        mask = None if memory_mask is None else memory_mask[:, None, None, :]
        query = self._split(self.query(x))
        if query.dtype == torch.bfloat16 and query.device.type == "cpu":
            with torch.autocast("cpu", enabled=False):  # torch's gradient of it in 16 bits is 14 times slower
                mixed = F.scaled_dot_product_attention(query.float(), key.float(), value.float(), mask)
        else:
            mixed = F.scaled_dot_product_attention(query, key, value, mask)
        return mixed.transpose(1, 2).flatten(2)

    def weights(self, x: Tensor, projected: Tensor, memory_mask: Tensor | None) -> Tensor:
        """How much each token looks at each of the memory's, mean over heads: (B, T, S). For people to look at."""
        query, key = self._split(self.query(x)), self._split(projected.unbind(1)[0])
        scores: Tensor = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
        if memory_mask is not None:
            scores = scores.masked_fill(~memory_mask[:, None, None, :], -torch.inf)
        return scores.softmax(-1).mean(1)

    def _split(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        return x.view(batch, tokens, self.heads, -1).transpose(1, 2)  # (B, H, T, D / H)


class Residual(nn.Module):
    """Project, drop out, add to what was there, normalise."""

    def __init__(self, inputs: int, width: int, dropout: float) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, width)
        self.norm = nn.LayerNorm(width, eps=NORM_EPS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, before: Tensor) -> Tensor:
        normed: Tensor = self.norm(before + self.dropout(self.dense(x)))
        return normed


class FeedForward(nn.Module):
    """Widen, GELU, project back."""

    def __init__(self, width: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.widen = nn.Linear(width, inner)
        self.output = Residual(inner, width, dropout)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.output(F.gelu(self.widen(x)), x)
        return result


class TransformerLayer(nn.Module):
    """Self-attention and feed-forward of one stream."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attention(width, width, width, heads)
        self.attended = Residual(width, width, dropout)
        self.feed_forward = FeedForward(width, inner, dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        result: Tensor = self.feed_forward(self.attended(self.attention(x, x, mask), x))
        return result
