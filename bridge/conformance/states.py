"""Runs the rules of state dicts: what is in one, what loading refuses, and what it changes."""

from collections.abc import Callable

import torch
from torch import nn

from bridge.conformance.outcome import Outcome, describe, keep

State = dict[str, torch.Tensor]


def run(rule: str) -> Outcome:
    """Run one rule.

    Raises:
        ValueError: no such rule.
    """
    if rule not in RULES:
        message = f"states: expected a rule of {'; '.join(RULES)}, got {rule}"
        raise ValueError(message)
    outcome = Outcome()
    RULES[rule](outcome)
    return outcome


def _net() -> nn.Sequential:
    """Make the module that most rules are tried on."""
    net = nn.Sequential()
    net.add_module("first", nn.Linear(3, 2))
    net.add_module("norm", nn.BatchNorm1d(2))
    return net


class _Holder(nn.Module):
    """Holds a list of layers."""

    def __init__(self) -> None:
        """Make the layers."""
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 2), nn.Linear(2, 1)])


def _tied() -> nn.Sequential:
    """Hold one layer under two names."""
    layer, net = nn.Linear(2, 2), nn.Sequential()
    net.add_module("one", layer)
    net.add_module("two", layer)
    return net


def _with_buffer(*, persistent: bool) -> nn.Sequential:
    """Add a buffer to the module."""
    net = _net()
    net.register_buffer("extra", torch.ones(2), persistent=persistent)
    return net


def _given() -> State:
    """Make a state of the net's own form, of other values."""
    return {name: torch.full_like(value, 2) for name, value in _net().state_dict().items()}


def _with(name: str, value: torch.Tensor) -> State:
    """Replace or add one tensor."""
    return {**_given(), name: value}


def _without(name: str) -> State:
    """Leave one tensor out."""
    return {key: value for key, value in _given().items() if key != name}


def _renamed() -> State:
    """Give the first layer another name."""
    return {name.replace("first", "head"): value for name, value in _given().items()}


def _describe(outcome: Outcome, module: nn.Module) -> None:
    """Tell what is in a state."""
    outcome.texts["state"] = describe(module.state_dict())


def _load(outcome: Outcome, state: State, *, strict: bool = True) -> None:
    """Load a state: whether it is refused, whether the message names the keys, what it changed."""
    net = _net()
    try:
        keys = net.load_state_dict(state, strict=strict)
        missing, unexpected = ", ".join(keys.missing_keys), ", ".join(keys.unexpected_keys)
        outcome.texts["result"] = f"loaded; missing {missing}; unexpected {unexpected}"
    except RuntimeError as error:
        outcome.texts["result"] = "refused"
        own, text = _given(), str(error)
        odd = {
            name
            for name in {**state, **own}
            if name not in state or name not in own or own[name].shape != state[name].shape
        }
        outcome.texts["the message names each key"] = _word(all(name in text for name in odd))
    outcome.tensors.update({f"after.{name}": keep(part) for name, part in net.state_dict().items()})


def _aliases(outcome: Outcome) -> None:
    """Change a value of a state, and look at the model."""
    net = _net()
    net.state_dict()["first.bias"].fill_(7)
    outcome.tensors["first.bias"] = keep(net.get_parameter("first.bias"))


def _copies(outcome: Outcome) -> None:
    """Change a value of a state that was loaded, and look at the model."""
    net, state = _net(), _given()
    net.load_state_dict(state)
    state["first.bias"].fill_(7)
    outcome.tensors["first.bias"] = keep(net.get_parameter("first.bias"))


def _keeps(outcome: Outcome) -> None:
    """Look at a parameter that was there before a state was loaded."""
    net = _net()
    parameter = net.get_parameter("first.bias")
    net.load_state_dict(_given())
    outcome.tensors["first.bias"] = keep(parameter)


def _frozen(outcome: Outcome) -> None:
    """Load a state into a model with a frozen parameter."""
    net = _net()
    net.get_parameter("first.bias").requires_grad = False
    net.load_state_dict(_given())
    flags = [f"{name} {_word(part.requires_grad)}" for name, part in net.named_parameters()]
    outcome.texts["requires gradient"] = ", ".join(flags)


def _gradients(outcome: Outcome) -> None:
    """Load a state into a model with a gradient."""
    net = _net()
    net.get_parameter("first.bias").grad = torch.full([2], 3.0)
    net.load_state_dict(_given())
    gradient = net.get_parameter("first.bias").grad
    outcome.tensors["gradient"] = torch.zeros(0) if gradient is None else keep(gradient)


