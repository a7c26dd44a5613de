using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Optimizers by name, with the same options in both languages.</summary>
public static class Optimizers
{
    private static readonly Dictionary<string, HashSet<string>> Known = new()
    {
        ["sgd"] = ["lr", "momentum", "dampening", "weight_decay", "nesterov", "maximize"],
        ["adam"] = ["lr", "betas", "eps", "weight_decay", "amsgrad", "maximize"],
    };

    /// <summary>Make an optimizer by its name, with PyTorch's defaults.</summary>
    /// <remarks>Spec: R9.1.</remarks>
    /// <param name="name"><c>"sgd"</c> or <c>"adam"</c>.</param>
    /// <param name="parameters">What it updates.</param>
    /// <param name="options">As PyTorch names them; numbers, booleans, and <c>betas</c> as two numbers.</param>
    /// <param name="reference">Whose formulas: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <returns>The optimizer.</returns>
    /// <exception cref="ArgumentException">Another name, or an option that the optimizer does not have.</exception>
    public static optim.Optimizer create(
        string name, IEnumerable<Parameter> parameters, IReadOnlyDictionary<string, object>? options = null, string reference = "2.10")
    {
        if (!Known.TryGetValue(name, out var known))
        {
            throw new ArgumentException($"optimizer: expected one of {string.Join(", ", Known.Keys)}, got '{name}'");
        }

        options ??= new Dictionary<string, object>();
        if (options.Keys.FirstOrDefault(option => !known.Contains(option)) is { } stranger)
        {
            throw new ArgumentException($"optimizer: expected options of {name} ({string.Join(", ", known)}), got '{stranger}'");
        }

        var (beta1, beta2) = Betas(options);
        return name switch
        {
            "sgd" => new SGD(
                parameters, Number("lr", 1e-3), Number("momentum"), Number("dampening"), Number("weight_decay"), Flag("nesterov"), Flag("maximize")),
            _ => new Adam(
                parameters, Number("lr", 1e-3), beta1, beta2, Number("eps", 1e-8), Number("weight_decay"), Flag("amsgrad"), Flag("maximize"), reference),
        };

        double Number(string option, double other = 0)
            => options.TryGetValue(option, out var value) ? Convert.ToDouble(value, null) : other;

        bool Flag(string option) => options.TryGetValue(option, out var value) && Convert.ToBoolean(value, null);
    }

    private static (double Beta1, double Beta2) Betas(IReadOnlyDictionary<string, object> options)
    {
        if (!options.TryGetValue("betas", out var value))
        {
            return (0.9, 0.999);
        }

        return value is IReadOnlyList<object> { Count: 2 } pair
            ? (Convert.ToDouble(pair[0], null), Convert.ToDouble(pair[1], null))
            : throw new ArgumentException($"optimizer: expected betas as two numbers, got {value}");
    }
}
