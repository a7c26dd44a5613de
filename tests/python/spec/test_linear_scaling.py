"""Scaling the learning rate for several replicas."""

from bridge import LinearScaling
from tests.python.spec.vectors import Case, cases, number, refusal


@cases("linear_scaling")
def test_vectors(case: Case) -> None:
    """Factors and refusals are those of the vectors. Spec: R7.6."""
    with refusal(case):
        scaling = LinearScaling(number(case["factor"]), case["warm_up"])
        factors = [scaling.at(update) for update in range(len(case["expected"]))]
        assert factors == case["expected"]
