"""What Python sees of C#: calls of the facade, and trainers on top of them."""

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.dotnet.calls import result

if TYPE_CHECKING:
    from typing_extensions import Self

    from bridge.dotnet.trainer import Trainer


class Host(ABC):
    """.NET with BridgeSharp in it, wherever that runs, until ``close`` or the end of a ``with``.

    Calls run one after the other, in the order in which they were made.

    Attributes:
        versions: what runs there: ``dotnet``, ``bridgesharp``, ``torchsharp``, ``libtorch``, more.
    """

    versions: dict[str, Any]

    @abstractmethod
    def submit(self, method: str, /, **arguments: Any) -> Future[Any]:  # noqa: ANN401 - JSON
        """Start a call and go on; callbacks of the future must not wait for this host.

        Args:
            method: a method of the facade, such as ``trainer.step``.
            arguments: its arguments, anything that JSON can hold.

        Raises:
            WorkerDied: the worker is gone.
        """

    @abstractmethod
    def segment(self, size: int) -> AbstractContextManager[memoryview]:
        """Have the shared memory to oneself, at least ``size`` bytes of it.

        It waits for the calls in flight first, and keeps other threads from calling until the end
        of the block.
        """

    @abstractmethod
    def close(self) -> None:
        """End .NET; again is harmless."""

    def call(self, method: str, /, **arguments: Any) -> Any:  # noqa: ANN401 - JSON
        """Call a method of the facade and wait for its result.

        Raises:
            DotnetError: C# threw; a ``ValueError``, ``KeyError`` or ``FileNotFoundError`` as well
                where C# threw its counterpart.
            WorkerDied: the worker is gone.
        """
        return result(self.submit(method, **arguments))

    def trainer(  # noqa: PLR0913 - the options of a training run
        self,
        type: str,  # noqa: A002 - C# has types
        *,
        assembly: str | os.PathLike[str] | None = None,
        arguments: Sequence[float | str | bool] | Mapping[str, float | str | bool] = (),
        optimizer: str = "sgd",
        lr: float | None = None,
        loss: str = "cross_entropy",
        replicas: int = 1,
        devices: Sequence[str] | None = None,
        dtype: str = "float32",
        seed: int | None = None,
        threads: int | None = None,
        reference: str | None = None,
        mixed_precision: bool = False,
        training: Mapping[str, Any] | None = None,
        **options: Any,  # noqa: ANN401 - JSON
    ) -> "Trainer":
        """Make a C# trainer of a C# model.

        Args:
            type: full name of the model's type, such as ``BridgeSharp.Models.LeNet``.
            assembly: path of the library that has it, where it is not one of BridgeSharp's.
            arguments: of the constructor, in order or by name.
            optimizer: as ``bridge.optim.create`` names it, such as ``sgd`` or ``adam``.
            lr: the learning rate; None leaves it to the optimizer.
            loss: its name in PyTorch, or ``Type.Method``, a static method in the assembly.
            replicas: how many, all on the CPU.
            devices: one per replica; replaces ``replicas``.
            dtype: of the parameters.
            seed: sets the generator before the model is made.
            threads: of libtorch's operations.
            reference: the PyTorch whose formulas to use, ``1.13`` or ``2.10``; else the caller's.
            mixed_precision: computes the products of its layers in bfloat16.
            training: options of ``bridge.Trainer``: ``reduction``, ``mode``, ``buffers``,
                ``accumulate``, ``clip_norm``, ``clip_value``, ``scaling`` as a mapping of
                ``factor`` and ``warm_up``, and ``scheduler`` as one of its ``name``, such as
                ``StepLR``, and its options. With reduction ``count`` a loss counts the targets that
                are not -100, cross-entropy's ``ignore_index``.
            options: of the optimizer, such as ``momentum`` or ``betas``.

        Raises:
            DotnetError: C# threw.
        """
        from bridge.dotnet.trainer import Trainer  # noqa: PLC0415 - it imports torch

        chosen = options if lr is None else {"lr": lr, **options}
        return Trainer(
            self,
            reference=reference,
            type=type,
            assembly=None if assembly is None else str(Path(assembly).absolute()),
            arguments=dict(arguments) if isinstance(arguments, Mapping) else list(arguments),
            dtype=dtype,
            seed=seed,
            devices=["cpu"] * replicas if devices is None else list(devices),
            optimizer={"name": optimizer, **chosen},
            loss=loss,
            threads=threads,
            mixed_precision=mixed_precision,
            training=dict(training or {}),
        )

    def __enter__(self) -> "Self":
        """Return the host itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()
