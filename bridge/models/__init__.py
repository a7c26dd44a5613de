"""The reference models, twins of those in BridgeSharp.Models."""

from bridge.models.dropout_net import DropoutNet
from bridge.models.lenet import LeNet
from bridge.models.mlp import MLP
from bridge.models.resnet import ResNet18
from bridge.models.sync_net import SyncNet

__all__ = ["MLP", "DropoutNet", "LeNet", "ResNet18", "SyncNet"]
