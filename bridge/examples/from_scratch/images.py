"""Images to train and to test: Fashion-MNIST, or drawn ones."""

from collections.abc import Callable, Iterator

import torch

from bridge.data import FashionMnist, Loader
from bridge.examples.example import Setting

BATCH, TESTED = 64, 1000
DRAWN, CLASSES, SIDE, SPOT = 3000, 10, 28, 4
Batch = tuple[torch.Tensor, torch.Tensor]


def read(setting: Setting, say: Callable[[str], None]) -> tuple[FashionMnist | Batch, Batch]:
    """Read Fashion-MNIST, to train and to test; where it is not here, draw images."""
    try:
        train, test = (
            FashionMnist(None, train=train, dtype=setting.torch_dtype) for train in (True, False)
        )
    except FileNotFoundError:
        say("data: drawn, for Fashion-MNIST is not here")
        images, labels = drawn(setting)
        return (images[TESTED:], labels[TESTED:]), (images[:TESTED], labels[:TESTED])
    say("data: Fashion-MNIST")
    return train, test.batch(torch.arange(TESTED))


def drawn(setting: Setting) -> Batch:
    """Draw images around the patterns of their classes, of spots that outlast the pooling."""
    draw = torch.Generator().manual_seed(setting.seed)
    labels = torch.randint(CLASSES, (DRAWN,), generator=draw)
    spots = torch.randn(CLASSES, 1, SIDE // SPOT, SIDE // SPOT, generator=draw)
    patterns = spots.repeat_interleave(SPOT, 2).repeat_interleave(SPOT, 3)
    noise = torch.randn(DRAWN, 1, SIDE, SIDE, generator=draw)
    return (patterns[labels] + noise).to(setting.torch_dtype), labels


def batches(data: FashionMnist | Batch, seed: int) -> Iterator[Batch]:
    """Yield batches, epoch after epoch."""
    loader = Loader(data, BATCH, seed=seed)
    while True:
        yield from loader
