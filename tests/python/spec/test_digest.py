"""Digests of tensors."""

import pytest
import torch

from bridge.parity.digest import digest
from tests.python.spec.vectors import Case, cases, tree


@cases("digest")
def test_vectors(case: Case) -> None:
    """Digests are those of the vectors. Spec: R11.1."""
    assert digest((name, tree(value)) for name, value in case["tensors"]) == case["sha256"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_layout_does_not_count(dtype: torch.dtype) -> None:
    """A tensor that is transposed, strided or expanded has the digest of its copy. Spec: R11.1."""
    base = torch.arange(24).to(dtype).reshape(4, 6)
    for view in (base.t(), base[:, ::2], base[1:3, 2:5], base[0].expand(3, 6), base[:0]):
        assert digest([("x", view)]) == digest([("x", view.clone().contiguous())])


def test_gradients_do_not_count() -> None:
    """A parameter has the digest of its values. Spec: R11.1."""
    values = torch.tensor([1.5, 2.5])
    assert digest([("x", values)]) == digest([("x", torch.nn.Parameter(values))])


def test_everything_else_counts() -> None:
    """Another name, dtype, shape or bit gives another digest. Spec: R11.1."""
    base = torch.tensor([0.0, 1.0])
    others = [
        ("y", base),
        ("x", base.double()),
        ("x", base.reshape(2, 1)),
        ("x", torch.tensor([-0.0, 1.0])),
        ("x", torch.tensor([0.0, 1.0 + 2**-23])),
    ]
    assert len({digest([pair]) for pair in [("x", base), *others]}) == 6
