"""Write the vectors: ``python -m tests.spec.generators``, with PyTorch 1.13, then with 2.10.

``adam-1.13.json`` comes from PyTorch 1.13 and all other files from 2.10; the two versions give the
same bits except in Adam.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from tests.spec.generators import data, draws, loader, optimizers, recipes, trace, trainer, training

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
        write("adam-1.13", optimizers.adam("1.13"))
        return 0
    if not version.startswith("2.10"):
        sys.stderr.write(f"generators: expected PyTorch 1.13 or 2.10, got {version}\n")
        return 2
    write("sgd", optimizers.sgd())
    write("adam", optimizers.adam("2.10"))
    write("trainer", trainer.trainer())
    write("training", training.training())
    write("draws", draws.draws())
    write("digest", data.digests())
    write("order", data.orders())
    write("loader", loader.loaders())
    write("family", data.family())
    write("recipe", recipes.recipes())
    write("trace", trace.traces())
    return 0


if __name__ == "__main__":
    sys.exit(main())
