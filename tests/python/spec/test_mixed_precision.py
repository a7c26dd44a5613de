"""Mixed precision: products in bfloat16, all else in float32."""

import copy
import pickle
import re
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

from bridge import Trainer, mixed_precision, replicate
from bridge.models import LeNet
from bridge.parallel.mixed_precision import BF16, FLOAT32, INSIDE
from tests.python.spec.vectors import Case, assert_same, cases, refusal, tensor

DOCS = Path(__file__).parents[3] / "docs" / "mixed_precision.md"
KINDS: dict[str, tuple[Any, ...]] = {
    "Linear": (2, 2),
    "Conv2d": (1, 1, 1),
    "ConvTranspose2d": (1, 1, 1),
    "BatchNorm2d": (1,),
    "LayerNorm": (2,),
    "Embedding": (2, 2),
    "LSTM": (1, 1),
    "GRU": (1, 1),
    "MultiheadAttention": (2, 1),
}


def layer_of(case: Case) -> nn.Module:
    """Make the layer of a case, with its weight and bias."""
    weight, bias = tensor(case["operands"]["weight"], "float32"), case["operands"]["bias"]
    kernel = [tuple(weight.shape[2:])] if weight.dim() > 2 else []
    layer: nn.Module = getattr(nn, case["layer"])(weight.shape[1], weight.shape[0], *kernel)
    layer.load_state_dict({"weight": weight, "bias": tensor(bias, "float32")})
    return layer


def model_of(layers: list[list[Any]]) -> nn.Module:
    """Make a model of named layers."""
    children = (
        (name, getattr(nn, kind)(*KINDS.get(kind, ())) if isinstance(kind, str) else model_of(kind))
        for name, kind in layers
    )
    return nn.Sequential(OrderedDict(children))


@cases("mixed_precision")
def test_vectors(case: Case) -> None:
    """Results, states and refusals are those of the vectors. Spec: R18.2, R18.3, R18.6."""
    with refusal(case):
        if "model" in case:
            model = model_of(case["model"]).to(getattr(torch, case.get("dtype", "float32")))
            assert mixed_precision(model) is model
            return
        layer = mixed_precision(layer_of(case))
        inputs = tensor(case["operands"]["input"], case.get("dtypes", {}).get("input", "float32"))
        (check_training if "losses" in case else check_result)(case, layer, inputs)


def check_result(case: Case, layer: nn.Module, inputs: torch.Tensor) -> None:
    """Compare a result and its gradients."""
    output = layer(inputs.requires_grad_())
    assert_same(output.detach(), tensor(case["expected"], "float32"))
    gradient, leaves = tensor(case["gradient"], "float32"), [inputs, *layer.parameters()]
    actual = torch.autograd.grad(output, leaves, gradient)
    expected = [tensor(value, "float32") for value in case["gradients"].values()]
    assert_same(list(actual), expected)


def check_training(case: Case, layer: nn.Module, inputs: torch.Tensor) -> None:
    """Compare the losses of several steps and the state after them."""
    optimizer = torch.optim.SGD(layer.parameters(), lr=case["lr"])
    trainer = Trainer(layer, optimizer, functional.mse_loss)
    targets = tensor(case["targets"], "float32")
    assert [trainer.step(inputs, targets) for _ in case["losses"]] == case["losses"]
    expected = {name: tensor(value, "float32") for name, value in case["trained"].items()}
    assert_same(dict(trainer.state_dict()), expected)


@cases("mixed_precision_layers")
def test_lists(case: Case) -> None:
    """The lists are those of the vectors, PyTorch's names, and in the docs. Spec: R18.2, R18.3."""
    own = {"bfloat16": {kind.__name__ for kind in BF16}, "float32": FLOAT32, "refused": INSIDE}
    assert set(case["layers"]) == own[case["name"]]
    page = set(re.findall(r"`(\w+)`", DOCS.read_text(encoding="utf-8")))
    for name in case["layers"]:
        assert any(hasattr(nn, name + axes) for axes in ("", "1d", "2d")), name
        assert name in page, name


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_padding_modes(mode: str) -> None:
    """A padding mode gives what the same layer gives on an input so padded. Spec: R18.2."""
    layer = mixed_precision(nn.Conv2d(2, 3, 3, padding=(1, 2), padding_mode=mode))
    plain = mixed_precision(nn.Conv2d(2, 3, 3))
    plain.load_state_dict(layer.state_dict())
    inputs = torch.randn(2, 2, 5, 6)
    assert_same(layer(inputs), plain(functional.pad(inputs, (2, 2, 1, 1), mode)))


