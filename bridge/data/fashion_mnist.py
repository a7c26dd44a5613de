"""Fashion-MNIST: 60,000 training and 10,000 test images of clothes, in ten classes."""

from pathlib import Path

import torch

from bridge.data.idx import IdxError, read_idx

DEBIAN_FOLDER = Path("/usr/share/datasets/fashion-mnist")
MEAN, DEVIATION = 0.2860, 0.3530
CLASSES, SIDE = 10, 28


class FashionMnist:
    """One split of Fashion-MNIST, normalized as it is read out.

    Args:
        folder: holds the four IDX files, gzipped or not; None takes the folder of Debian's package.
        train: the training split, else the test split.
        dtype: of the images that :meth:`batch` returns.

    Raises:
        FileNotFoundError: a file is missing; the message says how to get the data.
        IdxError: a damaged file, or one of other contents than stated.

    Spec: R10.3, R10.4
    """

    def __init__(self, folder: Path | None, *, train: bool, dtype: torch.dtype) -> None:
        """Read the images and labels of one split."""
        stem = "train" if train else "t10k"
        folder = folder or DEBIAN_FOLDER
        images = _find(folder, f"{stem}-images-idx3-ubyte")
        labels = _find(folder, f"{stem}-labels-idx1-ubyte")
        self.images = read_idx(images)
        self.labels = read_idx(labels).long()
        _check(self.images, images.name, self.labels, labels.name)
        grey = [(value / 255 - MEAN) / DEVIATION for value in range(256)]
        self._grey = torch.tensor(grey, dtype=torch.float64).to(dtype)

    def __len__(self) -> int:
        """Count the samples."""
        return len(self.labels)

    def batch(self, indices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Read samples out, images ``(N, 1, 28, 28)`` normalized and labels ``(N,)``.

        Args:
            indices: which samples, int64 ``(N,)``.

        Returns:
            Fresh tensors.

        Spec: R10.4
        """
        points = self.images[indices].unsqueeze(1).long()
        return self._grey[points], self.labels[indices]


def _find(folder: Path, name: str) -> Path:
    """Find a file of the data set, gzipped or not."""
    for path in (folder / f"{name}.gz", folder / name):
        if path.is_file():
            return path
    message = (
        f"FashionMnist: expected {name}[.gz] in {folder}, found none; install Debian's package "
        "dataset-fashion-mnist, or download the four files of "
        "https://github.com/zalandoresearch/fashion-mnist and name their folder with --data"
    )
    raise FileNotFoundError(message)


def _check(images: torch.Tensor, name: str, labels: torch.Tensor, label_name: str) -> None:
    """Refuse images and labels that do not belong together."""
    if images.dim() != 3 or tuple(images.shape[1:]) != (SIDE, SIDE):  # noqa: PLR2004 - (N, H, W)
        shape = "x".join(map(str, images.shape))
        message = f"FashionMnist: expected images of {SIDE}x{SIDE} in {name}, got {shape}"
        raise IdxError(message)
    if labels.dim() != 1 or len(labels) != len(images):
        count = "x".join(map(str, labels.shape))
        message = f"FashionMnist: expected {len(images)} labels in {label_name}, got {count}"
        raise IdxError(message)
    if len(labels) and int(labels.max()) >= CLASSES:
        top = int(labels.max())
        message = f"FashionMnist: expected labels below {CLASSES} in {label_name}, got {top}"
        raise IdxError(message)
