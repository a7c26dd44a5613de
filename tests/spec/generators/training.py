"""What the undivided model does with every kind of loss and option."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tests.spec.generators.values import values

Case = dict[str, Any]
Pair = tuple[torch.Tensor, torch.Tensor]

ABOUT = (
    "A model 2-3-3 with ReLU between ('norm': with batch normalization before it) starts with "
    "'state' and is trained with SGD of learning rate 'lr' and momentum 0.5 on these batches. "
    "'losses' and 'states' are those of one undivided model, after each call of step; with "
    "'accumulate' it updates after so many batches, and 'flushed' is the state after flush. 'loss' "
    "is mse; or tokens: cross-entropy without those of index -1; weighted: cross-entropy with "
    "class weights 0.5, 1, 2; masked: squared errors where the second half of the targets is 1. "
    "Where 'reduction' is count, it returns its sum and what it counts."
)
STATE = {
    "fc1.weight": [[0.5, -0.25], [1.0, 0.5], [-0.75, 0.25]],
    "fc1.bias": [0.25, 0.0, 0.5],
    "fc2.weight": [[1.0, -0.5, 0.25], [-0.25, 0.5, 1.0], [0.75, 0.25, -1.0]],
    "fc2.bias": [0.5, -0.25, 0.0],
}
NORM = {
    "norm.weight": [1.0, 0.5, 2.0],
    "norm.bias": [0.0, 0.25, -0.5],
    "norm.running_mean": [0.0, 0.0, 0.0],
    "norm.running_var": [1.0, 1.0, 1.0],
    "norm.num_batches_tracked": 0,
}
INPUTS = [[1.0, 0.5], [-1.0, 2.0], [0.5, 0.25], [2.0, -1.0], [0.25, 1.5], [-0.5, 1.0], [1.5, 1.0]]
VALUES = [[1.0, 0.5, 0.0], [-0.5, 0.25, 1.0], [0.25, -1.0, 2.0], [2.0, 0.0, 0.5]]
CLASSES = [0, 2, 1, 2, 0, 1, 2]
TOKENS = [-1, -1, -1, 2, 0, -1, 1]
MASKED = [[1.0, 0.5, 0.0, 1, 0, 0], [-0.5, 0.25, 1.0, 0, 0, 0], [0.25, -1.0, 2.0, 1, 1, 1]]
LR, MOMENTUM = 0.25, 0.5


def training() -> Case:
    """Train with every kind of loss, accumulation, clipping, modes and scaling."""
    count = {"reduction": "count"}
    scaling = {"scaling": {"factor": 4.0, "warm_up": 2}}
    two, three, every = {"accumulate": 2}, {"accumulate": 3}, {"mode": "all"}
    norm = "synchronized batch normalization"
    jobs: list[tuple[str, list[str], int, str, list[int], Case]] = [
        ("sums", ["R8.5"], 3, "mse", [4, 3, 1], {"reduction": "sum"}),
        ("tokens, some shards without any", ["R8.5", "R8.6"], 3, "tokens", [7, 5, 7], count),
        ("tokens, a batch without any", ["R8.6"], 2, "tokens", [3, 7, 2], count),
        ("class weights", ["R8.5"], 3, "weighted", [7, 2, 6], count),
        ("masked elements", ["R8.5", "R8.6"], 3, "masked", [3, 2, 3], count),
        ("one replica, class weights", ["R8.5"], 1, "weighted", [7, 2], count),
        ("accumulation over uneven batches", ["R7.5"], 2, "mse", [4, 1, 3, 2, 3, 4], three),
        ("accumulation, a tail", ["R7.5"], 3, "mse", [4, 2, 3, 1, 2], three),
        ("accumulation of sums", ["R7.5"], 2, "mse", [4, 1, 3], {"reduction": "sum", **two}),
        ("accumulation of tokens", ["R7.5"], 2, "tokens", [7, 3, 5, 4], {**two, **count}),
        ("clipping by norm", ["R7.4"], 2, "mse", [4, 3], {"clip_norm": 0.5}),
        ("clipping by value", ["R7.4"], 3, "mse", [4, 3], {"clip_value": 0.125}),
        ("clipping by both", ["R7.4"], 2, "mse", [4, 3], {"clip_norm": 0.5, "clip_value": 0.125}),
        ("mode all", ["R7.3"], 3, "mse", [4, 1, 3], every),
        ("mode all, accumulated and clipped", ["R7.3"], 2, "mse", [4, 1, 3, 2],
         {**every, **two, "clip_norm": 0.5}),
        ("the rate scaled, with a warm-up", ["R7.6"], 2, "mse", [4, 3, 4, 2], scaling),
        ("the rate scaled, mode all", ["R7.6"], 2, "mse", [4, 3, 4, 2], {**every, **scaling}),
        (norm, ["R22.1"], 3, "mse", [4, 3, 4, 2], {}),
        (f"{norm}, tokens", ["R22.1", "R8.6"], 3, "tokens", [7, 5, 4], count),
        (f"{norm}, mode all", ["R22.1"], 2, "mse", [4, 3], every),
        (f"{norm}, accumulated", ["R22.1"], 2, "mse", [4, 3, 2], two),
    ]  # fmt: skip
    return {"about": ABOUT, "cases": [_case(*job) for job in jobs]}


def loss_of(kind: str, outputs: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, float]:
    """Return the sum of a loss and what it counts: tokens, weights, unmasked elements, samples."""
    if kind == "tokens":
        kept = {"ignore_index": -1, "reduction": "sum"}
        return functional.cross_entropy(outputs, targets, **kept), float((targets != -1).sum())  # type: ignore[arg-type]
    if kind == "weighted":
        weight = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
        total = functional.cross_entropy(outputs, targets, weight=weight, reduction="sum")
        return total, float(weight[targets].sum())
    if kind == "masked":
        wanted, mask = targets.chunk(2, dim=1)
        return ((outputs - wanted).square() * mask).sum(), float(mask.sum())
    return functional.mse_loss(outputs, targets, reduction="sum"), float(targets.numel())


def _batch(kind: str, size: int) -> Case:
    """Take the first so many samples."""
    known: Case = {"tokens": TOKENS, "weighted": CLASSES, "masked": MASKED, "mse": VALUES}
    return {"inputs": INPUTS[:size], "targets": known[kind][:size]}


def _pair(batch: Case) -> Pair:
    """Read a batch: classes are whole numbers."""
    targets = torch.tensor(batch["targets"])
    whole = targets.dtype == torch.int64
    return torch.tensor(batch["inputs"]).double(), targets if whole else targets.double()


def _model(state: Case) -> nn.Sequential:
    """Make the model of a case."""
    layers: dict[str, nn.Module] = {"fc1": nn.Linear(2, 3)}
    if "norm.weight" in state:
        layers["norm"] = nn.BatchNorm1d(3)
    model = nn.Sequential()
    for name, layer in {**layers, "relu": nn.ReLU(), "fc2": nn.Linear(3, 3)}.items():
        model.add_module(name, layer)
    model.double().load_state_dict({key: torch.tensor(value) for key, value in state.items()})
    return model


class _Loop:
    """Trains a model as anyone would by hand, with one large batch for several small ones."""

    def __init__(self, model: nn.Module, kind: str, options: Case) -> None:
        """Start with zero gradients."""
        self._model = model
        self._kind = kind
        self._options = options
        self._optimizer = torch.optim.SGD(model.parameters(), lr=LR, momentum=MOMENTUM)
        self._sums: list[torch.Tensor | None] = [None for _ in model.parameters()]
        self._total = 0.0
        self._updates = 0

    def add(self, batch: Pair) -> float:
        """Add the gradients of a batch's sum, and return its loss."""
        self._optimizer.zero_grad(set_to_none=True)
        total, count = loss_of(self._kind, self._model(batch[0]), batch[1])
        divisor = 1.0 if self._options.get("reduction") == "sum" else count
        if not count:
            return 0.0
        total.backward()  # type: ignore[no-untyped-call]
        for i, parameter in enumerate(self._model.parameters()):
            held = self._sums[i]
            self._sums[i] = parameter.grad if held is None else held + parameter.grad
        self._total += 0.0 if self._options.get("reduction") == "sum" else count
        return total.item() / divisor

    def update(self) -> None:
        """Step from the sums, clipped and scaled."""
        for parameter, held in zip(self._model.parameters(), self._sums, strict=True):
            parameter.grad = None if held is None else held / (self._total or 1.0)
        held = [p for p in self._model.parameters() if p.grad is not None]
        if "clip_norm" in self._options and held:
            nn.utils.clip_grad_norm_(held, self._options["clip_norm"])
        if "clip_value" in self._options and held:
            nn.utils.clip_grad_value_(held, self._options["clip_value"])
        factor = 1.0
        if "scaling" in self._options:
            goal, warm_up = self._options["scaling"].values()
            factor = 1 + (goal - 1) * min(self._updates / warm_up, 1.0)
        self._optimizer.param_groups[0]["lr"] = LR * factor
        self._optimizer.step()
        self._sums = [None] * len(self._sums)
        self._total = 0.0
        self._updates += 1


def _case(  # noqa: PLR0913, PLR0917 - the members of a case
    name: str, spec: list[str], replicas: int, kind: str, sizes: list[int], options: Case
) -> Case:
    """Train one model, each batch with the first so many samples."""
    state = {**STATE, **(NORM if "normalization" in name else {})}
    model = _model(state)
    loop = _Loop(model, kind, options)
    batches = [_batch(kind, size) for size in sizes]
    losses, states = [], []
    for number, batch in enumerate(batches, 1):
        losses.append(loop.add(_pair(batch)))
        if number % options.get("accumulate", 1) == 0:
            loop.update()
        states.append(_state(model))
    case = {
        "name": name, "spec": spec, "replicas": replicas, "loss": kind, "lr": LR,
        "momentum": MOMENTUM, "options": options, "state": state, "batches": batches,
        "losses": losses, "states": states,
    }  # fmt: skip
    if len(batches) % options.get("accumulate", 1):
        loop.update()
        case["flushed"] = _state(model)
    return {**case, "relative": 1e-12}


def _state(model: nn.Module) -> Case:
    """Write the state of a model."""
    return {key: values(tensor) for key, tensor in model.state_dict().items()}
