"""Clipping gradients."""

from typing import Any

import pytest
import torch

from bridge import clip_gradients
from tests.python.spec.vectors import Case, assert_close, cases, number, refusal, tensor


@cases("clip")
def test_vectors(case: Case) -> None:
    """Gradients, norms and refusals are those of the vectors. Spec: R7.4."""
    parameters = []
    for gradient in case["gradients"]:
        parameter = torch.zeros(len(gradient or [0]), dtype=torch.float64, requires_grad=True)
        parameter.grad = None if gradient is None else tensor(gradient)
        parameters.append(parameter)
    limits = [
        None if limit is None else number(limit)
        for limit in (case.get("max_norm"), case.get("max_value"))
    ]
    with refusal(case):
        assert clip_gradients(parameters, *limits) == case["norm"]
        for parameter, expected in zip(parameters, case["expected"], strict=True):
            assert (parameter.grad is None) == (expected is None)
            if parameter.grad is not None:
                assert_close(parameter.grad, tensor(expected), case.get("relative", 0))


@pytest.mark.parametrize("limits", [(2.5, None), (None, 0.5), (8.0, 3.5)])
def test_sparse_gradients_are_clipped_as_dense_ones(limits: tuple[Any, Any]) -> None:
    """An index may be there twice: its values are added first. Spec: R7.4."""
    values = torch.tensor([[3.0, 0.0], [-4.0, 0.25], [1.0, 0.0]]).double()
    sparse = torch.sparse_coo_tensor(torch.tensor([[2, 0, 2]]), values, (4, 2))
    table, dense, empty = (torch.zeros(4, 2, dtype=torch.float64) for _ in range(3))
    table.grad, dense.grad = sparse, sparse.to_dense()
    empty.grad = torch.sparse_coo_tensor(
        torch.zeros(1, 0).long(), torch.zeros(0, 2), (4, 2)
    ).double()
    norm = clip_gradients([table, empty], *limits)
    assert norm == clip_gradients([dense], *limits)
    assert table.grad.is_sparse
    assert_close(table.grad.to_dense(), dense.grad, 1e-15)
