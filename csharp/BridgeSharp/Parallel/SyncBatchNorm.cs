using BridgeSharp.Parallel;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp;

/// <summary>A module whose replicas exchange values in their forward, so that they must run at once.</summary>
public interface ISynchronized
{
    /// <summary>Whether it does so in its present mode.</summary>
    bool synchronized { get; }
}

/// <summary>Batch normalization whose statistics are those of the whole batch, over all replicas.</summary>
/// <remarks>
/// So several replicas train as one undivided model does. In evaluation mode, and with one replica, it is PyTorch's
/// batch normalization bit for bit. The replicas' graphs are connected by the statistics: their losses are
/// differentiated together, as <see cref="Trainer"/> does. Half precision is normalized in float32. Shapes: <c>(N, C, *)</c> to the same.
/// Spec: R22.1, R22.2, R22.3. Source: torch/nn/modules/batchnorm.py
/// </remarks>
public sealed class SyncBatchNorm : NormBase, ISynchronized
{
    /// <summary>Make a layer for a number of channels.</summary>
    /// <param name="num_features">C.</param>
    /// <param name="eps">Added to the variance.</param>
    /// <param name="momentum">The share of the batch in the running statistics; null takes their mean.</param>
    /// <param name="affine">Learn a weight and a bias.</param>
    /// <param name="track_running_stats">Keep running statistics for evaluation.</param>
    public SyncBatchNorm(long num_features, double eps = 1e-5, double? momentum = 0.1, bool affine = true, bool track_running_stats = true)
        : base(num_features, eps, momentum, affine, track_running_stats, null, null, nameof(SyncBatchNorm))
    {
    }

    /// <summary>Whether replicas must run at once: always.</summary>
    public bool synchronized => true;

    /// <summary>Tell whether replicas of a module must run at once: a layer is <see cref="ISynchronized"/>.</summary>
    /// <remarks>Spec: R22.3.</remarks>
    /// <param name="module">The module.</param>
    /// <returns>Whether one of its layers synchronizes.</returns>
    internal static bool synchronizes(nn.Module module)
        => module.named_modules().Select(named => named.module).Prepend(module).Any(layer => layer is ISynchronized { synchronized: true });

    /// <summary>Normalize a shard by the statistics of all shards.</summary>
    /// <param name="input">A shard <c>(N, C, *)</c>.</param>
    /// <returns>The same shape, fresh.</returns>
    /// <exception cref="ArgumentException">An input without channels, or a batch with one value per channel.</exception>
    /// <exception cref="BrokenGroupException">Another replica failed, or never came here.</exception>
    public override Tensor forward(Tensor input)
    {
        ValidateInputDimensions(input);
        if (!training && running_mean is not null)
        {
            return nn.functional.batch_norm(input, running_mean, running_var, weight, bias, training: false, 0, eps);
        }

        var shard = bridge.widened(input);
        var sums = Group.exchange((PerChannel(shard), input.NumberOfElements / input.size(1)));
        return sums.Count == 1 ? NormalizeAlone(input) : Normalize(shard, sums).to(input.dtype);
    }

    /// <summary>Refuse an input without a dimension of channels.</summary>
    /// <param name="input">A shard.</param>
    protected override void ValidateInputDimensions(Tensor input)
    {
        if (input.dim() < 2)
        {
            throw new ArgumentException($"SyncBatchNorm: expected an input (N, C, *), got shape {Text.Shape(input.shape)}");
        }
    }

    private Tensor NormalizeAlone(Tensor input)
    {
        if (input.NumberOfElements == input.size(1))
        {
            var size = string.Join(", ", input.shape);
            throw new ArgumentException($"Expected more than 1 value per channel when training, got input size torch.Size([{size}])");
        }

        return nn.functional.batch_norm(input, running_mean, running_var, weight, bias, training: true, Share(), eps);
    }

    /// <summary>Normalize one shard by the statistics of all, added in replica order.</summary>
    private Tensor Normalize(Tensor shard, IReadOnlyList<(Tensor Part, long Number)> sums)
    {
        var count = sums.Sum(sum => sum.Number);
        long[] shape = [1, -1, .. Enumerable.Repeat(1L, (int)shard.dim() - 2)];
        var mean = Total(sums.Select(sum => sum.Part), shard.device) / count;
        var centred = shard - mean.view(shape);
        var variance = Total(Group.exchange(PerChannel(centred.square())), shard.device) / count;
        Track(mean.detach(), variance.detach() * ((double)count / (count - 1)));
        var scale = (variance + eps).rsqrt();
        if (weight is not null)
        {
            scale *= weight;
        }

        var result = centred * scale.view(shape);
        return bias is null ? result : result + bias.view(shape);
    }

    /// <summary>Move the running statistics towards those of the batch.</summary>
    private void Track(Tensor mean, Tensor variance)
    {
        if (running_mean is null || running_var is null)
        {
            return;
        }

        var share = Share();
        using var mode = no_grad();
        running_mean.mul_(1 - share).add_(mean, alpha: share);
        running_var.mul_(1 - share).add_(variance, alpha: share);
    }

    /// <summary>Count the batch, and return its share in the running statistics.</summary>
    private double Share()
    {
        if (track_running_stats)
        {
            num_batches_tracked?.add_(1);
        }

        return momentum ?? 1.0 / (num_batches_tracked?.to(int64).item<long>() ?? 1);
    }

    /// <summary>Sum over all dimensions but the channels'.</summary>
    private static Tensor PerChannel(Tensor values)
        => values.sum([.. Enumerable.Range(0, (int)values.dim()).Where(axis => axis != 1).Select(axis => (long)axis)]);

    /// <summary>Add tensors in order, on one device.</summary>
    private static Tensor Total(IEnumerable<Tensor> parts, Device device)
        => parts.Select(part => part.to(device)).Aggregate((total, part) => total + part);
}
