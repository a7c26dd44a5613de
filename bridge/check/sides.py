"""The two sides of a check: each says what it starts from, takes weights, and records a run."""

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional

from bridge import optim, schedulers
from bridge.check.batches import Batch, named
from bridge.check.config import Config, ConfigError
from bridge.dotnet import DotnetError, Host
from bridge.parallel.trainer import Trainer
from bridge.trace.nudge import nudge
from bridge.trace.recorder import Recorder

DRAWS = 4
State = Mapping[str, torch.Tensor]


class Side(ABC):
    """A trainer of one language."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Say what no trace does: ties, schedulers, threads, first draws; seeds the generator."""

    @abstractmethod
    def record(self, path: Path, batches: Sequence[Batch], step: int | None = None) -> None:
        """Record a run; ``step`` keeps its tensors whole."""

    @abstractmethod
    def state(self) -> State:
        """Return the parameters and the buffers."""

    @abstractmethod
    def load(self, state: State) -> None:
        """Take parameters and buffers."""


class Reference(Side):
    """The user's Python module."""

    def __init__(self, config: Config) -> None:
        """Make the model and its trainer."""
        torch.set_num_threads(config.threads)
        torch.manual_seed(config.seed)
        made, args = named(config, config.reference["module"]), config.reference.get("args", [])
        model = made(**args) if isinstance(args, Mapping) else made(*args)
        self._config = config
        self._trainer = Trainer(
            model.to(getattr(torch, config.dtype)),
            lambda own: optim.create(parameters=own, **config.optimizer),
            _loss(config),
            ["cpu"] * config.replicas,
            scheduler=None if config.scheduler is None else self._scheduler,
        )

    def _scheduler(self, optimizer: torch.optim.Optimizer) -> Any:  # noqa: ANN401 - any of PyTorch's
        """Make the scheduler."""
        return schedulers.create(optimizer=optimizer, **(self._config.scheduler or {}))

    def describe(self) -> dict[str, Any]:
        """Say what no trace does."""
        torch.manual_seed(self._config.seed)
        draws = torch.rand(DRAWS, dtype=torch.float64).tolist()
        torch.manual_seed(self._config.seed)
        return {
            "tied": _tied(self._trainer.model),
            "schedulers": [type(item).__name__ for item in self._trainer.schedulers],
            "threads": torch.get_num_threads(),
            "draws": draws,
        }

    def record(self, path: Path, batches: Sequence[Batch], step: int | None = None) -> None:
        """Record a run."""
        kept = {} if step is None else {"full": "*", "full_steps": [step]}
        with Recorder(path, self._trainer, **kept) as recorder:  # type: ignore[arg-type]
            for inputs, targets in batches:
                if self._config.mode == "train":
                    self._trainer.step(inputs, targets)
                else:
                    self._forward(recorder, inputs)

    def _forward(self, recorder: Recorder, inputs: torch.Tensor) -> None:
        """Run the model once without training."""
        model = self._trainer.model.eval()
        recorder.inputs(inputs)
        try:
            with torch.no_grad():
                recorder.loss(model(inputs))
        except Exception as error:
            recorder.fail(error)
            raise
        recorder.step()

    def state(self) -> State:
        """Return the parameters and the buffers."""
        return {name: value.clone() for name, value in self._trainer.model.state_dict().items()}

    def load(self, state: State) -> None:
        """Take parameters and buffers."""
        self._trainer.load_state_dict(dict(state))

    def nudge(self, seed: int) -> None:
        """Move every weight by one ulp, in all replicas alike."""
        nudge(self._trainer.model, seed)
        self.load(self.state())


class Port(Side):
    """The user's C# module."""

    def __init__(self, config: Config, host: Host) -> None:
        """Make the trainer in C#."""
        args = config.port.get("args", [])
        self._config, self._host = config, host
        self._trainer = host.trainer(
            config.port["type"],
            assembly=_assembly(config),
            arguments=args,
            optimizer=config.optimizer["name"],
            loss=config.loss if isinstance(config.loss, str) else config.loss["port"],
            training={} if config.scheduler is None else {"scheduler": config.scheduler},
            replicas=config.replicas,
            dtype=config.dtype,
            seed=config.seed,
            threads=config.threads,
            **{key: value for key, value in config.optimizer.items() if key != "name"},
        )

    def describe(self) -> dict[str, Any]:
        """Say what no trace does."""
        about: dict[str, Any] = self._trainer.describe(self._config.seed)
        return about

    def record(self, path: Path, batches: Sequence[Batch], step: int | None = None) -> None:
        """Record a run."""
        with self._trainer.trace(path, full=None if step is None else "*", full_step=step):
            for inputs, targets in batches:
                if self._config.mode == "train":
                    self._trainer.step(inputs, targets)
                else:
                    self._trainer.forward(inputs)

    def state(self) -> State:
        """Return the parameters and the buffers."""
        return self._trainer.state_dict()

    def load(self, state: State) -> None:
        """Take parameters and buffers."""
        self._trainer.load_state_dict(state)


def _loss(config: Config) -> Any:  # noqa: ANN401 - a loss
    """Find the reference's loss."""
    if isinstance(config.loss, Mapping):
        return named(config, config.loss["reference"])
    found = getattr(functional, config.loss, None)
    if found is None:
        raise ConfigError(key="loss", expected="a loss of torch.nn.functional", got=config.loss)
    return found


def _tied(model: torch.nn.Module) -> list[list[str]]:
    """List the names that stand for one parameter."""
    names: dict[int, list[str]] = {}
    for prefix, layer in model.named_modules():
        for name, parameter in layer.named_parameters(recurse=False):
            names.setdefault(id(parameter), []).append(f"{prefix}.{name}" if prefix else name)
    return [sorted(group) for group in names.values() if len(group) > 1]


def _assembly(config: Config) -> Path | None:
    """Build the port's project, if there is one, and return the path of its assembly."""
    if "project" not in config.port:
        return Path(config.port["assembly"])
    project = Path(config.port["project"])
    out = project.parent / "bin" / "check"
    command = ["dotnet", "build", str(project), "-c", "Release", "-o", str(out), "-nodeReuse:false"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if built.returncode:
        message = f"check: expected {project.name} to build, got:\n{built.stdout[-2000:]}"
        raise DotnetError(message)
    return Path(config.port.get("assembly", out / f"{project.stem}.dll"))
