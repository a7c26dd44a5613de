using static TorchSharp.torch;

namespace BridgeSharp.Host.Conformance;

/// <summary>Runs a function, an initializer or a random draw: its outputs, and the gradients of its inputs.</summary>
internal static class Functions
{
    /// <summary>Run one case.</summary>
    public static Outcome Run(CaseRequest request)
    {
        var outcome = new Outcome();
        var leaves = request.Leaves();
        random.manual_seed(request.Seed);
        var outputs = outcome.Add("output", Binder.Call(Lookup.Methods(request.Name), request.Inputs, request.Arguments));
        outcome.Differentiate(outputs, leaves.Select(leaf => new KeyValuePair<string, Tensor>($"input{leaf.Key}", leaf.Value)));
        return outcome;
    }
}
