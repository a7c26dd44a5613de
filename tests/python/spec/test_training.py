"""The trainer with every kind of loss and option, against one undivided model."""

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from bridge import ReplicaError, Trainer
from tests.python.spec.trainers import batch_of, everything, loss_of, trainer_of
from tests.python.spec.vectors import Case, assert_close, cases, number, refusal, tensor

CPU = "cpu"
sizes = st.lists(st.integers(1, 9), min_size=1, max_size=5)


def assert_state(trainer: Trainer, state: Case, relative: float) -> None:
    """Compare every replica's state with one of a vector."""
    for replica in trainer.replicas:
        for name, value in replica.state_dict().items():
            expected = tensor(state[name], str(value.dtype).removeprefix("torch."))
            assert_close(value, expected, relative if value.is_floating_point() else 0)


@cases("training")
def test_vectors(case: Case) -> None:
    """Every step leaves an undivided model's. Spec: R7.3, R7.4, R7.5, R7.6, R8.5, R8.6, R22.1."""
    trainer = trainer_of(case)
    for batch, loss, state in zip(case["batches"], case["losses"], case["states"], strict=True):
        actual = trainer.step(*batch_of(batch))
        assert_close(tensor(actual), tensor(loss), case["relative"])
        assert_state(trainer, state, case["relative"])
    assert trainer.flush() == ("flushed" in case)
    assert not trainer.flush()
    assert_state(trainer, case.get("flushed", case["states"][-1]), case["relative"])


@pytest.mark.parametrize(
    ("reduction", "value", "text"),
    [
        ("mean", torch.ones(2, 1), "a scalar tensor, got shape (2, 1)"),
        ("sum", None, "a scalar tensor, got NoneType"),
        ("mean", 1.0, "a scalar tensor, got float"),
        ("mean", (torch.ones(()), 1), "a scalar tensor, got tuple"),
        ("count", torch.ones(()), "a sum and a count, got Tensor"),
        ("count", (1.0, 1), "a scalar tensor, got float"),
        ("count", (torch.ones(2), 1), "a scalar tensor, got shape (2,)"),
        ("count", (torch.ones(()), None), "a count of one number, got NoneType"),
        ("count", (torch.ones(()), torch.ones(3)), "a count of one number, got shape (3,)"),
    ],
)
def test_what_is_no_loss_is_refused(reduction: Any, value: Any, text: str) -> None:  # noqa: ANN401
    """The error says what came instead. Spec: R8.5."""
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, optimizer, lambda *_: value, [CPU] * 2, reduction=reduction)
    with pytest.raises(ReplicaError) as caught:
        trainer.step(torch.ones(2, 1), torch.ones(2, 1))
    expected = f"Trainer: expected the loss to return {text}"
    assert [str(failure.error) for failure in caught.value.failures] == [expected] * 2


def test_numbers_out_of_range_are_refused() -> None:
    """A part of a batch, and fewer than no epochs. Spec: R8.3, R8.7."""
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    expected = "Trainer: expected accumulate to be a whole number, got 1.5"
    with refusal({"raises": {"ValueError": expected}}):
        Trainer(model, optimizer, functional.mse_loss, accumulate=1.5)  # type: ignore[arg-type]
    with refusal({"raises": {"ValueError": expected.replace("1.5", "nan")}}):
        Trainer(model, optimizer, functional.mse_loss, accumulate=float("nan"))  # type: ignore[arg-type]
    with refusal({"raises": {"ValueError": "Trainer: expected epochs of at least 0, got -1"}}):
        Trainer(model, optimizer, functional.mse_loss).fit([], epochs=-1)


@cases("trainer_options")
def test_refused_options(case: Case) -> None:
    """Options out of range are refused, in the words of the vectors. Spec: R8.7."""
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    options: dict[str, Any] = case["options"]
    read = {k: number(v) if k.startswith("clip") else v for k, v in options.items()}
    with refusal(case):
        Trainer(model, optimizer, functional.mse_loss, [CPU], **read)


@settings(max_examples=30, deadline=None)
@given(sizes, st.integers(1, 4), st.integers(1, 3), st.sampled_from(["mse", "tokens", "weighted"]))
def test_accumulation_is_one_large_batch(
    counts: list[int], replicas: int, accumulate: int, kind: str
) -> None:
    """Small batches leave what their union does, also the tail. Spec: R7.5, R8.5, R8.6."""
    generator = torch.Generator().manual_seed(sum(counts))
    batches = []
    for size in counts:
        targets = torch.randint(-1 if kind == "tokens" else 0, 3, (size,), generator=generator)
        wanted = torch.randn(size, 3, generator=generator, dtype=torch.float64)
        inputs = torch.randn(size, 2, generator=generator, dtype=torch.float64)
        batches.append((inputs, wanted if kind == "mse" else targets))
    torch.manual_seed(0)
    models = [nn.Linear(2, 3).double() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    trainers = [
        Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5),
                loss_of(kind, "count"), [CPU] * count, reduction="count", accumulate=batches)
        for model, count, batches in zip(models, (replicas, 1), (accumulate, 1), strict=True)
    ]  # fmt: skip
    for start in range(0, len(batches), accumulate):
        part = batches[start : start + accumulate]
        for batch in part:
            trainers[0].step(*batch)
        trainers[1].step(*(torch.cat(tensors) for tensors in zip(*part, strict=True)))
    trainers[0].flush()
    for one, other in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert float((one - other).abs().max()) <= 1e-12


