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
        var unmatched = own.Keys.Where(name => !given.ContainsKey(name)).Concat(given.Keys.Where(name => !own.ContainsKey(name))).ToList();
        if (unmatched.Count > 0)
        {
            throw new InvalidOperationException($"loop: expected a state of {string.Join(", ", own.Keys)}, got or lack {string.Join(", ", unmatched)}");
        }

        foreach (var (name, tensor) in own)
        {
            var source = given[name];
            if (!source.shape.SequenceEqual(tensor.shape))
            {
                throw new InvalidOperationException($"loop: expected {name} of shape ({string.Join(", ", tensor.shape)}), got ({string.Join(", ", source.shape)})");
            }

            tensor.copy_(source);
        }
    }

    /// <summary>Dispose the loop, where it can be.</summary>
    public void Dispose() => (loop as IDisposable)?.Dispose();
}
