"""The modes of the caller's thread hold in every replica."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from bridge import DataParallel, SyncBatchNorm, Trainer, parallel_apply
from bridge.parallel.thread_modes import ThreadModes
from tests.python.spec.vectors import assert_same

CPU = "cpu"


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """Let two replicas run at once."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def autocast(**options: bool) -> Any:  # noqa: ANN401 - torch 1.13 does not name the type
    """Make products in bfloat16."""
    own: Any = torch
    return own.autocast(CPU, torch.bfloat16, **options)


def network(norm: Callable[[int], nn.Module] = nn.Identity) -> nn.Sequential:
    """Make a network whose first weight is used twice."""
    torch.manual_seed(3)
    twice = nn.Linear(8, 8)
    return nn.Sequential(twice, nn.Tanh(), twice, norm(8), nn.Linear(8, 4))


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """Draw a batch."""
    generator = torch.Generator().manual_seed(4)
    return torch.randn(6, 8, generator=generator), torch.arange(6) % 4


@pytest.mark.parametrize("workers", [1, 2])
def test_autocast_is_the_callers(workers: int) -> None:
    """Products are in bfloat16 where they are in the caller's thread. Spec: R3.4."""
    weight = torch.randn(8, 8)

    def product(x: torch.Tensor) -> torch.Tensor:
        return x @ weight

    replicas = [product] * 2
    shards = list(batch()[0].chunk(2))
    plain = parallel_apply(replicas, shards, workers=workers)
    with autocast():
        narrow = parallel_apply(replicas, shards, workers=workers)
        with autocast(enabled=False):
            wide = parallel_apply(replicas, shards, workers=workers)
        expected = [replica(shard) for replica, shard in zip(replicas, shards, strict=True)]
    assert [result.dtype for result in plain + narrow] == [torch.float32] * 2 + [torch.bfloat16] * 2
    assert_same(narrow, expected)
    assert_same(wide, plain)


@pytest.mark.parametrize("workers", [1, 2])
def test_inference_mode_is_the_callers(workers: int) -> None:
    """What replicas make in inference mode are inference tensors. Spec: R3.4."""
    weight = torch.ones(1, requires_grad=True)
    own: Any = torch
    with own.inference_mode():
        results = parallel_apply([lambda x: x * weight] * 2, [torch.ones(1)] * 2, workers=workers)
    assert [(r.is_inference(), r.requires_grad) for r in results] == [(True, False)] * 2


def test_whether_casts_are_kept_is_the_callers() -> None:
    """Also whether autocast keeps its casts; the thread is left as it was. Spec: R3.4."""
    with autocast(cache_enabled=False):
        kept = parallel_apply([lambda _: torch.is_autocast_cache_enabled()] * 2, [0, 0], workers=2)
        modes = ThreadModes()
    assert kept == [False, False]
    with modes.entered():
        assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.bfloat16
    assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == torch.float32
    assert torch.is_autocast_cache_enabled()


@pytest.mark.parametrize("whole", [False, True])
def test_one_replica_trains_as_a_plain_loop_under_autocast(*, whole: bool) -> None:
    """Bit for bit, with a context around each step or around all. Spec: R3.4, R8.1."""
    models = [network(), network()]
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.5) for model in models]
    trainer = Trainer(models[0], optimizers[0], functional.cross_entropy)
    inputs, targets = batch()
    with autocast(enabled=whole):
        for _ in range(3):
            with autocast():
                trainer.step(inputs, targets)
    for _ in range(3):
        optimizers[1].zero_grad(set_to_none=True)
        with autocast():
            loss = functional.cross_entropy(models[1](inputs), targets)
        torch.autograd.backward(loss)
        optimizers[1].step()
    assert_same(dict(models[0].state_dict()), dict(models[1].state_dict()))


@pytest.mark.parametrize("norm", [nn.Identity, SyncBatchNorm])
def test_any_number_of_threads_trains_to_the_same_bits_under_autocast(
    norm: Callable[[int], nn.Module],
) -> None:
    """And to others than without autocast. Spec: R3.4, R22.3."""
    states = []
    for number, enabled in ((1, True), (2, True), (2, True), (2, False)):
        torch.set_num_threads(number)
        model = network(norm)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        trainer = Trainer(model, optimizer, functional.cross_entropy, [CPU] * 3)
        with autocast(enabled=enabled):
            for _ in range(3):
                trainer.step(*batch())
        states.append(dict(model.state_dict()))
    assert_same(states[0], states[1])
    assert_same(states[0], states[2])
    assert not torch.equal(states[0]["4.weight"], states[3]["4.weight"])


def test_data_parallel_runs_under_autocast() -> None:
    """Outputs are those of the module, and gradients flow back to float32. Spec: R3.4, R25.1."""
    module = network()
    inputs, targets = batch()
    with autocast():
        outputs = DataParallel(module, [CPU] * 2)(inputs)
        expected = module(inputs)
    assert_same(outputs.detach(), expected.detach())
    functional.cross_entropy(outputs.float(), targets).backward()  # type: ignore[no-untyped-call]
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in module.parameters())
