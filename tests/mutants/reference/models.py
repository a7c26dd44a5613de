"""The models by their names."""

from collections.abc import Callable

from torch import nn

from tests.mutants.reference.lenet import LeNet
from tests.mutants.reference.lstm import LSTM
from tests.mutants.reference.mlp import MLP, SharedMLP
from tests.mutants.reference.resnet import ResNet
from tests.mutants.reference.transformer import Transformer

MODELS: dict[str, Callable[[], nn.Module]] = {
    model.__name__: model for model in (MLP, SharedMLP, LeNet, ResNet, LSTM, Transformer)
}
