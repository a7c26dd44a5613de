"""What replicas draw: each on a generator of its own."""

from typing import Any

import torch
from torch.nn import functional

from tests.spec.generators.values import values

Case = dict[str, Any]


def draws() -> Case:
    """Draw on the streams of several replicas."""
    about = (
        "A model multiplies its input by a parameter of ones, and from step 'from' on drops half "
        "of it ('dropout'), or adds uniform numbers ('rand'). After manual_seed('seed') a trainer "
        "of 'replicas' is made; 'drawn' are the outputs of its replicas for batches of ones of "
        "these 'sizes', by step. Replica i draws on the stream of manual_seed(seed + i)."
    )
    jobs = [
        ("dropout, one replica", "dropout", 7, 1, 0, [3, 2]),
        ("dropout, three replicas", "dropout", 7, 3, 0, [6, 5, 2, 6]),
        ("dropout from the third step on", "dropout", 11, 2, 2, [4, 4, 4, 3]),
        ("uniform numbers", "rand", 2**40 + 3, 2, 0, [4, 3]),
        ("uniform numbers from the second step on", "rand", 5, 3, 1, [3, 3, 3]),
        ("the last seed there is", "rand", 2**63 - 1, 2, 0, [2]),
    ]
    return {"about": about, "cases": [_drawn(*job) for job in jobs]}


def _drawn(name: str, kind: str, seed: int, replicas: int, first: int, sizes: list[int]) -> Case:  # noqa: PLR0913, PLR0917
    """Draw what each replica draws, on its own generator."""
    states = [torch.Generator().manual_seed(seed + i).get_state() for i in range(replicas)]
    drawn: list[list[Any]] = []
    for step, size in enumerate(sizes):
        shard = -(-size // replicas)
        drawn.append([])
        for index, start in enumerate(range(0, size, shard)):
            torch.set_rng_state(states[index])
            outputs = torch.ones(min(shard, size - start), 3, dtype=torch.float64)
            if step >= first and kind == "dropout":
                outputs = functional.dropout(outputs, 0.5)
            elif step >= first:
                outputs = outputs + torch.rand_like(outputs)
            states[index] = torch.get_rng_state()
            drawn[-1].append(values(outputs))
    return {
        "name": name, "spec": ["R20.1", "R20.2", *(["R20.3"] if first else [])], "kind": kind,
        "seed": seed, "replicas": replicas, "from": first, "sizes": sizes, "drawn": drawn,
    }  # fmt: skip
