"""The Python blocks of the docs run, page by page, on what the page takes as given."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
COMMON = """
import torch
from torch import nn
from torch.nn import functional

import bridge
from bridge import *
from bridge.data import Loader

class Net(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, width), nn.Linear(width, 3))

    def forward(self, images, scale=1.0, mask=None):
        return self.layers(images) * scale

devices = ["cpu", "cpu"]
model = net = Net()
replicas = replicate(model, devices)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
images = inputs = torch.ones(6, 4)
labels = targets = torch.tensor([0, 1, 2, 0, 2, 1])
masks = torch.ones(6)
loss = nn.CrossEntropyLoss(ignore_index=-1)
trainer = Trainer(Net(), lambda own: torch.optim.SGD(own, lr=0.1), loss, devices, mode="all")

def train(replica):
    def run(inputs, targets):
        value = loss(replica(inputs), targets)
        value.backward()
        return value.item()
    return run

passes = [train(replica) for replica in replicas]
"""
GIVEN = {
    "TRACE.md": "batches, criterion = [(inputs, targets)], nn.CrossEntropyLoss()",
    "check.md": "",
    "verbs.md": "counts = [3, 3]",
    "checkpoints.md": """
from pathlib import Path
loader, best = Loader((torch.ones(9, 4), torch.zeros(9, dtype=torch.int64)), 6), 0.5
torch.save(Net().state_dict(), "from_pytorch.pt")
""",
    "loader.md": "epochs, save = 4, lambda *states: None",
    "mixed_precision.md": "from bridge.models import LeNet",
    "optim.md": "",
    "splitting.md": """
import io
path, conv, fc = io.BytesIO(), nn.Conv2d(1, 4, 1), nn.Linear(4, 3)
""",
    "examples/manual-loop.md": "batch = (inputs, targets)",
    "examples/variable-length.md": """
target = torch.ones(1)
sequence_of_12, sequence_of_7, sequence_of_9 = (torch.ones(n, 36) for n in (12, 7, 9))
""",
}
APART = {"host.md", "diagnosis.md"}
"""Pages whose blocks need another program or traces; tests of those have their calls."""


def blocks(page: str) -> list[str]:
    """Read the Python blocks of a page."""
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def test_every_page_with_code_is_known() -> None:
    """No page has code that is not run."""
    pages = [path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")]
    assert {page for page in pages if blocks(page)} <= {*GIVEN, *APART}


@pytest.mark.parametrize("page", GIVEN)
def test_python_blocks_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The blocks of a page run one after the other."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for number, block in enumerate([COMMON, GIVEN[page], *blocks(page)]):
        exec(compile(block, f"{page}, block {number - 1}", "exec"), names)  # noqa: S102 - text of the docs
