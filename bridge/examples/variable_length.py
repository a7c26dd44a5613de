"""Sequences of different lengths: an LSTM, and one whole sample for each replica."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, islice, repeat

import torch
from torch import nn
from torch.nn import functional
from torch.optim import Adam, Optimizer

from bridge.data import Loader
from bridge.examples.example import Result, Setting, difference
from bridge.parallel import average, parallel_apply, replicate, scatter, step

# A prime number: with 2 or more replicas the last batch of an epoch has fewer samples than devices.
SAMPLES, SHORTEST, LONGEST, FEATURES, HIDDEN = 11, 5, 20, 36, 64
RATE = 1e-2
Sample = tuple[torch.Tensor, torch.Tensor]


class SeqModel(nn.Module):
    """An LSTM 36-64 and a linear layer on its last hidden state.

    Shapes: ``(length, 36)`` to ``(1,)``.
    """

    def __init__(self) -> None:
        """Initialize as PyTorch's layers do, from the default generator."""
        super().__init__()
        self.lstm = nn.LSTM(FEATURES, HIDDEN, batch_first=True)  # type: ignore[no-untyped-call]
        self.fc = nn.Linear(HIDDEN, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Read one sequence to its end."""
        _, (hidden, _) = self.lstm(x.unsqueeze(0))
        output: torch.Tensor = self.fc(hidden[0, 0])
        return output


def run(setting: Setting, say: Callable[[str], None]) -> Result:
    """Train the LSTM on one sequence per replica, and one undivided model on the same sequences.

    Args:
        setting: what to run.
        say: takes progress, line by line.

    Returns:
        The losses, the state, and how far the parameters of replicas and of one model are apart.

    Spec: R23.2
    """
    devices = ["cpu"] * setting.replicas
    model, alone = _model(setting), _model(setting)
    replicas = replicate(model, devices)
    passes = [partial(_pass, replica) for replica in replicas]
    optimizer, other = Adam(model.parameters(), lr=RATE), Adam(alone.parameters(), lr=RATE)
    # As many samples as there are replicas, or what is left of them.
    loader = Loader(_data(setting), setting.replicas, seed=setting.seed, collate="list")
    losses = []
    for batch in islice(chain.from_iterable(repeat(loader)), setting.steps):
        for replica in replicas:
            replica.zero_grad(set_to_none=True)
        parts = parallel_apply(passes, scatter(batch, devices))
        average(replicas, reduction="sum", broadcast=False)
        step(replicas, optimizer)
        losses.append(sum(parts) / len(batch))
        _train_alone(alone, other, batch)
        lengths = ", ".join(str(len(sequence)) for sequence, _ in batch)
        say(f"step {len(losses)} of {setting.steps}: lengths {lengths}, loss {losses[-1]:.4f}")
    epoch = min(len(loader), setting.steps)
    numbers = {
        "loss, first epoch": sum(losses[:epoch]) / epoch,
        "loss, last epoch": sum(losses[-epoch:]) / epoch,
        "difference": difference(model, alone),
    }
    return Result(losses, numbers, model.state_dict())


def _pass(model: nn.Module, samples: Sequence[Sample]) -> float:
    """Add the gradients of the summed loss of samples, read one by one: no padding, no mask."""
    losses = [functional.mse_loss(model(sequence), target) for sequence, target in samples]
    loss = torch.stack(losses).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.item()


def _train_alone(model: nn.Module, optimizer: Optimizer, samples: Sequence[Sample]) -> None:
    """Update one undivided model from all samples: the loop of one device."""
    optimizer.zero_grad(set_to_none=True)
    _pass(model, samples)
    optimizer.step()


def _model(setting: Setting) -> SeqModel:
    """Make the model from its seed."""
    torch.manual_seed(setting.seed)
    return SeqModel().to(setting.torch_dtype)


def _data(setting: Setting) -> list[Sample]:
    """Draw sequences, each around a level of its own, which is what to find."""
    draw = torch.Generator().manual_seed(setting.seed)
    lengths = torch.randint(SHORTEST, LONGEST + 1, (SAMPLES,), generator=draw).tolist()
    levels = torch.randn(SAMPLES, 1, generator=draw)
    noise = [torch.randn(length, FEATURES, generator=draw) for length in lengths]
    dtype = setting.torch_dtype
    return [
        ((n + level).to(dtype), level.to(dtype)) for n, level in zip(noise, levels, strict=True)
    ]
