"""The public surfaces of the twins: the same files, names, parameters, defaults and sentences."""

import inspect
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.python.csharp_source import Member, first_sentence, members

ROOT = Path(__file__).parents[2]
CSHARP = ROOT / "csharp"
PACKAGES = {
    "bridge.parallel": "BridgeSharp/Parallel",
    "bridge.checkpoint": "BridgeSharp/Checkpoint",
    "bridge.convert": "BridgeSharp/Conversion",
    "bridge.data": "BridgeSharp/Data",
    "bridge.models": "BridgeSharp.Models",
    "bridge.recipes": "BridgeSharp.Models/Recipes",
}
ONE_LANGUAGE = {
    "Bf16Hooks": "Python derives from PyTorch's layers",
    "Bf16Product": "Python has it beside the functions that share it",
    "Bridge": "C# has its verbs in one class, which this file opens",
    "Crc32": "Python's zipfile compares checksums",
    "Containers": "Python's containers take parts of any type",
    "HashedKeys": "copy.deepcopy fills dicts and sets anew",
    "ForwardCalls": "Python's layers have no other forward",
    "Interrupts": "C# ends at Ctrl-C",
    "OrderedDict": "Python has its own",
    "PickleWriter": "torch.save writes Python's",
    "Pickler": "torch.save writes Python's",
    "Mapping": "C# reads TOML in BridgeSharp.Cli",
    "NativeClone": "Python's layers keep their options in Python",
    "NativeDraws": "Python's layers keep their options in Python",
    "NativeModule": "Python's layers keep their options in Python",
    "Rebinder": "C# keeps captured variables in objects like others",
    "Sums": "C# adds in order by itself",
    "TensorBytes": "Python views the bytes of a tensor of any size",
    "Text": "Python's own text of a value",
    "TorchsharpReader": "Python has it beside the function",
    "Typed": "Python's batches have any type",
    "Uncopyable": "copy.deepcopy says what it cannot copy",
}
"""Files that one language has alone, and why."""

EXPORTS = {
    "bridge.parity.digest": ("BridgeSharp/Parity/Digest.cs", ["digest", "dtype_name"]),
    "bridge.parity.family": ("BridgeSharp/Parity/Family.cs", ["battery", "results"]),
    "bridge.doctor.glibcxx": ("BridgeSharp/Doctor/Glibcxx.cs", ["newest", "older", "library"]),
    "bridge.trace.recorder": ("BridgeSharp/Trace/Recorder.cs", ["Recorder"]),
    "bridge.optim": ("BridgeSharp/Optim/Optimizers.cs", ["create"]),
    "bridge.schedulers": ("BridgeSharp/Optim/Schedulers/Schedulers.cs", ["create"]),
}
"""What modules outside of these packages share with C#."""

CSHARP_NAMES = {
    "BrokenGroupError": "BrokenGroupException",
    "CheckpointError": "CheckpointException",
    "IdxError": "IdxException",
    "ReplicaError": "ReplicaException",
}
DIFFERENT = {
    "backward": "of a private class in C#",
    "forward(kwargs)": "TorchSharp's modules have arguments of given types",
    "forward(inputs)": "TorchSharp's modules have arguments of given types",
    "Failure": "Python raises, C# throws",
    "close": "C# disposes a recorder",
    "create(options)": "C# has no keyword arguments: they come in a dictionary",
    "create(reference)": "Python has the formula of the torch that runs",
    "forward(input)": "TorchSharp's name",
    "forward(x)": "TorchSharp's name is input",
    "gather(device)": "a device is no constant in C#: null is the CPU",
    "step": "two overloads, with a sentence each",
}
"""Members and parameters that differ, and why."""


def pascal(stem: str) -> str:
    """Turn a stem of Python into one of C#."""
    known = {"lenet": "LeNet", "fashion_lenet": "FashionLeNet", "mlp": "MLP", "resnet": "ResNet"}
    return known.get(stem) or "".join(part.capitalize() for part in stem.split("_"))


