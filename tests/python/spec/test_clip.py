"""Clipping gradients."""

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
