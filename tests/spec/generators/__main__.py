"""Write the vectors: ``python -m tests.spec.generators``, with PyTorch 1.13, then with 2.10.

The files that end in ``-1.13.json`` come from PyTorch 1.13 and all others from 2.10.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from tests.spec.generators import (
    data,
    draws,
    lbfgs,
    loader,
    optimizers,
    recipes,
    safetensors_files,
    schedulers,
    torch_files,
    trace,
    trainer,
    training,
    training_checkpoints,
    trees,
)

FOLDER = Path(__file__).parents[1] / "vectors"


def write(name: str, document: Mapping[str, Any]) -> None:
    """Write a file of vectors, with a line for each member of a case."""
    cases = [
        ",\n".join(f"      {json.dumps(key)}: {json.dumps(value)}" for key, value in case.items())
        for case in document["cases"]
    ]
    about = json.dumps(document["about"])
    body = ",\n".join(f"    {{\n{case}\n    }}" for case in cases)
    text = f'{{\n  "about": {about},\n  "cases": [\n{body}\n  ]\n}}\n'
    (FOLDER / f"{name}.json").write_text(text, encoding="utf-8")


def main() -> int:
    """Write what this version of PyTorch stands for."""
    version = torch.__version__
    if version.startswith("1.13"):
        write("optimizers-1.13", optimizers.optimizers("1.13"))
        write("lbfgs-1.13", lbfgs.lbfgs("1.13"))
        write("schedulers-1.13", schedulers.schedulers("1.13"))
        write("torch_file-1.13", torch_files.written())
        return 0
    if not version.startswith("2.10"):
        sys.stderr.write(f"generators: expected PyTorch 1.13 or 2.10, got {version}\n")
        return 2
    write("optimizers", optimizers.optimizers("2.10"))
    write("lbfgs", lbfgs.lbfgs("2.10"))
    write("schedulers", schedulers.schedulers("2.10"))
    write("trainer", trainer.trainer())
    write("training", training.training())
    write("training_checkpoint", training_checkpoints.training_checkpoints())
    write("draws", draws.draws())
    write("digest", data.digests())
    write("order", data.orders())
    write("loader", loader.loaders())
    write("family", data.family())
    write("recipe", recipes.recipes())
    write("safetensors", safetensors_files.safetensors_files())
    write("tree_file", trees.trees())
    write("torch_file-2.10", torch_files.written())
    write("torch_file", torch_files.hostile())
    write("trace", trace.traces())
    return 0


if __name__ == "__main__":
    sys.exit(main())
