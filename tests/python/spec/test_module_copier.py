"""Copying models of every kind."""

import gc
import threading
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations

from bridge import replicate
from tests.python.spec.holder import Holder
from tests.python.spec.vectors import assert_same

NN: Any = nn  # torch 1.13 has few types
UTILS: Any = nn.utils
FX: Any = torch.fx
JIT: Any = torch.jit
SEQUENCE = torch.linspace(-1, 1, 40).reshape(5, 1, 8)
KINDS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "lstm": (lambda: NN.LSTM(8, 4, 2, dropout=0.3, bidirectional=True), lambda m: m(SEQUENCE)[0]),
    "gru": (lambda: NN.GRU(8, 4, bias=False), lambda m: m(SEQUENCE)[0]),
    "rnn": (lambda: NN.RNN(8, 4, nonlinearity="relu"), lambda m: m(SEQUENCE)[0]),
    "cell": (lambda: NN.LSTMCell(8, 4), lambda m: m(SEQUENCE[0])[1]),
    "embedding": (
        lambda: NN.Embedding(5, 4, padding_idx=1, max_norm=0.5),
        lambda m: m(torch.tensor([0, 1, 2, 2])),
    ),
    "bag": (lambda: NN.EmbeddingBag(5, 4, mode="max"), lambda m: m(torch.tensor([[0, 1]]))),
    "attention": (lambda: NN.MultiheadAttention(8, 4, 0.3), lambda m: m(*[SEQUENCE] * 3)[0]),
    "transformer": (lambda: NN.Transformer(8, 2, 1, 1, 16, 0.3), lambda m: m(SEQUENCE, SEQUENCE)),
    "weight norm": (lambda: UTILS.weight_norm(nn.Linear(8, 2)), lambda m: m(SEQUENCE)),
    "spectral norm": (lambda: UTILS.spectral_norm(nn.Linear(8, 2)), lambda m: m(SEQUENCE)),
    "parametrized": (lambda: parametrizations.orthogonal(nn.Linear(8, 8)), lambda m: m(SEQUENCE)),
    "lazy": (lambda: NN.LazyLinear(2), lambda m: m(SEQUENCE) if m.in_features else SEQUENCE),
    "traced": (lambda: FX.symbolic_trace(nn.Linear(8, 2)), lambda m: m(SEQUENCE)),
    "script": (lambda: JIT.script(nn.Linear(8, 2)), lambda m: m(SEQUENCE)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KINDS)
def test_copies_compute_the_same(name: str) -> None:
    """A copy has the same options: draws, outputs and gradients are the same. Spec: R4.6."""
    make, call = KINDS[name]
    model = make()
    for training in (True, False):
        model.train(training)
        copy = replicate(model, ["cpu", "cpu"])[1]
        results = []
        for module in (model, copy):
            torch.manual_seed(5)
            module.zero_grad(set_to_none=True)
            output = call(module)
            if output.requires_grad:
                (output * torch.arange(output.numel()).reshape(output.shape)).sum().backward()
            gradients = [None if p.grad is None else p.grad for p in module.parameters()]
            results.append([output.detach(), gradients])
        assert_same(results[1], results[0])
        own = {p.data_ptr() for p in model.parameters()} if name != "lazy" else set()
        assert own.isdisjoint(p.data_ptr() for p in copy.parameters() if own)


def test_containers_are_copied() -> None:
    """Containers of torch's and of Python's hold the copy's modules and parameters. Spec: R4.4."""
    layer, weight = nn.Linear(2, 2), nn.Parameter(torch.ones(2))
    holders: list[Any] = [
        nn.ModuleList([layer]),
        nn.ModuleDict({"a": layer}),
        nn.Sequential(OrderedDict(a=layer)),
        nn.ParameterList([weight]),
        nn.ParameterDict({"a": weight}),
        [layer, weight],
        {"a": (layer, weight)},
        {layer: weight},
        {layer},
        deque([layer]),
    ]
    copy = replicate(Holder(holders), ["cpu", "cpu"])[1].held
    own_layer, own_weight = copy[5]
    assert own_layer is not layer
    assert own_weight is not weight
    assert own_weight.data_ptr() != weight.data_ptr()
    assert (copy[0][0], copy[1]["a"], copy[2].a) == (own_layer, own_layer, own_layer)
    assert copy[3][0] is copy[4]["a"] is copy[6]["a"][1] is copy[7][own_layer] is own_weight
    assert own_layer in copy[8]
    assert copy[9][0] is own_layer


KEPT = OrderedDict(a=1)


class Slots:
    """Has no ``__dict__``, where functions are mended."""

    __slots__ = ("function",)


def held_in_slots() -> Holder:
    """Make a model whose function cannot be put in the place of another."""
    model = Holder(Slots())
    model.held.function = lambda: model
    return model


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (
            Holder({0: [threading.Lock()]}),
            "held[0][0] of type lock, which cannot be copied (cannot pickle '_thread.lock' object)",
        ),
        (
            Holder(item for item in "ab"),
            "held of type generator, which cannot be copied (cannot pickle 'generator' object)",
        ),
        (held_in_slots(), "held.model of type Holder, which is still the model's own"),
        (Holder(weakref.proxy(KEPT)), "held of type ProxyType, which is a weak proxy"),
    ],
)
def test_what_cannot_be_copied_is_named(model: Holder, text: str) -> None:
    """What cannot be copied is refused by the name of its attribute. Spec: R4.8."""
    with pytest.raises(TypeError) as caught:
        replicate(model, ["cpu", "cpu"])
    refused = f"replicate: expected a model that can be copied, got Holder.{text}: give a factory"
    assert str(caught.value) == refused


def test_copies_are_collected() -> None:
    """Copies that nobody needs are collected, and copying draws nothing. Spec: R4.10."""
    model = Holder()
    calls: list[nn.Module] = []
    model.register_forward_hook(lambda *_: calls.append(model))
    random = torch.get_rng_state()
    copies = [weakref.ref(copy) for copy in replicate(model, ["cpu"] * 3)[1:]]
    gc.collect()
    assert [copy() for copy in copies] == [None, None]
    assert torch.equal(torch.get_rng_state(), random)
    assert replicate(model, ["cpu"])[0] is model
