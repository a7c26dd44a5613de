"""Models that draw random numbers."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from bridge import DataParallel, RandomStates, SyncBatchNorm, Trainer, parallel_apply
from bridge.parallel.random_states import draws
from tests.python.spec.vectors import Case, assert_same, cases, tensor

CPU = "cpu"
LSTM: Any = nn.LSTM


class Drawing(nn.Module):
    """Multiplies by a parameter of ones, and from a step on drops half or adds noise."""

    def __init__(self, kind: str, first: int = 0) -> None:
        """Start before the first step."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, dtype=torch.float64))
        self.kind = kind
        self.first = first
        self.register_buffer("steps", torch.tensor(0))
        self.outputs: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Draw, unless it is too early."""
        outputs = x * self.weight
        if int(self.get_buffer("steps")) >= self.first:
            noise = torch.rand_like(outputs) if self.kind == "rand" else None
            outputs = functional.dropout(outputs, 0.5) if noise is None else outputs + noise
        self.steps = self.get_buffer("steps") + 1
        self.outputs.append(outputs.detach())
        return outputs


def trainer_of(model: nn.Module, replicas: int, **options: Any) -> Trainer:  # noqa: ANN401
    """Make a trainer that leaves the parameters."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    return Trainer(model, optimizer, lambda out, _: out.sum(), [CPU] * replicas, **options)


@pytest.fixture(autouse=True)
def stream() -> Iterator[None]:
    """Leave the default generator as it was."""
    state = torch.get_rng_state()
    yield
    torch.set_rng_state(state)


@cases("draws")
def test_vectors(case: Case) -> None:
    """Each replica draws what the vectors say: the same in C#. Spec: R20.1, R20.2, R20.3."""
    torch.manual_seed(case["seed"])
    trainer = trainer_of(Drawing(case["kind"], case["from"]), case["replicas"])
    for size, expected in zip(case["sizes"], case["drawn"], strict=True):
        ones = torch.ones(size, 3, dtype=torch.float64)
        trainer.step(ones, ones)
        actual = [r.outputs[-1] for r in trainer.replicas if isinstance(r, Drawing)]
        assert_same(actual[: len(expected)], [tensor(drawn) for drawn in expected])


def test_a_run_is_reproducible_and_replicas_differ() -> None:
    """The same seed leaves the same bits; no two replicas draw alike. Spec: R20.2."""
    results = []
    for _ in range(2):
        torch.manual_seed(5)
        trainer = trainer_of(Drawing("rand"), 3)
        ones = torch.ones(3, 3, dtype=torch.float64)
        for _ in range(3):
            trainer.step(ones, ones)
        results.append([r.outputs for r in trainer.replicas if isinstance(r, Drawing)])
    assert_same(results[0], results[1])
    drawn: list[torch.Tensor] = [drawn for replica in results[0] for drawn in replica]
    assert all(not torch.equal(a, b) for i, a in enumerate(drawn) for b in drawn[:i])


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_the_callers_stream_moves_as_in_a_single_run(replicas: int) -> None:
    """What the caller draws afterwards depends on replica 0 alone. Spec: R20.1."""
    torch.manual_seed(5)
    trainer = trainer_of(Drawing("dropout"), replicas)
    for _ in range(3):
        trainer.step(torch.ones(replicas, 3).double(), torch.ones(replicas))
    after = torch.rand(4)
    torch.manual_seed(5)
    for _ in range(3):
        functional.dropout(torch.ones(1, 3).double(), 0.5)
    assert torch.equal(after, torch.rand(4))


def test_a_late_draw_is_undone_and_done_again() -> None:
    """Forwards run twice in that step only, and count once. Spec: R20.3, R21.1."""
    trainer = trainer_of(Drawing("rand", first=2), 2)
    ones = torch.ones(2, 3, dtype=torch.float64)
    calls = []
    for _ in range(5):
        trainer.step(ones, ones)
        calls.append(len(trainer.replicas[1].outputs))  # type: ignore[arg-type]
    assert calls == [1, 2, 4, 5, 6]
    assert [int(replica.get_buffer("steps")) for replica in trainer.replicas] == [5, 5]


