"""The trainer: the law, and what a step, an epoch and an evaluation do."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from bridge import ReplicaError, Trainer
from bridge.optim import create
from tests.python.spec.vectors import Case, assert_close, cases, tensor

CPU = "cpu"


class Net(nn.Module):
    """Two linear layers with ReLU between them."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.fc1 = nn.Linear(2, 3)
        self.fc2 = nn.Linear(3, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Map ``(N, 2)`` to ``(N, 1)``."""
        output: torch.Tensor = self.fc2(functional.relu(self.fc1(x)))
        return output


class Scaled(nn.Module):
    """Takes two arguments: what it scales, and by what."""

    def __init__(self) -> None:
        """Start with a weight of one."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> dict[str, torch.Tensor]:
        """Multiply all three."""
        return {"scaled": x * scale * self.weight}


def linear(replicas: int, lr: float = 0.5) -> Trainer:
    """Make a trainer of a linear model whose weight starts at zero."""
    model = nn.Linear(1, 1, bias=False)
    nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    return Trainer(model, optimizer, functional.mse_loss, [CPU] * replicas)


def weight(module: nn.Module) -> nn.Parameter:
    """Take the weight of a module."""
    return module.get_parameter("weight")


@cases("trainer")
def test_vectors(case: Case) -> None:
    """Every step leaves the loss and the parameters of one undivided model. Spec: R8.1, R8.2."""
    model = Net().double()
    model.load_state_dict({name: tensor(value) for name, value in case["state"].items()})
    options = dict(case["optimizer"])
    optimizer = create(options.pop("name"), model.parameters(), **options)
    trainer = Trainer(model, optimizer, functional.mse_loss, [CPU] * case["replicas"])
    for batch, loss, state in zip(case["batches"], case["losses"], case["states"], strict=True):
        actual = trainer.step(tensor(batch["inputs"]), tensor(batch["targets"]))
        assert_close(tensor(actual), tensor(loss), case["relative"])
        for replica in trainer.replicas:
            for name, value in replica.state_dict().items():
                assert_close(value, tensor(state[name]), case["relative"])


def test_step_returns_the_loss_before_the_update() -> None:
    """The loss is the mean over the batch, with the weights before the step. Spec: R8.2."""
    trainer = linear(2)
    inputs, targets = torch.ones(3, 1), torch.tensor([[1.0], [2.0], [6.0]])
    assert trainer.step(inputs, targets) == pytest.approx(41 / 3)
    assert weight(trainer.model).item() == pytest.approx(3)


def test_gradients_do_not_survive() -> None:
    """A gradient from before the step does not count, in no replica. Spec: R8.2."""
    trainer = linear(2)
    for replica in trainer.replicas:
        weight(replica).grad = torch.full((1, 1), 1e6)
    trainer.step(torch.ones(2, 1), torch.ones(2, 1))
    assert weight(trainer.model).item() == 1
    weight(trainer.replicas[1]).grad = torch.full((1, 1), 1e6)
    trainer.step(torch.ones(1, 1), torch.ones(1, 1))
    assert weight(trainer.model).item() == 1
    assert weight(trainer.replicas[1]).grad is None


def test_forward_runs_once_per_replica_and_step() -> None:
    """Each replica's forward runs once, on its own shard. Spec: R3.1, R8.1."""
    trainer = linear(3)
    seen: list[tuple[int, list[float]]] = []
    for index, replica in enumerate(trainer.replicas):
        replica.register_forward_pre_hook(
            lambda _, args, index=index: seen.append((index, args[0].flatten().tolist()))
        )
    trainer.step(torch.arange(5.0).reshape(5, 1), torch.ones(5, 1))
    assert sorted(seen) == [(0, [0, 1]), (1, [2, 3]), (2, [4])]


def test_tuples_are_positional_arguments_and_targets_may_be_trees() -> None:
    """A module of two arguments trains on tuples, with a dict of targets. Spec: R8.1, R8.4."""
    model = Scaled()

    def loss(outputs: dict[str, torch.Tensor], targets: dict[str, torch.Tensor]) -> torch.Tensor:
        mean: torch.Tensor = (outputs["scaled"] - targets["y"]).square().mean()
        return mean

    trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.5), loss, [CPU, CPU])
    inputs = (torch.tensor([1.0, 1.0, 1.0]), torch.tensor([2.0, 2.0, 2.0]))
    assert trainer.step(inputs, {"y": torch.zeros(3)}) == pytest.approx(4)
    assert model.weight.item() == pytest.approx(-3)
    assert trainer.predict(inputs)["scaled"].tolist() == pytest.approx([-6, -6, -6])


