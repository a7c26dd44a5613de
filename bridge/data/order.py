"""The order of the samples."""

import torch


def order(count: int, seed: int, epoch: int) -> torch.Tensor:
    """Shuffle the indices of an epoch: the same bits in both languages, another order each epoch.

    Args:
        count: the number of samples.
        seed: of the run.
        epoch: from 0.

    Returns:
        A fresh int64 permutation ``(count,)``.

    Spec: R10.5
    """
    generator = torch.Generator().manual_seed(seed + epoch)
    return torch.randperm(count, generator=generator)
