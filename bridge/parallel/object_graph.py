"""The objects that a model leads to, and those that a copy needs anew."""

from collections.abc import Callable, Container, Iterable

from torch import nn

from bridge.parallel.object_links import CONSTANTS, FUNCTIONS, links
from bridge.parallel.registered import registered


class Node:
    """One object: how to get there, what holds it, and what it holds."""

    def __init__(self, value: object, path: str) -> None:
        """Start without neighbours."""
        self.value = value
        self.path = path
        self.holders: list[Node] = []
        self.held: list[Node] = []


class ObjectGraph:
    """The objects that a model leads to, and those of them that a copy of it needs anew.

    What the model holds is its own and copied. What its functions captured is copied where it
    leads back to a module, parameter or buffer of it, and shared where it does not: a hook acts on
    the copy, and still writes into the caller's list.

    Args:
        root: the model.
        without: ids of objects to leave out.

    Spec: R4.4, R4.5
    """

    def __init__(self, root: nn.Module, without: Container[int] = ()) -> None:
        """Walk from the model to everything that it leads to."""
        self._nodes: dict[int, Node] = {}
        self._pending: list[Node] = []
        first = self._find(root, type(root).__name__)
        while self._pending:
            node = self._pending.pop()
            for label, target, captured in links(node.value):
                if isinstance(target, CONSTANTS) or id(target) in without:
                    continue
                other = self._find(target, node.path + label)
                other.holders.append(node)
                if not captured:
                    node.held.append(other)
        own = _closure([first], lambda node: node.held)
        tensors = {id(tensor) for _, tensor in registered(root)}
        leading = _closure(
            (n for n in own if isinstance(n.value, nn.Module) or id(n.value) in tensors),
            lambda node: node.holders,
        )
        copied = _closure(own | leading, _functions)
        self.copied = [node for node in self._nodes.values() if node in copied]
        self.shared = [node for node in self._nodes.values() if node not in copied]

    def path(self, value: object) -> str | None:
        """Return how to get from the model to an object; None where it does not lead there."""
        node = self._nodes.get(id(value))
        return None if node is None else node.path

    def _find(self, value: object, path: str) -> Node:
        """Return the node of an object, a new one where it is met for the first time."""
        if id(value) not in self._nodes:
            self._nodes[id(value)] = Node(value, path)
            self._pending.append(self._nodes[id(value)])
        return self._nodes[id(value)]


def _functions(node: Node) -> list[Node]:
    """List the functions that captured an object."""
    return [holder for holder in node.holders if isinstance(holder.value, FUNCTIONS)]


def _closure(start: Iterable[Node], following: Callable[[Node], list[Node]]) -> set[Node]:
    """Collect the nodes that others lead to, with themselves."""
    found = set(start)
    pending = list(found)
    while pending:
        fresh = set(following(pending.pop())) - found
        found |= fresh
        pending += fresh
    return found
