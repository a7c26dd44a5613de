"""Whole training jobs, twins of those in BridgeSharp.Models: data, model, order and trainer."""

from bridge.recipes.fashion_lenet import FashionLeNet, StepResult
from bridge.recipes.options import Options

__all__ = ["FashionLeNet", "Options", "StepResult"]
