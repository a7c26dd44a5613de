using System.Text.Json.Nodes;
using static TorchSharp.torch;

namespace BridgeSharp.Host.Conformance;

/// <summary>Runs a case of the conformance matrix in TorchSharp.</summary>
internal static class Runner
{
    private static readonly Dictionary<string, Func<CaseRequest, Outcome>> Runners = new()
    {
        ["layer"] = Layers.Run,
        ["function"] = Functions.Run,
        ["optimizer"] = Optimizers.Run,
        ["scheduler"] = Schedulers.Run,
        ["state"] = States.Run,
    };

    /// <summary>Run one case.</summary>
    /// <param name="body">The request's arguments.</param>
    /// <param name="segment">Where its tensors are.</param>
    /// <returns>What it gave.</returns>
    public static Outcome Run(JsonObject body, Segment segment)
    {
        using var scope = NewDisposeScope();
        var request = new CaseRequest(body, segment);
        return Runners.TryGetValue(request.Runner, out var run)
            ? run(request)
            : throw new ArgumentException($"conformance: expected a runner of {string.Join(", ", Runners.Keys)}, got {request.Runner}");
    }
}
