using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Parallel;

/// <summary>What a trainer does without gradients, and its means over many batches.</summary>
internal static class Evaluation
{
    /// <summary>Run replicas in evaluation mode, without gradients, and gather the outputs.</summary>
    /// <remarks>Spec: R8.4.</remarks>
    public static object Predict(IReadOnlyList<nn.Module> replicas, IReadOnlyList<Device> devices, object inputs)
    {
        using var scope = NewDisposeScope();
        var modes = replicas.SelectMany(replica => replica.named_modules().Select(named => named.module).Prepend(replica))
            .Select(module => (module, module.training)).ToList();
        try
        {
            foreach (var replica in replicas)
            {
                replica.eval();
            }

            using var mode = no_grad();
            var outputs = bridge.parallel_apply(replicas, bridge.scatter(inputs, devices), devices: devices);
            return Tree.MoveToOuterScope(bridge.gather(outputs, devices[0]))!;
        }
        finally
        {
            foreach (var (module, training) in modes)
            {
                module.train(training);
            }
        }
    }

    /// <summary>Take the mean of one measured batch, and how many samples or counts it is over.</summary>
    public static (double Value, double Count) Measured((Tensor Value, double Count) measured, long samples, string reduction)
    {
        var value = measured.Value.to(float64).item<double>();
        return reduction switch
        {
            "count" => (measured.Count != 0 ? value / measured.Count : 0, measured.Count),
            "sum" => (value / samples, samples),
            _ => (value, samples),
        };
    }

    /// <summary>Average means by their counts, in order.</summary>
    /// <exception cref="ArgumentException">There is nothing to average.</exception>
    public static double Mean(IReadOnlyList<(double Value, double Count)> wholes)
    {
        if (wholes.Count == 0)
        {
            throw new ArgumentException("Trainer: expected at least 1 batch, got 0");
        }

        var total = wholes.Sum(whole => whole.Count);
        return total != 0 ? wholes.Sum(whole => whole.Value * (whole.Count / total)) : 0;
    }
}
