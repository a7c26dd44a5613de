"""Update the parameters of all replicas."""

from collections.abc import Sequence

from torch import nn
from torch.optim import LBFGS, Optimizer

from bridge.parallel.resync import Buffers, resync


def step(
    replicas: Sequence[nn.Module],
    optimizer: Optimizer | Sequence[Optimizer],
    buffers: Buffers = "first",
) -> None:
    """Step the optimizer of replica 0 and resync the others, or step one optimizer per replica.

    With one optimizer (mode ``master``) the others take replica 0's state. With one optimizer per
    replica (mode ``all``) each steps on its own copy of the averaged gradients; storage is never
    shared. Buffers follow the policy of :func:`resync`.

    Args:
        replicas: the modules, with averaged gradients.
        optimizer: on replica 0's parameters; or a list, each on its replica's parameters.
        buffers: ``"first"``, ``"mean"`` or ``"each"``.

    Raises:
        ValueError: no replicas, another number of optimizers, or an optimizer on parameters of
            another model, or on one twice, or one that needs a closure.

    Spec: R7.1, R7.2, R7.3
    """
    if not replicas:
        message = "step: expected at least 1 replica, got 0"
        raise ValueError(message)
    if isinstance(optimizer, Optimizer):
        _check(optimizer, replicas[0], 0)
        optimizer.step()
        resync(replicas, buffers)
        return
    if len(optimizer) != len(replicas):
        count = len(replicas)
        message = f"step: expected {count} optimizers, one per replica, got {len(optimizer)}"
        raise ValueError(message)
    for index, (own, replica) in enumerate(zip(optimizer, replicas, strict=True)):
        _check(own, replica, index)
    for own in optimizer:
        own.step()
    if buffers != "each" and any(True for _ in replicas[0].buffers()):
        resync(replicas, buffers)


def _check(optimizer: Optimizer, replica: nn.Module, index: int) -> None:
    """Refuse an optimizer that needs a closure, or whose parameters are not its replica's, once."""
    if isinstance(optimizer, LBFGS):
        message = "step: expected an optimizer that steps without a closure, got LBFGS"
        raise ValueError(message)  # noqa: TRY004 - as for another optimizer that does not fit
    own = {id(parameter) for parameter in replica.parameters()}
    held = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    strangers = sum(id(parameter) not in own for parameter in held)
    if strangers:
        message = (
            f"step: expected an optimizer on the parameters of replica {index}, "
            f"got {strangers} of {len(held)} parameters of another model"
        )
        raise ValueError(message)
    again = len(held) - len({id(parameter) for parameter in held})
    if again:
        expected = "an optimizer that has every parameter once"
        message = f"step: expected {expected}, got {again} of {len(held)} again"
        raise ValueError(message)
