"""Loading a state, strictly."""

import torch
from torch import nn

from bridge import Trainer
from bridge.parallel.state_dict import load_state_dict
from tests.python.spec.vectors import Case, Net, assert_same, cases, refusal, tree


@cases("state_dict")
def test_vectors(case: Case) -> None:
    """States and refusals are those of the vectors; a refusal changes nothing. Spec: R6.2, R6.6."""
    own = {name: tree(value) for name, value in case["own"].items()}
    source = {name: tree(value) for name, value in case["source"].items()}
    module = Net({name: value.clone() for name, value in own.items()})
    with refusal(case):
        load_state_dict(module, source, case.get("prefix", ""))
    kept = case.get("expected", case["own"])
    assert_same(dict(module.state_dict()), {name: tree(kept[name]) for name in own})


def test_a_trainer_takes_a_prefix() -> None:
    """The state of a wrapper reaches every replica. Spec: R6.6."""
    model = nn.Linear(1, 1, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    trainer = Trainer(model, optimizer, nn.functional.mse_loss, ["cpu"] * 3)
    trainer.load_state_dict({"module.weight": torch.tensor([[2.5]])}, prefix="module.")
    assert [replica.get_parameter("weight").item() for replica in trainer.replicas] == [2.5] * 3
