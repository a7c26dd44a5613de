"""Pickles of state dicts, read by an interpreter that calls nothing."""

import struct
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NoReturn

from bridge.checkpoint.archive import Archive
from bridge.checkpoint.checkpoint_error import CheckpointError
from bridge.checkpoint.pickle_stack import PickleStack
from bridge.checkpoint.rebuild import DTYPES, GLOBALS, Global, Storages, rebuild

PROTOCOL = 2
STOP = ord(".")


class Unpickler:
    """Reads the opcodes that ``torch.save`` writes for state dicts, and refuses every other.

    Spec: R26.10, R26.11. Source: torch/_weights_only_unpickler.py
    """

    def __init__(self, archive: Archive) -> None:
        """Take the pickle of an archive."""
        self._archive = archive
        self._content = bytes(archive.read("data.pkl"))
        self._storages = Storages(archive)
        self._at = 0
        self._stack = PickleStack()
        self._opcodes = self._scalars() | self._containers()

    def load(self) -> Any:  # noqa: ANN401 - any tree
        """Run the pickle to its end, and return what it leaves."""
        while True:
            start = self._at
            code = self._take(1)[0]
            if code != STOP and code not in self._opcodes:
                self._archive.refuse("opcodes of state dicts", f"0x{code:02x} at {start}")
            try:
                if code == STOP:
                    return self._stack.end()
                self._opcodes[code]()
            except CheckpointError:
                raise
            except (IndexError, KeyError, TypeError, ValueError):
                self._unsound(code, start)

    def _scalars(self) -> dict[int, Callable[[], None]]:
        """List the opcodes of values without parts."""
        push = self._stack.push
        return {
            0x80: self._protocol,
            ord("c"): self._global,
            ord("N"): lambda: push(None),
            0x88: lambda: push(True),  # noqa: FBT003 - the value
            0x89: lambda: push(False),  # noqa: FBT003 - the value
            ord("J"): lambda: push(self._unpack("<i")),
            ord("K"): lambda: push(self._unpack("<B")),
            ord("M"): lambda: push(self._unpack("<H")),
            0x8A: lambda: push(self._long()),
            ord("G"): lambda: push(self._unpack(">d")),
            ord("X"): lambda: push(self._take(self._unpack("<I")).decode()),
            ord("Q"): lambda: push(self._storages.find(*self._stack.pop(1))),
        }

    def _containers(self) -> dict[int, Callable[[], None]]:
        """List the opcodes of values with parts."""
        stack = self._stack
        return {
            ord("("): stack.mark,
            ord("]"): lambda: stack.push([]),
            ord("}"): lambda: stack.push({}),
            ord(")"): lambda: stack.push(()),
            0x85: lambda: stack.push(tuple(stack.pop(1))),
            0x86: lambda: stack.push(tuple(stack.pop(2))),
            0x87: lambda: stack.push(tuple(stack.pop(3))),
            ord("t"): lambda: stack.push(tuple(stack.pop_mark())),
            ord("a"): lambda: stack.extend(stack.pop(1)),
            ord("e"): lambda: stack.extend(stack.pop_mark()),
            ord("s"): lambda: stack.update(stack.pop(2)),
            ord("u"): lambda: stack.update(stack.pop_mark()),
            ord("q"): lambda: stack.put(self._unpack("<B")),
            ord("r"): lambda: stack.put(self._unpack("<I")),
            ord("h"): lambda: stack.get(self._unpack("<B")),
            ord("j"): lambda: stack.get(self._unpack("<I")),
            ord("R"): lambda: stack.push(rebuild(*stack.pop(2), archive=self._archive)),
            ord("b"): lambda: stack.push(self._built(*stack.pop(2))),
        }

    def _unsound(self, code: int, start: int) -> NoReturn:
        """Say that an opcode does not fit what was before it."""
        self._archive.refuse("a sound pickle", f"0x{code:02x} out of place at {start}")

    def _take(self, count: int) -> bytes:
        """Read bytes."""
        taken = self._content[self._at : self._at + count]
        if len(taken) < count:
            self._archive.refuse("a whole pickle", f"its end at {len(self._content)}")
        self._at += count
        return taken

    def _unpack(self, form: str) -> Any:  # noqa: ANN401 - an int or float
        """Read a number of a fixed size."""
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _protocol(self) -> None:
        """Refuse protocols with other opcodes."""
        protocol = self._unpack("<B")
        if protocol != PROTOCOL:
            self._archive.refuse(f"pickle protocol {PROTOCOL}", f"{protocol}")

    def _long(self) -> int:
        """Read an integer of up to 64 bits."""
        content = self._take(self._unpack("<B"))
        if len(content) > 8:  # noqa: PLR2004 - bytes of 64 bits
            self._archive.refuse("integers of 64 bits", f"one of {8 * len(content)}")
        return int.from_bytes(content, "little", signed=True)

    def _global(self) -> None:
        """Read a name; nothing is imported."""
        name = f"{self._line()}.{self._line()}"
        if name not in DTYPES and name not in GLOBALS:
            self._archive.refuse("only what state dicts are made of", name)
        self._stack.push(DTYPES.get(name) or Global(name))

    def _line(self) -> str:
        """Read up to the end of a line."""
        end = self._content.find(b"\n", self._at)
        line = self._take((end if end >= 0 else len(self._content)) - self._at)
        self._take(1)
        return line.decode()

    def _built(self, target: object, state: Any) -> object:  # noqa: ANN401 - any state
        """Give an OrderedDict the one attribute that state dicts have."""
        types = type(target), type(state)
        if types != (OrderedDict, dict) or list(state) != ["_metadata"]:
            self._archive.refuse("no state but _metadata of an OrderedDict", "another")
        vars(target).update(state)
        return target
