"""The battery that tells build families apart."""

from bridge.parity.family import OPERATIONS, battery
from tests.python.spec.vectors import Case, cases


@cases("family")
def test_vectors(case: Case) -> None:
    """What every build computes alike has the digests of the vectors. Spec: R12.1."""
    assert battery()[case["name"]] == case["sha256"]


def test_battery_covers_every_operation_in_both_dtypes() -> None:
    """Each operation has a digest of its own in float32 and in float64. Spec: R12.1."""
    digests = battery()
    assert list(digests) == [f"{n}.{kind}" for kind in ("float32", "float64") for n in OPERATIONS]
    assert len(set(digests.values())) == len(digests)


def test_battery_repeats_itself() -> None:
    """The same build gives the same digests again. Spec: R12.2."""
    assert battery() == battery()
