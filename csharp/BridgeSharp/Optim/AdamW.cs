using System.Collections;
using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Adam with decoupled weight decay.</summary>
/// <remarks>Spec: R9.3. Source: torch/optim/adamw.py</remarks>
public sealed class AdamW : Adam
{
    internal static new readonly Schema Schema = new(
        "AdamW",
        "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused decoupled_weight_decay",
        "lr betas eps weight_decay amsgrad foreach maximize capturable",
        options => options.Adam(),
        ("lr", 1e-3), ("betas", (0.9, 0.999)), ("eps", 1e-8), ("weight_decay", 0.01), ("amsgrad", false), ("maximize", false),
        ("decoupled_weight_decay", true));

    /// <summary>Make an optimizer for parameters.</summary>
    /// <param name="parameters">What it updates.</param>
    /// <param name="lr">The learning rate.</param>
    /// <param name="beta1">The decay of the first moment.</param>
    /// <param name="beta2">The decay of the second moment.</param>
    /// <param name="eps">Added to the denominator.</param>
    /// <param name="weight_decay">The L2 penalty.</param>
    /// <param name="amsgrad">Divide by the largest second moment so far.</param>
    /// <param name="maximize">Climb instead of descend.</param>
    /// <param name="reference">Whose formula: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">No parameters, an option out of range, or another reference.</exception>
    public AdamW(
        IEnumerable<Parameter> parameters,
        double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0.01,
        bool amsgrad = false, bool maximize = false, string reference = "2.10")
        : this(One(parameters, own => new ParamGroup(own)), lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, reference)
    {
    }

    /// <inheritdoc cref="AdamW(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, string)"/>
    public AdamW(
        IEnumerable<ParamGroup> parameters,
        double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0.01,
        bool amsgrad = false, bool maximize = false, string reference = "2.10")
        : this(parameters, Options.Of(
            ("lr", lr), ("betas", (beta1, beta2)), ("eps", eps), ("weight_decay", weight_decay), ("amsgrad", amsgrad),
            ("maximize", maximize)), reference)
    {
    }

    internal AdamW(IEnumerable<ParamGroup> parameters, IReadOnlyDictionary<string, object?> options, string reference)
        : base(Schema, parameters, options, reference)
    {
    }

    /// <inheritdoc/>
    private protected override string? Refusal(Tensor gradient, Optim.ParamGroup group)
        => Old && gradient.is_sparse ? "AdamW does not support sparse gradients" : base.Refusal(gradient, group);

    /// <inheritdoc/>
    private protected override bool Decoupled(ParamGroup group) => true;

    /// <inheritdoc/>
    private protected override Options Loaded(IDictionary saved, Optim.ParamGroup group, int index)
    {
        var result = base.Loaded(saved, group, index);
        if (!Old)
        {
            result["decoupled_weight_decay"] = true;
        }

        return result;
    }
}
