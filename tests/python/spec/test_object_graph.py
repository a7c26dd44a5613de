"""What the functions of a model captured: the copy's, or shared."""

import weakref
from functools import partial
from typing import Any

import torch
from torch import nn

from bridge import replicate
from tests.python.spec.holder import Holder, Recorder


def copied(model: Holder) -> Holder:
    """Make one copy."""
    return replicate(model, ["cpu", "cpu"])[1]


def test_hooks_act_on_the_copy_and_record_for_the_caller() -> None:
    """A hook that captured the model acts on the copy, and writes to the caller. Spec: R4.5."""
    model = Holder()
    sums: list[float] = []
    model.register_forward_hook(lambda *_: sums.append(model.layer.weight.sum().item()))
    copy = copied(model)
    with torch.no_grad():
        model.layer.weight.fill_(1)
        copy.layer.weight.fill_(2)
    copy(torch.ones(1, 2))
    model(torch.ones(1, 2))
    assert sums == [8, 4]


def test_functions_of_every_kind_lead_to_the_copy() -> None:
    """Closures, defaults, partials and methods captured the copy. Spec: R4.5."""
    model = Holder()
    layers = [model.layer]
    pair = (lambda: model.layer,)

    def nested() -> nn.Module:
        return layers[0] if layers else nested()

    model.held = {
        "closure": lambda: model.layer,
        "default": lambda owner=model: owner.layer,
        "keyword": lambda *, owner=model: owner.layer,
        "container": nested,
        "partial": partial(lambda owner: owner.layer, model),
        "partial of a closure": partial(lambda: model.layer),
        "list": [lambda: model.layer],
        "tuple": pair,
        "tuple again": pair,
        "method": model.get_submodule,
        "method of C": [model.layer].copy,
    }
    held = copied(model).held
    copy = held["default"].__defaults__[0]
    assert copy is not model
    for name in ("closure", "default", "keyword", "container", "partial", "partial of a closure"):
        assert held[name]() is copy.layer, name
    assert held["list"][0]() is copy.layer
    assert held["tuple"][0]() is copy.layer
    assert held["tuple again"] is held["tuple"]
    assert held["method"]("layer") is copy.layer
    assert held["method of C"]() == [copy.layer]
    assert layers == [model.layer]


def test_what_leads_elsewhere_is_shared() -> None:
    """What a function captured from elsewhere is shared. Spec: R4.5."""
    model = Holder()
    teacher = nn.Linear(2, 2)
    recorder = Recorder(model)
    model.held = (lambda: teacher, torch.relu, nn.functional.relu)
    copy = copied(model)
    copy(torch.ones(1, 2))
    assert copy.held[0]() is teacher
    assert copy.held[1:] == model.held[1:]
    assert recorder.calls == [copy]


def test_captured_variables_stay_one() -> None:
    """A counter that a hook captured counts for all replicas. Spec: R4.5."""
    model = Holder()
    count = 0

    def hook(*_: object) -> None:
        nonlocal count
        count += model.layer.in_features

    model.register_forward_hook(hook)
    copied(model)(torch.ones(1, 2))
    assert count == 2


def test_what_the_model_holds_stays_one() -> None:
    """What the model holds is one object in the copy, whoever captured it. Spec: R4.4, R4.5."""
    model = Holder([])
    counts = model.held
    model.register_forward_hook(lambda *_: counts.append(1))
    copy = copied(model)
    copy(torch.ones(1, 2))
    assert (counts, copy.held) == ([], [1])


def test_hooks_of_parameters_come_along() -> None:
    """A parameter's hooks and attributes are those of the original's, on the copy. Spec: R4.5."""
    model = Holder()
    mask = torch.tensor([0.0, 1.0])
    bias: Any = model.layer.bias
    bias.register_hook(lambda gradient: gradient * mask * model.layer.in_features)
    bias.no_decay = True
    bias.requires_grad = False
    copy: Any = copied(model)
    assert not copy.layer.bias.requires_grad
    copy.layer.bias.requires_grad = True
    copy(torch.ones(1, 2)).sum().backward()
    assert copy.layer.bias.grad.tolist() == [0, 2]
    assert copy.layer.bias.no_decay is True


def test_weak_references_lead_to_the_copy() -> None:
    """Weak references to the model lead to the copy, others stay. Spec: R4.5."""
    model, outside = Holder(), nn.ReLU()
    model.held = [weakref.ref(model), weakref.ref(outside)]
    copy = copied(model)
    assert copy.held[0]() is copy
    assert copy.held[1]() is outside
