"""The reference models, twins of those in BridgeSharp.Models."""

from bridge.models.lenet import LeNet
from bridge.models.mlp import MLP

__all__ = ["MLP", "LeNet"]