def test_no_sample() -> None:
    """A batch of no samples has a result of none. Spec: R18.2."""
    assert mixed_precision(LeNet())(torch.ones(0, 1, 28, 28)).shape == (0, 10)


def test_all_else_stays() -> None:
    """Names, parameters, gradients and a second call: nothing else changes. Spec: R18.2."""
    model = LeNet()
    plain = LeNet()
    before = dict(model.named_parameters())
    mixed_precision(mixed_precision(model))
    assert {name: id(p) for name, p in model.named_parameters()} == {
        name: id(p) for name, p in before.items()
    }
    assert list(model.state_dict()) == list(plain.state_dict())
    plain.load_state_dict(model.state_dict())
    inputs = torch.randn(3, 1, 28, 28)
    output = model(inputs)
    output.sum().backward()
    assert output.dtype == torch.float32
    assert {p.grad.dtype for p in model.parameters() if p.grad is not None} == {torch.float32}
    expected = plain(inputs).detach()
    difference = float((output.detach() - expected).abs().max())
    assert 0 < difference < 2**-5 * float(expected.abs().max())


def test_copies_are_mixed_too() -> None:
    """Replicas, deep copies and pickled models compute as the model does. Spec: R18.2."""
    model = mixed_precision(nn.Sequential(nn.Conv1d(1, 2, 3), nn.ReLU(), nn.Flatten()))
    inputs = torch.randn(4, 1, 7)
    pickled = pickle.loads(pickle.dumps(model))  # noqa: S301 - its own
    for other in (replicate(model, ["cpu"] * 2)[1], copy.deepcopy(model), pickled):
        assert_same(other(inputs), model(inputs))


def test_replicas_train_as_one() -> None:
    """Several replicas differ from one by roundings of bfloat16 only. Spec: R18.2, R8.1."""
    states = []
    for count in (1, 1, 3):
        torch.manual_seed(0)
        model = mixed_precision(nn.Sequential(nn.Linear(6, 11), nn.Tanh(), nn.Linear(11, 4)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        trainer = Trainer(model, optimizer, functional.cross_entropy, ["cpu"] * count)
        for _ in range(3):
            trainer.step(torch.randn(16, 6), torch.randint(0, 4, (16,)))
        states.append(dict(model.state_dict()))
    assert_same(states[0], states[1])
    for name, value in states[0].items():
        assert float((states[2][name] - value).abs().max()) <= 2**-8 * float(value.abs().max())


def test_hooks_see_float32() -> None:
    """Hooks that a layer has see its input and its result in float32. Spec: R18.2."""
    seen = []
    layer = nn.Linear(3, 2)
    layer.register_forward_hook(lambda _, inputs, output: seen.append((inputs[0], output)))
    inputs = torch.randn(4, 3)
    output = mixed_precision(layer)(inputs)
    assert_same(seen, [(inputs, output)])


def test_derived_layers() -> None:
    """A class of the user's own is taken, one derived from a product is not. Spec: R18.3."""

    class Own(nn.Linear):
        """A linear layer whose forward may be anything."""

    class Block(nn.Sequential):
        """A container of the user's own."""

    model = Block(Block(nn.Linear(2, 2)), Own(2, 2))
    text = (
        "mixed_precision: expected layers of known precision, got 1 of type Own, derived from "
        "Linear, which is on no list of what is bfloat16 and what float32"
    )
    with refusal({"raises": {"ValueError": text}}):
        mixed_precision(model)
    assert type(model[0][0]) is nn.Linear
    mixed_precision(model[0])