def test_nothing_moves_where_nothing_counts() -> None:
    """A batch without a token leaves parameters, and its loss is 0. Spec: R8.6."""
    model = nn.Linear(2, 3)
    optimizer = torch.optim.Adam(model.parameters())
    trainer = Trainer(model, optimizer, loss_of("tokens", "count"), [CPU] * 2, reduction="count")
    before = [parameter.detach().clone() for parameter in model.parameters()]
    assert trainer.step(torch.randn(3, 2), torch.full((3,), -1)) == 0
    assert all(map(torch.equal, before, model.parameters()))
    assert trainer.evaluate([(torch.randn(3, 2), torch.full((3,), -1))]) == 0
    assert trainer.fit([(torch.randn(3, 2), torch.full((3,), -1))]) == [0]


@pytest.mark.parametrize("count", [float("nan"), -1.0, float("inf")])
def test_a_count_out_of_range_is_refused(count: float) -> None:
    """A count is finite and not negative; every replica's failure says so. Spec: R8.5."""
    model = nn.Linear(1, 1)
    trainer = Trainer(
        model, torch.optim.SGD(model.parameters(), lr=1.0),
        lambda outputs, _: (outputs.sum(), count), [CPU] * 2, reduction="count",
    )  # fmt: skip
    message = f"Trainer: expected a count that is finite and not negative, got {count}"
    with pytest.raises(ReplicaError) as caught:
        trainer.step(torch.ones(2, 1), torch.ones(2, 1))
    assert [str(failure.error) for failure in caught.value.failures] == [message] * 2


@pytest.mark.parametrize("reduction", ["mean", "sum", "count"])
def test_epochs_and_evaluations_average_alike(reduction: Any) -> None:  # noqa: ANN401 - a literal
    """With every reduction the mean over uneven batches is one of all samples. Spec: R8.3, R8.4."""
    model = nn.Linear(1, 3)
    trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.0),
                      loss_of("weighted", reduction), [CPU] * 2, reduction=reduction)  # fmt: skip
    inputs, targets = torch.randn(7, 1), torch.tensor([0, 1, 2, 2, 2, 1, 0])
    total, count = loss_of("weighted", "count")(model(inputs), targets)
    batches = [(inputs[:2], targets[:2]), (inputs[2:], targets[2:])]
    if reduction == "mean":
        batches = [(inputs, targets)] * 2  # A mean by weights is none by samples.
        trainer = Trainer(model, trainer.optimizer, loss_of("weighted", "mean"), [CPU])
    expected = float(total) / (len(targets) if reduction == "sum" else float(count))
    assert trainer.fit(batches) == [pytest.approx(expected, rel=1e-6)]
    assert trainer.evaluate(batches) == pytest.approx(expected, rel=1e-6)


def test_fit_flushes_the_tail_of_every_epoch() -> None:
    """Each epoch ends with an update from what waits. Spec: R7.5, R8.3."""
    model = nn.Linear(1, 1)
    trainer = Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1), functional.mse_loss,
                      [CPU] * 2, accumulate=2)  # fmt: skip
    trainer.fit([(torch.ones(2, 1), torch.ones(2, 1))] * 3, epochs=2)
    assert trainer.updates == 4


def test_half_precision_is_accumulated_in_single() -> None:
    """Batches of bfloat16 gradients are added in float32 and rounded once. Spec: R5.7, R7.5."""
    model = nn.Linear(1, 1, bias=False).to(torch.bfloat16)
    trainer = Trainer(
        model, torch.optim.SGD(model.parameters(), lr=0.0), lambda outputs, _: outputs.sum(),
        [CPU] * 2, reduction="sum", accumulate=3,
    )  # fmt: skip
    for value in (256, 1, 1):
        trainer.step(torch.full((1, 1), value, dtype=torch.bfloat16), torch.zeros(1))
    gradient = model.weight.grad
    assert gradient is not None
    assert (gradient.dtype, gradient.item()) == (torch.bfloat16, 258)


def test_sparse_gradients_train_as_one_model_does() -> None:
    """An embedding with sparse gradients, two replicas, accumulated. Spec: R5.7, R7.5."""
    torch.manual_seed(0)
    models = [nn.Embedding(6, 2, sparse=True).double() for _ in range(2)]
    models[1].load_state_dict(models[0].state_dict())
    trainers = [
        Trainer(model, torch.optim.SGD(model.parameters(), lr=0.1),
                lambda outputs, _: outputs.square().mean(), [CPU] * count, accumulate=count)
        for model, count in zip(models, (2, 1), strict=True)
    ]  # fmt: skip
    indices = torch.tensor([0, 1, 1, 5, 2, 0])
    trainers[0].step(indices[:3], indices[:3])
    trainers[0].step(indices[3:], indices[3:])
    trainers[1].step(indices, indices)
    gradient = models[0].weight.grad
    assert gradient is not None
    assert gradient.is_sparse
    assert float((models[0].weight - models[1].weight).abs().max()) <= 1e-12


def test_everything_is_all_that_a_step_changes() -> None:
    """What the tests of failures compare does change in a step. Spec: R21.1."""
    model = nn.Linear(1, 1)
    trainer = Trainer(model, torch.optim.Adam(model.parameters()), functional.mse_loss, [CPU] * 2)
    before = everything(trainer)
    trainer.step(torch.ones(2, 1), torch.zeros(2, 1))
    after = everything(trainer)
    assert [str(a) for a in after] != [str(b) for b in before]
