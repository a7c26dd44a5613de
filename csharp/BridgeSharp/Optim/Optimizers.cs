using System.Collections;
using BridgeSharp.Parallel;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Optimizers by name, with the same options in both languages.</summary>
public static class Optimizers
{
    private static readonly Dictionary<string, string[]> Known = new()
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
    /// <exception cref="ArgumentException">Another name, an option that the optimizer does not have, or one out of range.</exception>
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

        return name == "sgd" ? Sgd(parameters, options) : Adam(parameters, options, reference);
    }

    private static SGD Sgd(IEnumerable<Parameter> parameters, IReadOnlyDictionary<string, object> options)
    {
        var lr = NotNegative(options, "lr", "learning rate", 1e-3);
        var momentum = NotNegative(options, "momentum", "momentum value");
        var decay = NotNegative(options, "weight_decay", "weight_decay value");
        var (dampening, nesterov) = (Number(options, "dampening"), Flag(options, "nesterov"));
        return !nesterov || (momentum > 0 && dampening == 0)
            ? new SGD(parameters, lr, momentum, dampening, decay, nesterov, Flag(options, "maximize"))
            : throw new ArgumentException("Nesterov momentum requires a momentum and zero dampening");
    }

    private static Adam Adam(IEnumerable<Parameter> parameters, IReadOnlyDictionary<string, object> options, string reference)
    {
        var lr = NotNegative(options, "lr", "learning rate", 1e-3);
        var eps = NotNegative(options, "eps", "epsilon value", 1e-8);
        var (beta1, beta2) = Betas(options);
        var decay = NotNegative(options, "weight_decay", "weight_decay value");
        return new Adam(parameters, lr, beta1, beta2, eps, decay, Flag(options, "amsgrad"), Flag(options, "maximize"), reference);
    }

    private static (double Beta1, double Beta2) Betas(IReadOnlyDictionary<string, object> options)
    {
        object value = options.TryGetValue("betas", out var given) ? given : (0.9, 0.999);
        var (beta1, beta2) = value switch
        {
            (double first, double second) => (first, second),
            IEnumerable pair when pair.Cast<object>().ToList() is [var first, var second] => (Convert.ToDouble(first, null), Convert.ToDouble(second, null)),
            _ => throw new ArgumentException($"optimizer: expected betas as two numbers, got {value}"),
        };
        foreach (var (index, beta) in new[] { beta1, beta2 }.Index())
        {
            if (!(beta is >= 0 and < 1))
            {
                throw new ArgumentException($"Invalid beta parameter at index {index}: {Text.Number(beta)}");
            }
        }

        return (beta1, beta2);
    }

    /// <summary>Read a number that is not negative; the text is PyTorch's.</summary>
    private static double NotNegative(IReadOnlyDictionary<string, object> options, string option, string title, double other = 0)
    {
        var value = Number(options, option, other);
        return value >= 0 ? value : throw new ArgumentException($"Invalid {title}: {Text.Number(value)}");
    }

    private static double Number(IReadOnlyDictionary<string, object> options, string option, double other = 0)
        => options.TryGetValue(option, out var value) ? Convert.ToDouble(value, null) : other;

    private static bool Flag(IReadOnlyDictionary<string, object> options, string option)
        => options.TryGetValue(option, out var value) && Convert.ToBoolean(value, null);
}
