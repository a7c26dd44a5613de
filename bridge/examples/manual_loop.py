"""The loop written by hand, verb by verb: an MLP on replicas, beside one undivided model."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice

import torch
from torch import nn
from torch.nn import functional
from torch.optim import Adam, Optimizer

from bridge.data import Loader
from bridge.examples.example import Result, Setting, difference
from bridge.models import MLP
from bridge.parallel import LinearScaling, average, parallel_apply, replicate, scatter, step

# Four whole batches and one of a single sample make an epoch.
SAMPLES, UNSEEN, BATCH, FEATURES, CLASSES = 513, 512, 128, 1024, 10
NOISE, RATE, ACCUMULATE, WARM_UP = 4.0, 1e-3, 2, 4
Batch = tuple[torch.Tensor, torch.Tensor]


def run(setting: Setting, say: Callable[[str], None]) -> Result:
    """Train the MLP on replicas in a loop of verbs, and one undivided model on the same samples.

    The first half of the steps takes one batch each; the other half accumulates two, at a learning
    rate that grows to twice as much.

    Args:
        setting: what to run.
        say: takes progress, line by line.

    Returns:
        The losses, the state, the accuracy on samples that were not trained on, the speed of
        replicas and of one model, and how far their parameters are apart.

    Spec: R23.2
    """
    data, unseen = _data(setting)
    model, alone = _model(setting), _model(setting)
    replicas = replicate(model, ["cpu"] * setting.replicas)
    optimizer, other = Adam(model.parameters(), lr=RATE), Adam(alone.parameters(), lr=RATE)
    before = _accuracy(model, unseen)
    losses, speeds, speeds_alone = [], [], []
    for group, rate in _updates(Loader(data, BATCH, seed=setting.seed), setting.steps):
        optimizer.param_groups[0]["lr"] = other.param_groups[0]["lr"] = rate
        loss, speed = _measured(_train, replicas, optimizer, group)
        speeds_alone.append(_measured(_train_alone, alone, other, group)[1])
        speeds.append(speed)
        losses.append(loss)
        progress = f"step {len(losses)} of {setting.steps}: samples {_count(group)}"
        say(f"{progress}, rate {rate:.5f}, loss {loss:.4f}")
    numbers = {
        "accuracy, untrained": before,
        "accuracy, trained": _accuracy(model, unseen),
        "difference": difference(model, alone),
        "samples per second": max(speeds),
        "samples per second, alone": max(speeds_alone),
        "ratio": max(speeds) / max(speeds_alone),
    }
    return Result(losses, numbers, model.state_dict())


def _train(replicas: Sequence[nn.Module], optimizer: Optimizer, group: Sequence[Batch]) -> float:
    """Update every replica once from a group of batches, and return the loss."""
    for replica in replicas:
        replica.zero_grad(set_to_none=True)
    passes = [partial(_pass, replica, _count(group)) for replica in replicas]
    loss = 0.0
    for batch in group:
        loss += sum(parallel_apply(passes, scatter(batch, ["cpu"] * len(replicas))))
    average(replicas, reduction="sum", broadcast=False)
    step(replicas, optimizer)
    return loss


def _pass(replica: nn.Module, total: int, inputs: torch.Tensor, labels: torch.Tensor) -> float:
    """Add the gradients of a shard, whose loss is its part of the mean over all samples."""
    loss = functional.cross_entropy(replica(inputs), labels) * (len(labels) / total)
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.item()


def _train_alone(model: nn.Module, optimizer: Optimizer, group: Sequence[Batch]) -> float:
    """Update one undivided model from the group as one batch: the loop of one device."""
    inputs, labels = (torch.cat(parts) for parts in zip(*group, strict=True))
    optimizer.zero_grad(set_to_none=True)
    loss = functional.cross_entropy(model(inputs), labels)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    return loss.item()


def _updates(loader: Loader, steps: int) -> Iterator[tuple[list[Batch], float]]:
    """Yield the batches of each step, and its learning rate."""
    half = (steps + 1) // 2
    for group in islice(_groups(loader, 1), half):
        yield group, RATE
    scaling = LinearScaling(ACCUMULATE, WARM_UP)
    for update, group in enumerate(islice(_groups(loader, ACCUMULATE), steps - half)):
        yield group, RATE * scaling.at(update)


def _groups(loader: Loader, size: int) -> Iterator[list[Batch]]:
    """Yield batches in groups, epoch after epoch; the last group of an epoch may be smaller."""
    while True:
        batches = iter(loader)
        while group := list(islice(batches, size)):
            yield group


def _measured(
    train: Callable[..., float], net: object, optimizer: Optimizer, group: Sequence[Batch]
) -> tuple[float, float]:
    """Return the loss of a step, and how many samples a second it took."""
    start = time.perf_counter()
    loss = train(net, optimizer, group)
    return loss, _count(group) / (time.perf_counter() - start)


def _count(group: Sequence[Batch]) -> int:
    """Count the samples of a group."""
    return sum(len(labels) for _, labels in group)


def _accuracy(model: nn.Module, samples: Batch) -> float:
    """Measure the share of samples whose largest output is at their label."""
    inputs, labels = samples
    with torch.no_grad():
        share: torch.Tensor = (model(inputs).argmax(1) == labels).double().mean()
    return share.item()


def _model(setting: Setting) -> MLP:
    """Make the model from its seed."""
    torch.manual_seed(setting.seed)
    return MLP().to(setting.torch_dtype)


def _data(setting: Setting) -> tuple[Batch, Batch]:
    """Draw vectors around the centers of their classes: some to train on, and some to test with."""
    draw = torch.Generator().manual_seed(setting.seed)
    labels = torch.randint(CLASSES, (SAMPLES + UNSEEN,), generator=draw)
    centers = torch.randn(CLASSES, FEATURES, generator=draw)
    noise = NOISE * torch.randn(SAMPLES + UNSEEN, FEATURES, generator=draw)
    inputs = (centers[labels] + noise).to(setting.torch_dtype)
    return (inputs[:SAMPLES], labels[:SAMPLES]), (inputs[SAMPLES:], labels[SAMPLES:])
