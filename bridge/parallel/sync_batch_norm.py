"""Batch normalization over the samples of all replicas."""

import torch
from torch import nn

from bridge.parallel.average import widened
from bridge.parallel.group import exchange


class SyncBatchNorm(nn.modules.batchnorm._BatchNorm):  # noqa: SLF001 - the base of PyTorch's own
    """Batch normalization whose statistics are those of the whole batch, over all replicas.

    So several replicas train as one undivided model does. In evaluation mode, and with one replica,
    it is PyTorch's batch normalization bit for bit. The replicas' graphs are connected by the
    statistics: their losses are differentiated together, as ``Trainer`` does. Half precision is
    normalized in float32.

    Shapes: ``(N, C, *)`` to the same.

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: the share of the batch in the running statistics; None takes their mean.
        affine: learn a weight and a bias.
        track_running_stats: keep running statistics for evaluation.

    Spec: R22.1, R22.2, R22.3. Source: torch/nn/modules/batchnorm.py
    """

    synchronized = True

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - PyTorch's name
        """Normalize a shard by the statistics of all shards.

        Raises:
            ValueError: an input without channels, or a batch with one value per channel.
            BrokenGroupError: another replica failed, or never came here.
        """
        self._check_input_dim(input)
        if not (self.training or self.running_mean is None):
            return super().forward(input)
        shard = widened(input)
        sums = exchange((_per_channel(shard), input.numel() // input.shape[1]))
        if len(sums) == 1:
            return super().forward(input)
        return self._normalize(shard, sums).to(input.dtype)

    def _normalize(self, shard: torch.Tensor, sums: list[tuple[torch.Tensor, int]]) -> torch.Tensor:
        """Normalize one shard by the statistics of all, added in replica order."""
        count = sum(number for _, number in sums)
        shape = [1, -1] + [1] * (shard.dim() - 2)
        mean = _total([part for part, _ in sums], shard.device) / count
        centred = shard - mean.view(shape)
        variance = _total(exchange(_per_channel(centred.square())), shard.device) / count
        self._track(mean.detach(), variance.detach() * (count / (count - 1)))
        scale = (variance + self.eps).rsqrt()
        if self.weight is not None:
            scale = scale * self.weight
        result = centred * scale.view(shape)
        return result if self.bias is None else result + self.bias.view(shape)

    def _track(self, mean: torch.Tensor, variance: torch.Tensor) -> None:
        """Move the running statistics towards those of the batch."""
        if self.running_mean is None or self.running_var is None:
            return
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        share = self.momentum
        if share is None:
            share = 1.0 / float(self.num_batches_tracked or 1)
        with torch.no_grad():
            self.running_mean.mul_(1 - share).add_(mean, alpha=share)
            self.running_var.mul_(1 - share).add_(variance, alpha=share)

    def _check_input_dim(self, input: torch.Tensor) -> None:  # noqa: A002 - PyTorch's name
        """Refuse an input without a dimension of channels."""
        if input.dim() < 2:  # noqa: PLR2004 - samples and channels
            message = f"SyncBatchNorm: expected an input (N, C, *), got shape {tuple(input.shape)}"
            raise ValueError(message)


def synchronizes(module: nn.Module) -> bool:
    """Tell whether replicas of a module must run at once: a layer has ``synchronized = True``.

    Spec: R22.3
    """
    return any(getattr(layer, "synchronized", False) for layer in module.modules())


def _per_channel(values: torch.Tensor) -> torch.Tensor:
    """Sum over all dimensions but the channels'."""
    return values.sum([axis for axis in range(values.dim()) if axis != 1])


def _total(parts: list[torch.Tensor], device: torch.device) -> torch.Tensor:
    """Add tensors in order, on one device."""
    total = parts[0].to(device)
    for part in parts[1:]:
        total = total + part.to(device)
    return total
