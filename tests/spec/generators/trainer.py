"""What the undivided model does: one model, the whole batch, a plain loop."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.spec.generators.values import values

Case = dict[str, Any]

STATE = {
    "fc1.weight": [[0.5, -0.25], [1.0, 0.5], [-0.75, 0.25]],
    "fc1.bias": [0.25, 0.0, 0.5],
    "fc2.weight": [[1.0, -0.5, 0.25]],
    "fc2.bias": [0.5],
}
INPUTS = [[1.0, 0.5], [-1.0, 2.0], [0.5, 0.25], [2.0, -1.0], [0.25, 1.5], [-0.5, 1.0], [1.5, 1.0]]
TARGETS = [[1.0], [-0.5], [0.25], [2.0], [-1.0], [0.5], [0.75]]
SGD = {"name": "sgd", "lr": 0.25}
HEAVY = {"name": "sgd", "lr": 0.125, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}
ADAM = {"name": "adam", "lr": 0.0625}
MAKERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}
ABOUT = (
    "A model of two linear layers, 2-3-1 with ReLU between them, starts with 'state' and is "
    "trained with mean squared error on these batches, one step each. 'losses' and 'states' are "
    "those of one undivided model, before and after each step."
)


class Net(nn.Module):
    """Two linear layers with ReLU between them."""

    def __init__(self) -> None:
        """Make layers whose weights are loaded next."""
        super().__init__()
        self.fc1 = nn.Linear(2, 3)
        self.fc2 = nn.Linear(3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map ``(N, 2)`` to ``(N, 1)``."""
        output: torch.Tensor = self.fc2(functional.relu(self.fc1(x)))
        return output


def trainer() -> Case:
    """Train with each optimizer; even shards of dyadic numbers leave no rounding, others do."""
    exact = {"relative": 0.0}
    rounded = {"relative": 1e-12}
    jobs = [
        ("one replica", 1, SGD, [4, 4], exact),
        ("two replicas, even shards", 2, SGD, [4, 4], exact),
        ("four replicas, one sample each", 4, SGD, [4, 4], exact),
        ("three replicas, two shards", 3, SGD, [4, 2], exact),
        ("fewer samples than replicas", 4, SGD, [2, 1, 4], exact),
        ("two replicas, uneven shards", 2, SGD, [7, 5, 3], rounded),
        ("three replicas, uneven shards, every option", 3, HEAVY, [7, 5, 7, 1], rounded),
        ("five replicas, Adam", 5, ADAM, [7, 3, 6, 7], rounded),
    ]
    return {"about": ABOUT, "cases": [_case(*job) for job in jobs]}


def _case(name: str, replicas: int, optimizer: Case, sizes: list[int], tolerance: Case) -> Case:
    """Train one model, each batch with the first so many samples."""
    model = Net().double()
    model.load_state_dict({key: torch.tensor(value) for key, value in STATE.items()})
    options = {key: value for key, value in optimizer.items() if key != "name"}
    stepper: Any = MAKERS[optimizer["name"]](model.parameters(), **options)
    batches, losses, states = [], [], []
    for size in sizes:
        batches.append({"inputs": INPUTS[:size], "targets": TARGETS[:size]})
        inputs, targets = (torch.tensor(part).double() for part in batches[-1].values())
        stepper.zero_grad(set_to_none=True)
        loss = functional.mse_loss(model(inputs), targets)
        loss.backward()  # type: ignore[no-untyped-call]
        stepper.step()
        losses.append(loss.item())
        states.append({key: values(tensor) for key, tensor in model.state_dict().items()})
    head = {"name": name, "spec": ["R8.1", "R8.2"], "replicas": replicas, "optimizer": optimizer}
    expected = {"losses": losses, "states": states, **tolerance}
    return {**head, "state": STATE, "batches": batches, **expected}
