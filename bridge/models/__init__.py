"""The reference models, twins of those in BridgeSharp.Models."""

from bridge.models.lenet import LeNet
from bridge.models.mlp import MLP
from bridge.models.resnet import ResNet18

__all__ = ["MLP", "LeNet", "ResNet18"]
