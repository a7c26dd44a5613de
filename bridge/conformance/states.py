"""Runs the rules of state dicts: what is in one, what loading refuses, and what it changes."""

from collections.abc import Callable

import torch
from torch import nn

from bridge.conformance import state_models as models
from bridge.conformance.outcome import Outcome, describe, keep


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


def _describe(outcome: Outcome, module: nn.Module) -> None:
    """Tell what is in a state."""
    outcome.texts["state"] = describe(module.state_dict())


def _load(outcome: Outcome, state: models.State, *, strict: bool = True) -> None:
    """Load a state: whether it is refused, whether the message names the keys, what it changed."""
    net = models.net()
    try:
        keys = net.load_state_dict(state, strict=strict)
        missing, unexpected = ", ".join(keys.missing_keys), ", ".join(keys.unexpected_keys)
        outcome.texts["result"] = f"loaded; missing {missing}; unexpected {unexpected}"
    except RuntimeError as error:
        outcome.texts["result"] = "refused"
        own, text = models.given(), str(error)
        odd = {
            name
            for name in {**state, **own}
            if name not in state or name not in own or own[name].shape != state[name].shape
        }
        outcome.texts["the message names each key"] = _word(all(name in text for name in odd))
    outcome.tensors.update({f"after.{name}": keep(part) for name, part in net.state_dict().items()})


def _aliases(outcome: Outcome) -> None:
    """Change a value of a state, and look at the model."""
    net = models.net()
    net.state_dict()["first.bias"].fill_(7)
    outcome.tensors["first.bias"] = keep(net.get_parameter("first.bias"))


def _copies(outcome: Outcome) -> None:
    """Change a value of a state that was loaded, and look at the model."""
    net, state = models.net(), models.given()
    net.load_state_dict(state)
    state["first.bias"].fill_(7)
    outcome.tensors["first.bias"] = keep(net.get_parameter("first.bias"))


def _keeps(outcome: Outcome) -> None:
    """Look at a parameter that was there before a state was loaded."""
    net = models.net()
    parameter = net.get_parameter("first.bias")
    net.load_state_dict(models.given())
    outcome.tensors["first.bias"] = keep(parameter)


def _frozen(outcome: Outcome) -> None:
    """Load a state into a model with a frozen parameter."""
    net = models.net()
    net.get_parameter("first.bias").requires_grad = False
    net.load_state_dict(models.given())
    flags = [f"{name} {_word(part.requires_grad)}" for name, part in net.named_parameters()]
    outcome.texts["requires gradient"] = ", ".join(flags)


def _gradients(outcome: Outcome) -> None:
    """Load a state into a model with a gradient."""
    net = models.net()
    net.get_parameter("first.bias").grad = torch.full([2], 3.0)
    net.load_state_dict(models.given())
    gradient = net.get_parameter("first.bias").grad
    outcome.tensors["gradient"] = torch.zeros(0) if gradient is None else keep(gradient)


def _require(outcome: Outcome) -> None:
    """Look whether the values of a state ask for gradients."""
    flag = models.net().state_dict()["first.weight"].requires_grad
    outcome.texts["requires gradient"] = _word(flag)


def _prefixed(outcome: Outcome) -> None:
    """Make a state with a prefix."""
    outcome.texts["state"] = describe(models.net().state_dict(prefix="net."))


def _added(outcome: Outcome) -> None:
    """Add a state to a dictionary."""
    other = {"other": torch.ones(1)}
    outcome.texts["state"] = describe(nn.Linear(3, 2).state_dict(destination=other))


def _word(flag: bool) -> str:  # noqa: FBT001 - it is what is worded
    """Say yes or no."""
    return "yes" if flag else "no"


RULES: dict[str, Callable[[Outcome], None]] = {
    "keys": lambda o: _describe(o, models.net()),
    "keys without bias": lambda o: _describe(o, nn.Linear(3, 2, bias=False)),
    "keys of a tied layer": lambda o: _describe(o, models.tied()),
    "keys of a persistent buffer": lambda o: _describe(o, models.with_buffer(persistent=True)),
    "keys of a buffer that is not persistent": lambda o: _describe(
        o, models.with_buffer(persistent=False)
    ),
    "keys of ModuleList": lambda o: _describe(o, nn.ModuleList([nn.Linear(3, 2), nn.Linear(2, 1)])),
    "keys of ModuleList in a module": lambda o: _describe(o, models.Holder()),
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
    "keys in float64": lambda o: _describe(o, models.net().to(torch.float64)),
    "keys with the prefix net.": _prefixed,
    "keys added to a dictionary": _added,
    "a missing key, strict": lambda o: _load(o, models.without("first.bias")),
    "a missing key, not strict": lambda o: _load(o, models.without("first.bias"), strict=False),
    "an unexpected key, strict": lambda o: _load(o, models.replaced("extra.weight", torch.ones(2))),
    "an unexpected key, not strict": lambda o: _load(
        o, models.replaced("extra.weight", torch.ones(2)), strict=False
    ),
    "another name, not strict": lambda o: _load(o, models.renamed(), strict=False),
    "an empty state, strict": lambda o: _load(o, {}),
    "an empty state, not strict": lambda o: _load(o, {}, strict=False),
    "a wrong shape": lambda o: _load(o, models.replaced("first.weight", torch.full([5, 7], 2.0))),
    "a wrong shape, not strict": lambda o: _load(
        o, models.replaced("first.weight", torch.full([5, 7], 2.0)), strict=False
    ),
    "a wrong shape that broadcasts": lambda o: _load(
        o, models.replaced("first.weight", torch.full([1, 3], 2.0))
    ),
    "a scalar in place of a vector": lambda o: _load(
        o, models.replaced("first.bias", torch.tensor(2.0))
    ),
    "a vector of one in place of a scalar": lambda o: _load(
        o, models.replaced("norm.num_batches_tracked", torch.full([1], 2))
    ),
    "float64 values": lambda o: _load(
        o, models.replaced("first.bias", torch.full([2], 0.1, dtype=torch.float64))
    ),
    "int64 values": lambda o: _load(o, models.replaced("first.bias", torch.full([2], 3))),
    "values that are not finite": lambda o: _load(
        o, models.replaced("first.bias", torch.tensor([float("nan"), float("inf")]))
    ),
    "keys in another order": lambda o: _load(o, dict(reversed(models.given().items()))),
    "the buffers' values": lambda o: _load(
        o, models.replaced("norm.running_mean", torch.full([2], 0.5))
    ),
    "values alias the model": _aliases,
    "values require no gradient": _require,
    "loading copies": _copies,
    "loading keeps the tensors": _keeps,
    "loading keeps what is frozen": _frozen,
    "loading keeps gradients": _gradients,
}
"""Each rule under the name of its case; C# has the same."""
