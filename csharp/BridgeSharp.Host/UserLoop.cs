using System.Text.Json.Nodes;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp.Host;

/// <summary>A user's own training loop: an object with <c>double step(Tensor inputs, Tensor targets)</c> and <c>OrderedDictionary&lt;string, Tensor&gt; state</c>.</summary>
internal sealed class UserLoop : IDisposable
{
    private readonly dynamic loop;

    /// <summary>Make the loop.</summary>
    /// <param name="arguments"><c>{"type", "assembly", "arguments", "seed", "threads"}</c>.</param>
    public UserLoop(JsonObject arguments)
    {
        set_num_threads((int)arguments["threads"]!);
        random.manual_seed((long)arguments["seed"]!);
        var type = ModelTypes.FindLoop((string)arguments["type"]!, (string)arguments["assembly"]!);
        loop = ModelTypes.Create(type, [.. arguments["arguments"]!.AsArray().Select(Scalars.Read)]);
    }

    /// <summary>Train on one batch and return its loss.</summary>
    public double Step(Tensor inputs, Tensor targets) => loop.step(inputs, targets);

    /// <summary>Return the state: names and tensors (aliases).</summary>
    public OrderedDictionary<string, Tensor> State() => loop.state;

    /// <summary>Copy a state into the tensors of the same names and shapes.</summary>
    public void Load(IReadOnlyDictionary<string, Tensor> given)
    {
        using var mode = no_grad();
        var own = State();
        var missing = own.Keys.Where(name => !given.ContainsKey(name)).ToList();
        var unexpected = given.Keys.Where(name => !own.ContainsKey(name)).ToList();
        if (missing.Count + unexpected.Count > 0)
        {
            throw new InvalidOperationException(
                $"loop: expected a state of {Join(own.Keys)}: missing {Join(missing)}, unexpected {Join(unexpected)}");
        }

        if (own.FirstOrDefault(entry => !given[entry.Key].shape.SequenceEqual(entry.Value.shape)) is { Key: { } wrong, Value: var tensor })
        {
            throw new InvalidOperationException(
                $"loop: expected {wrong} of shape ({Join(tensor.shape)}), got ({Join(given[wrong].shape)})");
        }

        foreach (var (name, target) in own)
        {
            target.copy_(given[name]);
        }
    }

    /// <summary>Dispose the loop, where it can be.</summary>
    public void Dispose() => (loop as IDisposable)?.Dispose();

    private static string Join<T>(IEnumerable<T> items) => string.Join(", ", items);
}
