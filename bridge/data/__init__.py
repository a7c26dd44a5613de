"""The data sets and their loader, read and ordered alike in both languages."""

from bridge.data.fashion_mnist import FashionMnist
from bridge.data.idx import IdxError, read_idx
from bridge.data.loader import Loader
from bridge.data.order import order

__all__ = ["FashionMnist", "IdxError", "Loader", "order", "read_idx"]
