using BridgeSharp.Parallel;
using static TorchSharp.torch;

namespace BridgeSharp;

/// <summary>The linear rule: k replicas, each with a batch of its own size, take k times the rate.</summary>
/// <remarks>
/// Over the first <see cref="warm_up"/> updates the factor grows from 1 to <see cref="factor"/> in equal steps.
/// Spec: R7.6. Source: Goyal et al. 2017, https://arxiv.org/abs/1706.02677
/// </remarks>
public sealed record LinearScaling
{
    /// <summary>Make the rule.</summary>
    /// <param name="factor">k, how many times the batch is larger than the one the rate was made for.</param>
    /// <param name="warm_up">The number of updates until the whole factor holds.</param>
    /// <exception cref="ArgumentException">A factor that is not above 0, or a negative warm-up.</exception>
    public LinearScaling(double factor, int warm_up = 0)
    {
        if (!(factor > 0 && double.IsFinite(factor)))
        {
            throw new ArgumentException($"LinearScaling: expected a factor above 0, got {Text.Number(factor)}");
        }

        if (warm_up < 0)
        {
            throw new ArgumentException($"LinearScaling: expected warm_up of at least 0, got {warm_up}");
        }

        this.factor = factor;
        this.warm_up = warm_up;
    }

    /// <summary>How many times the rate is taken in the end.</summary>
    public double factor { get; }

    /// <summary>The number of updates until the whole factor holds.</summary>
    public int warm_up { get; }

    /// <summary>Return the factor of an update, counted from 0.</summary>
    /// <param name="update">The number of the update.</param>
    /// <returns>The factor.</returns>
    public double at(long update) => update >= warm_up ? factor : 1 + ((factor - 1) * ((double)update / warm_up));

    /// <summary>Scale the rates of an optimizer until the result is disposed; schedulers see the rates unscaled.</summary>
    internal static IDisposable Scaled(optim.Optimizer optimizer, double factor) => new Scale(optimizer, factor);

    private sealed class Scale : IDisposable
    {
        private readonly List<(optim.ILearningRateController Group, double Rate)> rates;

        public Scale(optim.Optimizer optimizer, double factor)
        {
            rates = [.. optimizer.ParamGroups.Select(group => (group, group.LearningRate))];
            rates.ForEach(pair => pair.Group.LearningRate = pair.Rate * factor);
        }

        public void Dispose() => rates.ForEach(pair => pair.Group.LearningRate = pair.Rate);
    }
}