def test_data_parallel_finds_out_that_its_module_draws() -> None:
    """It runs in turn at first, and again after a late draw: every run is the same. Spec: R20.3."""
    runs = []
    for _ in range(2):
        torch.manual_seed(5)
        net = DataParallel(Drawing("rand", first=2), [CPU] * 4)
        ones = torch.ones(4000, 3, dtype=torch.float64)
        runs.append([net(ones).detach() for _ in range(4)])
        assert int(net.module.get_buffer("steps")) == 4
    assert_same(runs[0], runs[1])
    shards = runs[0][3].chunk(4)
    assert all(not torch.equal(a, b) for i, a in enumerate(shards) for b in shards[:i])


def test_a_draw_in_the_loss_or_backward_counts_too() -> None:
    """Whatever draws in a step, every replica draws on its own stream. Spec: R20.1, R20.2."""

    class Noisy(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:  # type: ignore[override]  # noqa: ANN401, ARG004
            return args[0].clone()

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:  # noqa: ANN401, ARG004
            return gradients[0] * torch.rand_like(gradients[0])

    def loss(outputs: torch.Tensor, _: object) -> torch.Tensor:
        total: torch.Tensor = (Noisy.apply(outputs) * torch.rand_like(outputs)).sum()
        return total

    gradients = []
    for workers in (1, 2):
        threads = torch.get_num_threads()
        torch.set_num_threads(workers)
        torch.manual_seed(1)
        model = nn.Linear(3, 2).double()
        trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.0), loss, [CPU] * 3)
        for _ in range(3):
            trainer.step(torch.ones(6, 3).double(), torch.ones(6))
        torch.set_num_threads(threads)
        gradients.append([parameter.grad for parameter in model.parameters()])
    assert_same(gradients[0], gradients[1])


@pytest.mark.parametrize("replicas", [1, 2, 3, 4])
@pytest.mark.parametrize("threads", [1, 2])
def test_draws_and_synchronization_together(replicas: int, threads: int) -> None:
    """Dropout between synchronized layers is reproducible, with any threads. Spec: R20.2, R22.3."""
    before = torch.get_num_threads()
    results = []
    for _ in range(2):
        torch.set_num_threads(threads)
        torch.manual_seed(5)
        model = nn.Sequential(
            nn.Linear(3, 4), SyncBatchNorm(4), nn.Dropout(0.5), nn.Linear(4, 4), SyncBatchNorm(4)
        ).double()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        trainer = Trainer(model, optimizer, functional.mse_loss, [CPU] * replicas)
        for size in (9, 4, 8):
            trainer.step(torch.randn(size, 3).double(), torch.randn(size, 4).double())
        results.append(dict(model.state_dict()))
    torch.set_num_threads(before)
    assert_same(results[0], results[1])


def test_what_draws_is_known_by_its_layers() -> None:
    """In its present mode; a module of the user's says so. Spec: R20.3."""

    class Own(nn.Module):
        draws = True

    drawing = [
        nn.Dropout(0.5), nn.Dropout1d(0.1), nn.Dropout2d(0.1), nn.Dropout3d(0.1),
        nn.AlphaDropout(0.1), nn.FeatureAlphaDropout(0.1), nn.RReLU(),
        LSTM(2, 2, num_layers=2, dropout=0.1), nn.MultiheadAttention(2, 1, dropout=0.1),
        nn.Transformer(2, 1, 1, 1, 2), nn.TransformerEncoderLayer(2, 1, 2),
        nn.TransformerDecoderLayer(2, 1, 2),
    ]  # fmt: skip
    assert all(draws(nn.Sequential(nn.ReLU(), module)) for module in drawing)
    assert not any(draws(module.eval()) for module in drawing)
    assert draws(nn.FractionalMaxPool2d(2, output_size=1).eval())
    assert draws(nn.Sequential(Own().eval()))
    assert not draws(nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.0), LSTM(2, 2)))
    assert not draws(nn.Transformer(2, 1, 1, 1, 2, dropout=0.0))


def test_parallel_apply_takes_states() -> None:
    """Without a trainer the streams can be kept by hand. Spec: R20.1."""
    torch.manual_seed(9)
    states = RandomStates([torch.device(CPU)] * 2)
    shards: list[tuple[()]] = [(), ()]
    drawn = [
        value
        for _ in range(2)
        for value in parallel_apply([lambda: torch.rand(()).item()] * 2, shards, states=states)
    ]
    streams = [torch.Generator().manual_seed(9 + index) for index in range(2)]
    assert drawn == [torch.rand((), generator=g).item() for _ in range(2) for g in streams]
