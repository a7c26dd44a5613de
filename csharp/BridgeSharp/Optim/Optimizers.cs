using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Optimizers by name, with the same options in both languages.</summary>
public static class Optimizers
{
    private static readonly Dictionary<string, (Schema Schema, Make Make)> Known = new()
    {
        ["sgd"] = (SGD.Schema, (own, options, reference) => new SGD([new SGD.ParamGroup(own)], options, reference)),
        ["adam"] = (Adam.Schema, (own, options, reference) => new Adam([new Adam.ParamGroup(own)], options, reference)),
        ["adamw"] = (AdamW.Schema, (own, options, reference) => new AdamW([new Adam.ParamGroup(own)], options, reference)),
        ["rmsprop"] = (RMSProp.Schema, (own, options, reference) => new RMSProp([new RMSProp.ParamGroup(own)], options, reference)),
        ["adagrad"] = (Adagrad.Schema, (own, options, reference) => new Adagrad([new Adagrad.ParamGroup(own)], options, reference)),
        ["adamax"] = (Adamax.Schema, (own, options, reference) => new Adamax([new Adamax.ParamGroup(own)], options, reference)),
        ["nadam"] = (NAdam.Schema, (own, options, reference) => new NAdam([new NAdam.ParamGroup(own)], options, reference)),
        ["radam"] = (RAdam.Schema, (own, options, reference) => new RAdam([new RAdam.ParamGroup(own)], options, reference)),
        ["asgd"] = (ASGD.Schema, (own, options, reference) => new ASGD([new ASGD.ParamGroup(own)], options, reference)),
        ["adadelta"] = (Adadelta.Schema, (own, options, reference) => new Adadelta([new Adadelta.ParamGroup(own)], options, reference)),
        ["rprop"] = (Rprop.Schema, (own, options, reference) => new Rprop([new Rprop.ParamGroup(own)], options, reference)),
        ["lbfgs"] = (LBFGS.Schema, (own, options, reference) => new LBFGS([new LBFGS.ParamGroup(own)], options, reference)),
    };

    private delegate Optimizer Make(IReadOnlyList<Parameter> parameters, Options options, string reference);

    /// <summary>Make an optimizer by its name, with PyTorch's defaults.</summary>
    /// <remarks>Spec: R9.1.</remarks>
    /// <param name="name">The class in lower case: <c>"sgd"</c>, <c>"adam"</c>, <c>"adamw"</c>, <c>"rmsprop"</c>, and so on.</param>
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

        var possible = known.Schema.Known(reference);
        var given = new Options();
        foreach (var (option, value) in options ?? new Dictionary<string, object>())
        {
            given[option] = possible.Contains(option)
                ? value
                : throw new ArgumentException($"optimizer: expected options of {name} ({string.Join(", ", possible)}), got '{option}'");
        }

        return known.Make(Optimizer.NotEmpty(parameters), given, reference);
    }
}
