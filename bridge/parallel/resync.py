"""Give every replica the state of replica 0."""

from collections.abc import Sequence

from torch import nn


def resync(replicas: Sequence[nn.Module]) -> None:
    """Let every replica take replica 0's state through ``load_state_dict``: parameters and buffers.

    Args:
        replicas: modules with the same state.

    Raises:
        ValueError: no replicas.
        RuntimeError: keys that are missing, unexpected or of another shape, listed by
            ``load_state_dict``.

    Spec: R6.1, R6.2
    """
    if not replicas:
        message = "resync: expected at least 1 replica, got 0"
        raise ValueError(message)
    if len(replicas) == 1:
        return
    state = replicas[0].state_dict()
    for replica in replicas[1:]:
        replica.load_state_dict(state)