def _require(outcome: Outcome) -> None:
    """Look whether the values of a state ask for gradients."""
    flag = _net().state_dict()["first.weight"].requires_grad
    outcome.texts["requires gradient"] = _word(flag)


def _prefixed(outcome: Outcome) -> None:
    """Make a state with a prefix."""
    outcome.texts["state"] = describe(_net().state_dict(prefix="net."))


def _added(outcome: Outcome) -> None:
    """Add a state to a dictionary."""
    other = {"other": torch.ones(1)}
    outcome.texts["state"] = describe(nn.Linear(3, 2).state_dict(destination=other))


def _word(flag: bool) -> str:  # noqa: FBT001 - it is what is worded
    """Say yes or no."""
    return "yes" if flag else "no"


RULES: dict[str, Callable[[Outcome], None]] = {
    "keys": lambda o: _describe(o, _net()),
    "keys without bias": lambda o: _describe(o, nn.Linear(3, 2, bias=False)),
    "keys of a tied layer": lambda o: _describe(o, _tied()),
    "keys of a persistent buffer": lambda o: _describe(o, _with_buffer(persistent=True)),
    "keys of a buffer that is not persistent": lambda o: _describe(
        o, _with_buffer(persistent=False)
    ),
    "keys of ModuleList": lambda o: _describe(o, nn.ModuleList([nn.Linear(3, 2), nn.Linear(2, 1)])),
    "keys of ModuleList in a module": lambda o: _describe(o, _Holder()),
    "keys of ModuleDict": lambda o: _describe(
        o, nn.ModuleDict({"one": nn.Linear(3, 2), "two": nn.Linear(2, 1)})
    ),
    "keys of ParameterList": lambda o: _describe(
        o, nn.ParameterList([nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(3))])
    ),
    "keys of ParameterDict": lambda o: _describe(
        o,
        nn.ParameterDict({"one": nn.Parameter(torch.ones(2)), "two": nn.Parameter(torch.ones(3))}),
    ),
    "keys in float64": lambda o: _describe(o, _net().to(torch.float64)),
    "keys with the prefix net.": _prefixed,
    "keys added to a dictionary": _added,
    "a missing key, strict": lambda o: _load(o, _without("first.bias")),
    "a missing key, not strict": lambda o: _load(o, _without("first.bias"), strict=False),
    "an unexpected key, strict": lambda o: _load(o, _with("extra.weight", torch.ones(2))),
    "an unexpected key, not strict": lambda o: _load(
        o, _with("extra.weight", torch.ones(2)), strict=False
    ),
    "another name, not strict": lambda o: _load(o, _renamed(), strict=False),
    "an empty state, strict": lambda o: _load(o, {}),
    "an empty state, not strict": lambda o: _load(o, {}, strict=False),
    "a wrong shape": lambda o: _load(o, _with("first.weight", torch.full([5, 7], 2.0))),
    "a wrong shape, not strict": lambda o: _load(
        o, _with("first.weight", torch.full([5, 7], 2.0)), strict=False
    ),
    "a wrong shape that broadcasts": lambda o: _load(
        o, _with("first.weight", torch.full([1, 3], 2.0))
    ),
    "a scalar in place of a vector": lambda o: _load(o, _with("first.bias", torch.tensor(2.0))),
    "a vector of one in place of a scalar": lambda o: _load(
        o, _with("norm.num_batches_tracked", torch.full([1], 2))
    ),
    "float64 values": lambda o: _load(
        o, _with("first.bias", torch.full([2], 0.1, dtype=torch.float64))
    ),
    "int64 values": lambda o: _load(o, _with("first.bias", torch.full([2], 3))),
    "values that are not finite": lambda o: _load(
        o, _with("first.bias", torch.tensor([float("nan"), float("inf")]))
    ),
    "keys in another order": lambda o: _load(o, dict(reversed(_given().items()))),
    "the buffers' values": lambda o: _load(o, _with("norm.running_mean", torch.full([2], 0.5))),
    "values alias the model": _aliases,
    "values require no gradient": _require,
    "loading copies": _copies,
    "loading keeps the tensors": _keeps,
    "loading keeps what is frozen": _frozen,
    "loading keeps gradients": _gradients,
}
"""Each rule under the name of its case; C# has the same."""
