"""Runs a case in PyTorch, and says what C# needs to do the same."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from bridge.conformance import states, values
from bridge.conformance.cases import Case
from bridge.conformance.outcome import Outcome, describe, keep
from bridge.conformance.values import draw, find, keywords

Result = tuple[Outcome, list[Any], dict[str, Any]]
"""What it gave, the inputs, and more that C# needs."""

_SHAPES = ("3x4", "5", "2x3x2")


def run(case: Case) -> Result:
    """Run a case in PyTorch.

    Raises:
        Exception: whatever PyTorch raises.

    Spec: R31.2
    """
    runners: dict[str, Callable[[Case], Result]] = {
        "layer": _layer,
        "function": _function,
        "optimizer": _optimizer,
        "scheduler": _scheduler,
        "state": _state,
    }
    return runners[case.runner](case)


def _layer(case: Case) -> Result:
    """Run a layer or a loss: initial values, forward, gradients, buffers, evaluation mode."""
    outcome = Outcome()
    torch.manual_seed(case.seed)
    layer = find(case.torch)(**keywords(case.arguments))
    state = {name: keep(value) for name, value in layer.state_dict().items()}
    outcome.texts["names"] = describe(state)
    outcome.tensors.update({f"initial.{name}": value for name, value in state.items()})
    drawn = values.inputs(case)
    leaves = values.leaves(case, drawn)
    sent = [_detached(value) for value in drawn]
    named = case.options.get("forward", {})
    torch.manual_seed(case.seed + 1)
    outputs = outcome.add("output", layer(*_ask(drawn, leaves), **named))
    outcome.differentiate(
        outputs,
        {**{f"input{place}": drawn[place] for place in leaves}, **dict(layer.named_parameters())},
    )
    outcome.tensors.update({f"buffer.{key}": keep(part) for key, part in layer.named_buffers()})
    layer.eval()
    with torch.no_grad():
        torch.manual_seed(case.seed + 1)
        outcome.add("eval", layer(*drawn, **named))
    return outcome, sent, {"state": state, "leaves": leaves, "forward": dict(named)}


def _function(case: Case) -> Result:
    """Run a function, an initializer or a random draw: its outputs and gradients."""
    outcome = Outcome()
    drawn = values.inputs(case)
    leaves = values.leaves(case, drawn)
    sent = [_detached(value) for value in drawn]
    torch.manual_seed(case.seed)
    outputs = outcome.add(
        "output", find(case.torch)(*_ask(drawn, leaves), **keywords(case.arguments))
    )
    outcome.differentiate(outputs, {f"input{place}": drawn[place] for place in leaves})
    return outcome, sent, {"leaves": leaves}


def _optimizer(case: Case) -> Result:
    """Run an optimizer on given gradients: the parameters after every step."""
    outcome = Outcome()
    first = [draw(shape, 20 + place) for place, shape in enumerate(_SHAPES)]
    parameters = [torch.nn.Parameter(tensor.clone()) for tensor in first]
    closure = bool(case.options.get("closure"))
    absent = bool(case.options.get("absent"))
    gradients = [_gradients(step, absent) for step in range(case.options.get("steps", 10))]
    optimizer = find(case.torch)(parameters, **keywords(case.arguments))
    for step, given in enumerate(gradients):

        def loss(given: list[torch.Tensor | None] = given) -> torch.Tensor:
            optimizer.zero_grad()
            pairs = zip(parameters, given, strict=True)
            parts = [(own - other).square().sum() for own, other in pairs if other is not None]
            total = parts[0] + parts[1] + parts[2]
            total.backward()  # type: ignore[no-untyped-call]
            return total

        if closure:
            optimizer.step(loss)
        else:
            for parameter, gradient in zip(parameters, given, strict=True):
                parameter.grad = None if gradient is None else gradient.clone()
            optimizer.step()
        outcome.add(f"step {step + 1}", parameters)
    return outcome, [], {"parameters": first, "gradients": gradients, "closure": closure}


def _gradients(step: int, absent: bool) -> list[torch.Tensor | None]:  # noqa: FBT001 - of the data
    """Draw the gradients of a step; ``absent``: the second has none in every third step."""
    drawn = [draw(shape, 1000 + 10 * step + place) for place, shape in enumerate(_SHAPES)]
    lacks = absent and step % 3 == 2  # noqa: PLR2004 - every third
    return [None if lacks and place == 1 else gradient for place, gradient in enumerate(drawn)]


def _scheduler(case: Case) -> Result:
    """Run a scheduler: the learning rate before and after every step, and the momentum."""
    outcome = Outcome()
    lr, steps = case.options.get("lr", 0.5), case.options.get("steps", 30)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr, momentum=0.9)
    scheduler = _schedule(case.torch, case.arguments, optimizer)
    metrics = _metrics(steps) if case.options.get("metrics") else None
    group = optimizer.param_groups[0]
    rates, momenta = [group["lr"]], [group["momentum"]]
    for step in range(steps):
        optimizer.step()
        scheduler.step(*([metrics[step]] if metrics else []))
        rates.append(group["lr"])
        momenta.append(group["momentum"])
    outcome.tensors["rates"] = torch.tensor(rates, dtype=torch.float64)
    outcome.tensors["momenta"] = torch.tensor(momenta, dtype=torch.float64)
    return outcome, [], {"lr": lr, "steps": steps, "metrics": metrics}


def _schedule(name: str, arguments: Mapping[str, Any], optimizer: torch.optim.Optimizer) -> Any:  # noqa: ANN401 - a scheduler
    """Make a scheduler; one of schedulers has its own made first."""
    inner = [
        _schedule(part["scheduler"], part["arguments"], optimizer)
        for part in arguments.get("schedulers", ())
    ]
    rest = keywords({key: value for key, value in arguments.items() if key != "schedulers"})
    rest = {key: list(part) if isinstance(part, tuple) else part for key, part in rest.items()}
    if name.endswith("ChainedScheduler"):
        return find(name)(inner, **rest)
    return find(name)(optimizer, **({"schedulers": inner} if inner else {}), **rest)


def _metrics(steps: int) -> list[float]:
    """Make a metric that improves, stays, worsens, and improves again."""
    return [
        float(max(8 - step, 4) + (step > steps // 2) * (step % 5) * 0.25) for step in range(steps)
    ]


def _state(case: Case) -> Result:
    """Run a rule of state dicts."""
    torch.manual_seed(case.seed)
    return states.run(case.torch), [], {}


def _ask(drawn: list[Any], leaves: list[int]) -> list[Any]:
    """Ask for the gradients of some inputs."""
    for place in leaves:
        drawn[place].requires_grad_()
    return drawn


def _detached(value: Any) -> Any:  # noqa: ANN401 - a tensor, a number or a list
    """Copy the tensors of an input, before a function can change them."""
    if isinstance(value, list):
        return [_detached(part) for part in value]
    return value.detach().clone() if isinstance(value, torch.Tensor) else value
