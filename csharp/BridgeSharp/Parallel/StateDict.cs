using BridgeSharp.Parity;
using TorchSharp;
using static TorchSharp.torch;

namespace BridgeSharp;

/// <summary>State dicts with PyTorch's order of keys and PyTorch's checks.</summary>
public static class StateDict
{
    /// <summary>Return the state of a module: its parameters, its persistent buffers, then its children's.</summary>
    /// <remarks>
    /// TorchSharp's own <c>state_dict</c> lists all parameters before all buffers. Spec: R6.3.
    /// Source: torch/nn/modules/module.py
    /// </remarks>
    /// <param name="module">The module.</param>
    /// <returns>Names and tensors (aliases: the module's own), in order.</returns>
    public static OrderedDictionary<string, Tensor> Of(nn.Module module)
    {
        var state = new OrderedDictionary<string, Tensor>();
        Collect(module, "", state);
        return state;
    }

    /// <summary>Load a state strictly: every key, every shape, every dtype; nothing is broadcast.</summary>
    /// <remarks>Spec: R6.2, R6.6. Source: torch/nn/modules/module.py</remarks>
    /// <param name="module">The module.</param>
    /// <param name="source">Names and tensors.</param>
    /// <param name="prefix">Taken off every name first, such as <c>"module."</c>, which wrappers put there.</param>
    /// <exception cref="InvalidOperationException">Keys that are missing, unexpected, or of another shape or dtype, listed.</exception>
    public static void Load(nn.Module module, IReadOnlyDictionary<string, Tensor> source, string prefix = "")
    {
        var names = source.Keys.Select(name => Without(prefix, name)).ToList();
        var state = names.Zip(source.Values).GroupBy(pair => pair.First).ToDictionary(group => group.Key, group => group.Last().Second);
        Check(module, state, names);
        using var mode = no_grad();
        foreach (var (name, tensor) in Of(module))
        {
            tensor.copy_(state[name]);
        }
    }

    /// <summary>Refuse a state that does not fit, or whose names are there twice.</summary>
    /// <remarks>Spec: R6.2, R6.6.</remarks>
    /// <exception cref="InvalidOperationException">Keys that are missing, unexpected, or of another shape or dtype, listed.</exception>
    internal static void Check(nn.Module module, IReadOnlyDictionary<string, Tensor> state, IEnumerable<string>? names = null)
    {
        var faults = Twice(names ?? []).Concat(Faults(Of(module), state)).ToList();
        if (faults.Count > 0)
        {
            throw new InvalidOperationException(
                $"Error(s) in loading state_dict for {module.GetName()}:\n\t{string.Join("\n\t", faults)}");
        }
    }

    private static void Collect(nn.Module module, string prefix, OrderedDictionary<string, Tensor> state)
    {
        foreach (var (name, parameter) in module.named_parameters(recurse: false))
        {
            state.TryAdd(prefix + name, parameter);
        }

        foreach (var (name, buffer) in module.named_buffers(recurse: false, include_nonpersistent: false))
        {
            state.TryAdd(prefix + name, buffer);
        }

        foreach (var (name, child) in module.named_children())
        {
            Collect(child, $"{prefix}{name}.", state);
        }
    }

    /// <summary>Describe names that are there with the prefix and without it.</summary>
    private static IEnumerable<string> Twice(IEnumerable<string> names)
    {
        var twice = names.GroupBy(name => name).Where(group => group.Count() > 1).Select(group => group.Key).ToList();
        if (twice.Count > 0)
        {
            yield return $"Key(s) with and without the prefix in state_dict: {Quoted(twice)}. ";
        }
    }

    /// <summary>Describe what does not fit, in PyTorch's words.</summary>
    internal static IEnumerable<string> Faults(OrderedDictionary<string, Tensor> own, IReadOnlyDictionary<string, Tensor> source)
    {
        var missing = own.Keys.Where(name => !source.ContainsKey(name)).ToList();
        if (missing.Count > 0)
        {
            yield return $"Missing key(s) in state_dict: {Quoted(missing)}. ";
        }

        var unexpected = source.Keys.Where(name => !own.ContainsKey(name)).ToList();
        if (unexpected.Count > 0)
        {
            yield return $"Unexpected key(s) in state_dict: {Quoted(unexpected)}. ";
        }

        if (unexpected.Count > 0 && unexpected.TrueForAll(name => own.ContainsKey(Without("module.", name))))
        {
            yield return "The names start with \"module.\": load with prefix \"module.\". ";
        }

        foreach (var (name, tensor) in own)
        {
            if (!source.TryGetValue(name, out var given))
            {
                continue;
            }

            if (!given.shape.SequenceEqual(tensor.shape))
            {
                yield return $"size mismatch for {name}: copying a param with shape {Size(given)} from checkpoint, "
                    + $"the shape in current model is {Size(tensor)}.";
            }
            else if (given.dtype != tensor.dtype)
            {
                yield return $"dtype mismatch for {name}: copying a param with dtype {Digest.dtype_name(given.dtype)} from checkpoint, "
                    + $"the dtype in current model is {Digest.dtype_name(tensor.dtype)}.";
            }
        }
    }

    private static string Without(string prefix, string name)
        => name.StartsWith(prefix, StringComparison.Ordinal) ? name[prefix.Length..] : name;

    private static string Quoted(IEnumerable<string> names) => string.Join(", ", names.Select(name => $"\"{name}\""));

    private static string Size(Tensor tensor) => $"torch.Size([{string.Join(", ", tensor.shape)}])";
}
