"""The trainer's modes, buffers and schedulers, and models with parameters of every kind."""

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.clip_grad import clip_grad_norm_
from torch.optim import lr_scheduler

from bridge import LinearScaling, Trainer

CPU = "cpu"


@pytest.mark.parametrize("mode", ["master", "all"])
def test_schedulers_step_once_an_update_and_see_rates_unscaled(mode: Any) -> None:  # noqa: ANN401 - a literal
    """The rate halves per update, whatever the replicas and the scaling. Spec: R7.6."""
    model = nn.Linear(1, 1)
    trainer = Trainer(
        model, lambda parameters: torch.optim.SGD(parameters, lr=0.5), functional.mse_loss,
        [CPU] * 3, mode=mode, accumulate=2, scaling=LinearScaling(3.0),
        scheduler=lambda optimizer: lr_scheduler.StepLR(optimizer, 1, 0.5),
    )  # fmt: skip
    for _ in range(6):
        trainer.step(torch.ones(3, 1), torch.ones(3, 1))
    assert trainer.updates == 3
    assert [o.param_groups[0]["lr"] for o in trainer.optimizers] == [0.0625] * len(
        trainer.optimizers
    )


def test_mode_all_keeps_replicas_equal_and_apart() -> None:
    """Parameters and optimizers are equal bit for bit, in storage of their own. Spec: R7.3."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).double()
    trainer = Trainer(model, torch.optim.Adam, functional.mse_loss, [CPU] * 3, mode="all")
    for size in (9, 6, 8, 12):
        trainer.step(torch.randn(size, 3).double(), torch.randn(size, 2).double())
    tensors = [
        [*replica.parameters(), *replica.buffers(), *(p.grad for p in replica.parameters())]
        + [own.state[p][key] for p in replica.parameters() for key in ("exp_avg", "exp_avg_sq")]
        for replica, own in zip(trainer.replicas, trainer.optimizers, strict=True)
    ]
    for same in zip(*tensors, strict=True):
        assert len({value.data_ptr() for value in same}) == 3
        assert all(torch.equal(value, same[0]) for value in same)


@pytest.mark.parametrize(
    ("buffers", "expected"), [("first", [1, 1]), ("mean", [2, 2]), ("each", [1, 3])]
)
@pytest.mark.parametrize("mode", ["master", "all"])
def test_buffers_follow_their_policy(buffers: Any, mode: Any, expected: list[float]) -> None:  # noqa: ANN401
    """After a step replicas have the statistics that the policy says. Spec: R6.4, R7.1, R7.3."""
    model = nn.BatchNorm1d(1, momentum=1.0).double()
    trainer = Trainer(
        model, lambda parameters: torch.optim.SGD(parameters, lr=0.0),
        lambda outputs, _: outputs.sum(), [CPU] * 2, mode=mode, buffers=buffers,
    )  # fmt: skip
    inputs = torch.tensor([[0.0], [2.0], [2.0], [4.0]]).double()
    trainer.step(inputs, inputs)
    assert [r.get_buffer("running_mean").item() for r in trainer.replicas] == expected


@pytest.mark.parametrize("mode", ["master", "all"])
def test_replicas_follow_what_is_frozen_and_in_which_mode(mode: Any) -> None:  # noqa: ANN401
    """A model that is frozen and unfrozen in part on the way trains as one. Spec: R4.11, R8.1."""
    torch.manual_seed(2)
    models = [nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2)).double()]
    models.append(copy.deepcopy(models[0]))
    trainers = [
        Trainer(
            model, lambda parameters: torch.optim.SGD(parameters, lr=0.5), functional.mse_loss,
            [CPU] * count, mode=mode,
        )
        for model, count in zip(models, (3, 1), strict=True)
    ]  # fmt: skip
    inputs, targets = torch.randn(7, 3).double(), torch.randn(7, 2).double()
    plans: list[list[int]] = [[0], [], [2], [0, 2]]
    for frozen in plans:
        for model, trainer in zip(models, trainers, strict=True):
            model[1].eval()
            for index in (0, 2):
                model[index].requires_grad_(index not in frozen)
            trainer.step(inputs, targets)
            assert [i for i in (0, 2) if model[i].weight.grad is None] == frozen
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert float((one - other).detach().abs().max()) <= 1e-12


@pytest.mark.parametrize("mode", ["master", "all"])
def test_replicas_follow_values_that_change_between_steps(mode: Any) -> None:  # noqa: ANN401
    """A model that is loaded, then clamped, predicts and trains as one. Spec: R4.11, R8.1."""
    torch.manual_seed(2)
    models = [nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4).eval(), nn.Linear(4, 2)).double()]
    models.append(copy.deepcopy(models[0]))
    loaded = {name: torch.rand_like(value) + 1 if value.is_floating_point() else value
              for name, value in models[0].state_dict().items()}  # fmt: skip
    inputs, targets = torch.randn(7, 3).double(), torch.randn(7, 2).double()
    outputs = []
    for model, count in zip(models, (3, 1), strict=True):
        trainer = Trainer(
            model, lambda parameters: torch.optim.SGD(parameters, lr=0.5), functional.mse_loss,
            [CPU] * count, mode=mode,
        )  # fmt: skip
        model.load_state_dict(loaded)
        predicted = trainer.predict(inputs)
        trainer.step(inputs, targets)
        for parameter in model.parameters():
            parameter.data.clamp_(-0.25, 0.25)
        outputs.append(
            [predicted, torch.tensor(trainer.step(inputs, targets)), *model.parameters()]
        )
    for one, other in zip(*outputs, strict=True):
        assert float((one - other).detach().abs().max()) <= 1e-12


class Language(nn.Module):
    """Predicts the next of seven words; the output layer has the weight of the embedding."""

    def __init__(self) -> None:
        """Tie the weights."""
        super().__init__()
        self.embedding = nn.Embedding(7, 3)
        self.output = nn.Linear(3, 7)
        self.output.weight = self.embedding.weight

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        """Score every word ``(N, 7)`` after a word ``(N,)``."""
        scores: torch.Tensor = self.output(self.embedding(words))
        return scores


@pytest.mark.parametrize("mode", ["master", "all"])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_tied_embedding_trains_as_in_one_model(mode: Any, accumulate: int) -> None:  # noqa: ANN401
    """Reduced, accumulated, clipped and moved once. Spec: R5.7, R7.4, R7.5, R8.1."""
    torch.manual_seed(1)
    models = [Language().double() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())

    def make(parameters: Any) -> torch.optim.Optimizer:  # noqa: ANN401
        return torch.optim.SGD(parameters, lr=0.5, momentum=0.9)

    trainer = Trainer(
        models[0], make, functional.cross_entropy, [CPU] * 2, mode=mode,
        accumulate=accumulate, clip_norm=0.25,
    )  # fmt: skip
    optimizer = make(models[1].parameters())
    for _ in range(3):
        words, following = torch.randint(7, (2, 10))
        for part in range(accumulate):
            trainer.step(words[part::accumulate], following[part::accumulate])
        optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(models[1](words), following).backward()  # type: ignore[no-untyped-call]
        clip_grad_norm_(models[1].parameters(), 0.25)
        optimizer.step()
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert float((one - other).detach().abs().max()) <= 1e-12


def test_frozen_tied_and_unused_parameters() -> None:
    """They train as in one model: in no step is a gradient made up. Spec: R5.4, R5.7."""

    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.unused = (nn.Linear(2, 2) for _ in range(3))
            self.second.weight = self.first.weight
            self.first.bias.requires_grad_(False)  # noqa: FBT003 - torch's name differs by version

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            outputs: torch.Tensor = self.second(self.first(x).tanh())
            return outputs

    torch.manual_seed(0)
    models = [Odd().double() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    inputs = torch.randn(5, 2).double()
    for model, count in zip(models, (3, 1), strict=True):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5, weight_decay=0.1)
        trainer = Trainer(model, optimizer, functional.mse_loss, [CPU] * count)
        for _ in range(3):
            trainer.step(inputs, inputs)
        assert model.first.bias.grad is None
        assert model.unused.weight.grad is None
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert float((one - other).abs().max()) <= 1e-12
