using System.Text.Json.Nodes;
using static TorchSharp.torch;

namespace BridgeSharp.Host.Conformance;

/// <summary>A case as Python sends it.</summary>
/// <param name="body">The request's arguments.</param>
/// <param name="segment">Where its tensors are.</param>
internal sealed class CaseRequest(JsonObject body, Segment segment)
{
    /// <summary>Which runner: layer, function, optimizer, scheduler or state.</summary>
    public string Runner => (string)body["runner"]!;

    /// <summary>TorchSharp's name of what is called.</summary>
    public string Name => (string)body["name"]!;

    /// <summary>What the generator is seeded with, before anything is made or drawn.</summary>
    public long Seed => (long)body["seed"]!;

    /// <summary>What goes first, in order.</summary>
    public IReadOnlyList<object?> Inputs { get; } = (List<object?>)segment.ReadTree(body["inputs"])!;

    /// <summary>What goes by name.</summary>
    public IReadOnlyList<Argument> Arguments { get; } =
        [.. body["arguments"]!.AsArray().Select(part => new Argument([.. part!["names"]!.AsArray().Select(name => (string)name!)], segment.ReadTree(part["value"])))];

    /// <summary>More, by the runner: the reference's weights, gradients, metrics, a number of steps.</summary>
    public Dictionary<string, object?> More { get; } = (Dictionary<string, object?>)segment.ReadTree(body["more"])!;

    /// <summary>The reference's weights of a layer.</summary>
    public Dictionary<string, Tensor> State => ((Dictionary<string, object?>)More["state"]!).ToDictionary(entry => entry.Key, entry => (Tensor)entry.Value!);

    /// <summary>What goes by name to a layer's forward.</summary>
    public IReadOnlyList<Argument> Forward => [.. ((Dictionary<string, object?>)More["forward"]!).Select(entry => new Argument([entry.Key], entry.Value))];

    /// <summary>A list of tensors out of <see cref="More"/>.</summary>
    public List<Tensor> Tensors(string key) => [.. ((List<object?>)More[key]!).Cast<Tensor>()];

    /// <summary>Let the inputs that the reference differentiates take gradients.</summary>
    /// <returns>Those inputs, by their number.</returns>
    public Dictionary<int, Tensor> Leaves()
        => ((List<object?>)More["leaves"]!).Select(place => (int)(long)place!)
            .ToDictionary(place => place, place => ((Tensor)Inputs[place]!).requires_grad_());
}
