"""What a training job can be told."""

from dataclasses import dataclass

import torch

DTYPES = {"float32": torch.float32, "float64": torch.float64}
DEFAULTS: dict[str, dict[str, float]] = {
    "sgd": {"lr": 0.05, "momentum": 0.9},
    "adam": {"lr": 0.001},
}


@dataclass(frozen=True)
class Options:
    """The options of a training job; the same names and defaults in both languages.

    Args:
        data: the folder of the data set; None takes the folder of Debian's package.
        epochs: how often the data is gone through.
        steps: stop after so many steps; None goes on to the end of the last epoch.
        replicas: the number of replicas.
        batch: samples per step, over all replicas.
        dtype: ``"float32"`` or ``"float64"``.
        optimizer: ``"sgd"`` (with momentum 0.9) or ``"adam"``.
        lr: the learning rate; None takes 0.05 for sgd and 0.001 for adam.
        seed: of the initial weights and the order of the samples.
        device: ``"cpu"``, ``"cuda"`` (one GPU per replica) or one GPU such as ``"cuda:0"``.
        threads: torch's intra-op threads.

    Raises:
        ValueError: an option out of range.

    Spec: R14.1
    """

    data: str | None = None
    epochs: int = 1
    steps: int | None = None
    replicas: int = 2
    batch: int = 128
    dtype: str = "float64"
    optimizer: str = "adam"
    lr: float | None = None
    seed: int = 0
    device: str = "cpu"
    threads: int = 1

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        for name in ("epochs", "steps", "replicas", "batch", "threads"):
            value = getattr(self, name)
            if value is not None and value < 1:
                message = f"options: expected {name} of at least 1, got {value}"
                raise ValueError(message)
        for name, choices in (("dtype", list(DTYPES)), ("optimizer", list(DEFAULTS))):
            value = getattr(self, name)
            if value not in choices:
                message = f"options: expected {name} {' or '.join(choices)}, got {value}"
                raise ValueError(message)
        if self.lr is not None and not 0 < self.lr < float("inf"):
            message = f"options: expected lr above 0, got {self.lr}"
            raise ValueError(message)
        if self.seed < 0:
            message = f"options: expected seed of at least 0, got {self.seed}"
            raise ValueError(message)

    @property
    def optimizer_options(self) -> dict[str, float]:
        """The options of the optimizer, with its defaults."""
        chosen = DEFAULTS[self.optimizer]
        return chosen if self.lr is None else {**chosen, "lr": self.lr}

    @property
    def devices(self) -> list[str]:
        """One device per replica."""
        if self.device == "cuda":
            return [f"cuda:{index}" for index in range(self.replicas)]
        return [self.device] * self.replicas
