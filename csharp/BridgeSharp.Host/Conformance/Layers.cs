using static TorchSharp.torch;

namespace BridgeSharp.Host.Conformance;

/// <summary>Runs a layer or a loss: initial values, forward, gradients, buffers, evaluation mode.</summary>
internal static class Layers
{
    /// <summary>Run one case.</summary>
    public static Outcome Run(CaseRequest request)
    {
        var outcome = new Outcome();
        random.manual_seed(request.Seed);
        using var layer = (nn.Module)Binder.Call(Lookup.Methods(request.Name), [], request.Arguments)!;
        var state = layer.state_dict();
        outcome.Texts["names"] = Outcome.Describe(state);
        var names = Names(state, request.State);
        foreach (var (own, name) in names)
        {
            outcome.Tensors[$"initial.{name}"] = Outcome.Keep(state[own]);
        }

        Load(state, request.State, names);
        var leaves = request.Leaves();
        random.manual_seed(request.Seed + 1);
        var outputs = outcome.Add("output", Forward(layer, request));
        outcome.Differentiate(
            outputs,
            leaves.Select(leaf => new KeyValuePair<string, Tensor>($"input{leaf.Key}", leaf.Value))
                .Concat(layer.named_parameters().Select(parameter => new KeyValuePair<string, Tensor>(names.GetValueOrDefault(parameter.name, parameter.name), parameter.parameter))));
        foreach (var (name, buffer) in layer.named_buffers())
        {
            outcome.Tensors[$"buffer.{names.GetValueOrDefault(name, name)}"] = Outcome.Keep(buffer);
        }

        layer.eval();
        using var mode = no_grad();
        random.manual_seed(request.Seed + 1);
        outcome.Add("eval", Forward(layer, request));
        return outcome;
    }

    private static object? Forward(nn.Module layer, CaseRequest request)
        => Binder.Call(Lookup.Forward(layer), request.Inputs, request.Forward, layer);

    /// <summary>Pair the names of both sides: equal ones, then the rest in order where shapes are equal.</summary>
    private static Dictionary<string, string> Names(Dictionary<string, Tensor> own, Dictionary<string, Tensor> reference)
    {
        var names = own.Keys.Where(reference.ContainsKey).ToDictionary(name => name);
        var rest = reference.Keys.Where(name => !names.ContainsKey(name)).ToList();
        foreach (var name in own.Keys.Where(name => !names.ContainsKey(name)))
        {
            if (rest.Find(other => reference[other].shape.SequenceEqual(own[name].shape)) is { } found)
            {
                names[name] = found;
                rest.Remove(found);
            }
        }

        return names;
    }

    private static void Load(Dictionary<string, Tensor> own, Dictionary<string, Tensor> reference, Dictionary<string, string> names)
    {
        using var mode = no_grad();
        foreach (var (name, other) in names)
        {
            own[name].copy_(reference[other]);
        }
    }
}