def test_fit_goes_over_the_batches_again_and_again() -> None:
    """Each epoch has every batch, and its mean loss is by samples. Spec: R8.3."""
    trainer = linear(2, lr=0.0)
    ones, threes = torch.ones(3, 1), torch.full((1, 1), 3.0)
    steps: list[tuple[int, float]] = []
    history = trainer.fit(
        [(ones, ones), (threes, threes)],
        epochs=2,
        on_step=lambda number, loss: steps.append((number, loss)),
    )
    assert steps == [(1, 1.0), (2, 9.0), (3, 1.0), (4, 9.0)]
    assert history == [3.0, 3.0]


def test_fit_and_evaluate_refuse_no_batches() -> None:
    """An epoch without batches is refused, also the second of an exhausted iterator. Spec: R8.3."""
    trainer = linear(1)
    batches = iter([(torch.ones(1, 1), torch.ones(1, 1))])
    with pytest.raises(ValueError, match=r"^Trainer: expected at least 1 batch, got 0$"):
        trainer.fit(batches, epochs=2)
    with pytest.raises(ValueError, match=r"^Trainer: expected at least 1 batch, got 0$"):
        trainer.evaluate([])


def test_predict_restores_every_mode() -> None:
    """Modules that were in evaluation mode stay in it, the others train again. Spec: R8.4."""
    model = nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.5), nn.BatchNorm1d(1))
    model[1].eval()
    trainer = Trainer(
        model, torch.optim.SGD(model.parameters(), lr=0.1), functional.mse_loss, [CPU, CPU]
    )
    seen: list[bool] = []
    model[0].register_forward_hook(lambda module, *_: seen.append(module.training))
    outputs = trainer.predict(torch.ones(3, 1))
    assert not outputs.requires_grad
    assert seen == [False]
    for replica in trainer.replicas:
        assert [module.training for module in replica.modules()] == [True, True, False, True]
    with pytest.raises(ReplicaError):
        trainer.predict(torch.ones(3, 2))
    assert [module.training for module in model.modules()] == [True, True, False, True]


def test_evaluate_averages_by_samples() -> None:
    """The measure is averaged over all samples, and changes no state. Spec: R8.4."""
    trainer = linear(2)
    batches = [(torch.ones(3, 1), torch.ones(3, 1)), (torch.ones(1, 1), torch.full((1, 1), 3.0))]
    assert trainer.evaluate(batches) == 3
    assert trainer.evaluate(batches, lambda _, targets: targets.mean()) == 1.5
    assert weight(trainer.model).item() == 0
    assert weight(trainer.model).grad is None


def test_means_are_summed_in_order() -> None:
    """The mean over batches is a plain sum in their order, without compensation. Spec: R8.4."""
    batches = [
        (torch.ones(1, 1), torch.tensor([3 * value])) for value in (2.0**53, 1.0, -(2.0**53))
    ]
    assert linear(1).evaluate(batches, lambda _, target: target.sum()) == 0


def test_load_state_dict_reaches_every_replica() -> None:
    """A loaded state is every replica's, and a wrong one is refused by key. Spec: R6.1, R6.2."""
    trainer = linear(3)
    trainer.load_state_dict({"weight": torch.tensor([[2.5]])})
    assert [weight(replica).item() for replica in trainer.replicas] == [2.5, 2.5, 2.5]
    with pytest.raises(RuntimeError, match=r"Missing key.*weight"):
        trainer.load_state_dict({})


def test_failures_name_the_replica() -> None:
    """A replica that fails in a step is named. Spec: R3.3."""
    trainer = linear(2)
    with pytest.raises(ReplicaError, match=r"2 of 2 replicas failed\nin replica 0 on device cpu"):
        trainer.step(torch.ones(2, 3), torch.ones(2, 1))


def test_no_device_is_refused() -> None:
    """A trainer has at least one device. Spec: R4.3."""
    with pytest.raises(ValueError, match=r"^Trainer: expected at least 1 device, got 0$"):
        linear(0)
