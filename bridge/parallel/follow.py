"""What the model is now, for its replicas."""

from collections.abc import Sequence
from copy import deepcopy

import torch
from torch import nn

from bridge.parallel.registered import registered
from bridge.parallel.resync import Buffers
from bridge.parallel.state_dict import check_state


@torch.no_grad()
def follow(replicas: Sequence[nn.Module], buffers: Buffers = "first") -> None:
    """Give every replica what replica 0 is now: its values, its modes, and what is frozen.

    So a model that is loaded, clamped, frozen or put in another mode takes its replicas along.
    Values are written past autograd: the graphs of earlier forwards stay valid, and where the
    model itself has changed since, that of replica 0 refuses.

    Args:
        replicas: modules with the same state.
        buffers: with ``"first"`` they follow too; those that are not persistent never do.

    Raises:
        RuntimeError: keys that are missing, unexpected, or of another shape or dtype, listed.

    Spec: R4.11, R25.4
    """
    state = replicas[0].state_dict()
    values = dict(registered(replicas[0]))
    left = set() if buffers == "first" else {name for name, _ in replicas[0].named_buffers()}
    for replica in replicas[1:]:
        check_state(replica, state)
        for name, own in registered(replica):
            if name in state and name not in left:
                own.data.copy_(values[name])
        for module, first in zip(replica.modules(), replicas[0].modules(), strict=True):
            module.training = first.training
            if type(first).get_extra_state is not nn.Module.get_extra_state:
                module.set_extra_state(deepcopy(first.get_extra_state()))
        parameters = zip(replica.parameters(), replicas[0].parameters(), strict=True)
        for parameter, leader in parameters:
            parameter.requires_grad = leader.requires_grad
