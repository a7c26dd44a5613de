"""TorchSharp's own layers, functions and optimizers against PyTorch's, case by case."""

from bridge.conformance.cases import Case, load
from bridge.conformance.measure import Aspect
from bridge.conformance.report import Matrix, write
from bridge.conformance.run import Row, Sides

__all__ = ["Aspect", "Case", "Matrix", "Row", "Sides", "load", "write"]
