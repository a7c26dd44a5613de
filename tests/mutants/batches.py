"""Batches to train on: four, the third of them smaller."""

import torch

SIZES = (8, 8, 5, 8)
Batch = tuple[torch.Tensor, torch.Tensor]


def batches(kind: str) -> list[Batch]:
    """Draw batches of a kind of data, the same each time."""
    generator = torch.Generator().manual_seed(7)
    return [
        _tokens(size, generator) if kind == "tokens" else _samples(kind, size, generator)
        for size in SIZES
    ]


def _samples(kind: str, size: int, generator: torch.Generator) -> Batch:
    """Draw inputs in float64, and labels."""
    shape, classes = {
        "vectors": ((12,), 4),
        "gray": ((1, 16, 16), 10),
        "color": ((3, 8, 8), 10),
        "sequences": ((6, 8), 3),
    }[kind]
    inputs = torch.randn((size, *shape), generator=generator, dtype=torch.float64)
    return inputs, torch.randint(classes, (size,), generator=generator)


def _tokens(size: int, generator: torch.Generator) -> Batch:
    """Draw sequences of tokens from 1, some padded with 0, and what comes one later."""
    tokens = torch.randint(1, 20, (size, 9), generator=generator)
    lengths = torch.randint(4, 10, (size, 1), generator=generator)
    tokens[torch.arange(9) >= lengths] = 0
    return tokens[:, :-1], tokens[:, 1:]
