"""A small language model."""

import math

import torch
from torch import nn

WIDTH = 16
HEADS = 2


class Attention(nn.Module):
    """Causal attention over two heads."""

    def __init__(self, width: int) -> None:
        """Initialize the layers."""
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Mix the positions of ``(N, T, C)``."""
        n, t, c = x.shape
        parts = self.qkv(x).chunk(3, dim=-1)
        q, k, v = (part.view(n, t, HEADS, c // HEADS).transpose(1, 2) for part in parts)
        scores = q @ k.transpose(-2, -1) / math.sqrt(c / HEADS)
        mask = torch.ones(t, t, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(mask, float("-inf")).softmax(dim=-1)
        out: torch.Tensor = self.proj((weights @ v).transpose(1, 2).reshape(n, t, c))
        return out


class Block(nn.Module):
    """Attention and a feed-forward net, each normalized before and with a way around it."""

    def __init__(self, width: int) -> None:
        """Initialize the layers."""
        super().__init__()
        self.ln1 = nn.LayerNorm(width)
        self.attn = Attention(width)
        self.ln2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Turn ``(N, T, C)`` into the same."""
        x = x + self.attn(self.ln1(x))
        out: torch.Tensor = x + self.mlp(self.ln2(x))
        return out


class Transformer(nn.Module):
    """A language model of two blocks; its output weight is that of the token embedding."""

    def __init__(self) -> None:
        """Initialize the layers."""
        super().__init__()
        self.tok = nn.Embedding(20, WIDTH)
        self.pos = nn.Embedding(9, WIDTH)
        self.blocks = nn.ModuleList([Block(WIDTH), Block(WIDTH)])
        self.ln = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, 20, bias=False)
        self.head.weight = self.tok.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Turn tokens ``(N, T)`` into logits ``(N, 20, T)``, as cross-entropy takes them."""
        x = self.tok(tokens) + self.pos(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits: torch.Tensor = self.head(self.ln(x))
        return logits.transpose(1, 2)
