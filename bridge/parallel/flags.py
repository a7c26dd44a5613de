"""What is frozen, and what is in which mode."""

from collections.abc import Sequence

from torch import nn


def follow(replicas: Sequence[nn.Module]) -> None:
    """Give every replica the modes and the frozen parameters of replica 0.

    So a model that is frozen, unfrozen or put in another mode in part takes its replicas along.

    Spec: R4.11
    """
    for replica in replicas[1:]:
        for own, module in zip(replica.modules(), replicas[0].modules(), strict=True):
            own.training = module.training
        for parameter, first in zip(replica.parameters(), replicas[0].parameters(), strict=True):
            parameter.requires_grad = first.requires_grad