def python_members() -> Iterator[tuple[Path, Member]]:
    """List what the packages export, with the C# file that answers to it."""
    for package, folder in PACKAGES.items():
        for name in import_module(package).__all__:
            value = getattr(import_module(package), name)
            file = CSHARP / folder / f"{pascal(value.__module__.split('.')[-1])}.cs"
            for member in described(name, value):
                yield file, member
    for module, (path, names) in EXPORTS.items():
        for name in names:
            for member in described(name, getattr(import_module(module), name)):
                yield CSHARP / path, member


def described(name: str, value: Any) -> Iterator[Member]:  # noqa: ANN401 - a class or a function
    """Describe a function, or a class with its methods."""
    if not inspect.isclass(value):
        yield of_function(name, value)
        return
    yield Member(CSHARP_NAMES.get(name, name), first_sentence(inspect.getdoc(value) or ""), None)
    for method, function in vars(value).items():
        if not method.startswith("_") and inspect.isfunction(function):
            yield of_function(method, function)


def of_function(name: str, function: Callable[..., Any]) -> Member:
    """Describe a function as the C# sources are read."""
    parameters = {
        parameter.name: default(parameter.default)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name != "self"
    }
    return Member(name, first_sentence(inspect.getdoc(function) or ""), parameters)


def default(value: object) -> str | None:
    """Write a default value as C# does."""
    if value is inspect.Parameter.empty:
        return None
    if isinstance(value, str):
        return f'"{value}"'
    return {"None": "null", "True": "true", "False": "false", "()": "null"}.get(
        repr(value), repr(value)
    )


def differences() -> Iterator[tuple[str, str]]:
    """Say what differs, by member or parameter: Python's side, then C#'s."""
    shared: dict[Path, set[str]] = {}
    for file, own in python_members():
        shared.setdefault(file, set()).add(own.name)
        others = [member for member in members(file) if member.name == own.name]
        if not others:
            yield own.name, "only in Python"
            continue
        if own.sentence not in [other.sentence for other in others]:
            yield own.name, f"{own.sentence} | {others[0].sentence}"
        yield from min((list(compared(own, other)) for other in others), key=len)
    for file, names in shared.items():
        for member in members(file):
            method = member.parameters is not None and member.name[0].islower()
            if method and member.name not in names:
                yield member.name, "only in C#"


def compared(own: Member, other: Member) -> Iterator[tuple[str, str]]:
    """Compare the parameters of two members."""
    python, csharp = own.parameters, other.parameters
    if python is None or csharp is None:
        return
    for key in dict.fromkeys([*python, *csharp]):
        sides = python.get(key, "missing"), csharp.get(key, "missing")
        if sides[0] != sides[1]:
            yield f"{own.name}({key})", f"{sides[0]} | {sides[1]}"
    shared = [key for key in python if key in csharp]
    if shared != [key for key in csharp if key in python]:
        yield f"{own.name}()", f"{list(python)} | {list(csharp)}"


def test_files_are_twins() -> None:
    """Each file has a twin of its stem, but those of one language, which are listed."""
    alone = set()
    for package, folder in PACKAGES.items():
        python = (ROOT / package.replace(".", "/")).glob("[!_]*.py")
        csharp = (CSHARP / folder).glob("*.cs")
        alone |= {pascal(path.stem) for path in python} ^ {path.stem for path in csharp}
    assert alone == set(ONE_LANGUAGE)


def test_members_are_twins() -> None:
    """Names, parameters, defaults and first sentences are the same, but for what is listed."""
    found = dict(differences())
    assert {key: text for key, text in found.items() if key not in DIFFERENT} == {}
    assert [key for key in DIFFERENT if key not in found] == []


def test_operations_of_the_battery_are_twins() -> None:
    """Both batteries run the same operations in the same order. Spec: R12.1."""
    operations = import_module("bridge.parity.family").OPERATIONS
    source = (CSHARP / "BridgeSharp/Parity/Family.cs").read_text(encoding="utf-8")
    assert re.findall(r'^ +\["(\w+)"\] = t =>', source, re.MULTILINE) == list(operations)
