using TorchSharp;
using TorchSharp.Modules;
using static TorchSharp.torch;

namespace BridgeSharp.Optim;

/// <summary>Adam, and AdamW where its weight decay is decoupled.</summary>
/// <remarks>
/// The first moment moves by <c>lerp_</c>, in PyTorch 1.13 by <c>mul_</c> and <c>add_</c>. Spec: R9.3. Source: torch/optim/adam.py
/// </remarks>
public class Adam : Optimizer, optim.IBetas
{
    internal static readonly Schema Schema = new(
        "Adam",
        "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused decoupled_weight_decay",
        "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused",
        options => options.Adam(),
        ("lr", 1e-3), ("betas", (0.9, 0.999)), ("eps", 1e-8), ("weight_decay", 0.0), ("amsgrad", false), ("maximize", false),
        ("decoupled_weight_decay", false));

    /// <summary>Make an optimizer for parameters.</summary>
    /// <param name="parameters">What it updates.</param>
    /// <param name="lr">The learning rate.</param>
    /// <param name="beta1">The decay of the first moment.</param>
    /// <param name="beta2">The decay of the second moment.</param>
    /// <param name="eps">Added to the denominator.</param>
    /// <param name="weight_decay">The L2 penalty.</param>
    /// <param name="amsgrad">Divide by the largest second moment so far.</param>
    /// <param name="maximize">Climb instead of descend.</param>
    /// <param name="decoupled_weight_decay">Shrink the parameter itself, as AdamW does.</param>
    /// <param name="reference">Whose formula: PyTorch <c>"2.10"</c> or <c>"1.13"</c>.</param>
    /// <exception cref="ArgumentException">No parameters, an option out of range, or another reference.</exception>
    public Adam(
        IEnumerable<Parameter> parameters,
        double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
        bool amsgrad = false, bool maximize = false, bool decoupled_weight_decay = false, string reference = "2.10")
        : this(One(parameters, own => new ParamGroup(own)), lr, beta1, beta2, eps, weight_decay, amsgrad, maximize, decoupled_weight_decay, reference)
    {
    }

    /// <inheritdoc cref="Adam(IEnumerable{Parameter}, double, double, double, double, double, bool, bool, bool, string)"/>
    public Adam(
        IEnumerable<ParamGroup> parameters,
        double lr = 1e-3, double beta1 = 0.9, double beta2 = 0.999, double eps = 1e-8, double weight_decay = 0,
        bool amsgrad = false, bool maximize = false, bool decoupled_weight_decay = false, string reference = "2.10")
        : this(parameters, Options.Of(
            ("lr", lr), ("betas", (beta1, beta2)), ("eps", eps), ("weight_decay", weight_decay), ("amsgrad", amsgrad),
            ("maximize", maximize), ("decoupled_weight_decay", decoupled_weight_decay)), reference)
    {
    }

    internal Adam(IEnumerable<ParamGroup> parameters, IReadOnlyDictionary<string, object?> options, string reference)
        : base(Schema, parameters, options, reference)
    {
    }

    private protected Adam(Schema schema, IEnumerable<ParamGroup> parameters, IReadOnlyDictionary<string, object?> options, string reference)
        : base(schema, parameters, options, reference)
    {
    }

    /// <inheritdoc/>
    public (double, double) Betas
    {
        get => ((double, double))Defaults["betas"]!;
        set => Defaults["betas"] = value;
    }

    /// <inheritdoc/>
    private protected override string? Refusal(Tensor gradient, Optim.ParamGroup group)
        => gradient.is_sparse ? "Adam does not support sparse gradients, please consider SparseAdam instead" : null;

    /// <summary>Tell whether weight decay shrinks the parameter itself.</summary>
    private protected virtual bool Decoupled(ParamGroup group) => group.decoupled_weight_decay;

    /// <inheritdoc/>
    private protected override IEnumerable<(string Name, Func<object?> Make)> Start(Parameter parameter, Tensor gradient, Optim.ParamGroup group)
    {
        yield return ("step", () => Formulas.Number(0, Old));
        yield return ("exp_avg", () => Formulas.Zeros(parameter));
        yield return ("exp_avg_sq", () => Formulas.Zeros(parameter));
        if (((ParamGroup)group).amsgrad)
        {
            yield return ("max_exp_avg_sq", () => Formulas.Zeros(parameter));
        }
    }

    /// <inheritdoc/>
    private protected override void Update(Parameter parameter, Tensor gradient, ParameterState state, Optim.ParamGroup group)
    {
        var own = (ParamGroup)group;
        var (beta1, beta2) = own.betas;
        var step = state.Step();
        var move = Formulas.Decayed(gradient, parameter, own.maximize, own.lr, own.weight_decay, Decoupled(own));
        Formulas.Move(state.Tensor("exp_avg"), move, beta1, Old);
        var square = Formulas.MoveSquare(state.Tensor("exp_avg_sq"), move, beta2);
        if (own.amsgrad)
        {
            square = state.Tensor("max_exp_avg_sq").copy_(maximum(state.Tensor("max_exp_avg_sq"), square));
        }

        var correction1 = 1 - Math.Pow(beta1, step);
        var root = Formulas.Root(1 - Math.Pow(beta2, step), Old);
        var denominator = (square.sqrt() / root).add_(own.eps);
        parameter.addcdiv_(state.Tensor("exp_avg"), denominator, value: -(own.lr / correction1));
    }

    /// <summary>Parameters with options of their own; those that are not given are the optimizer's.</summary>
    public sealed class ParamGroup : Optim.ParamGroup, optim.IBetas
    {
        /// <summary>Make a group.</summary>
        /// <param name="parameters">The parameters.</param>
        /// <param name="lr">The learning rate.</param>
        /// <param name="beta1">The decay of the first moment.</param>
        /// <param name="beta2">The decay of the second moment.</param>
        /// <param name="eps">Added to the denominator.</param>
        /// <param name="weight_decay">The L2 penalty.</param>
        /// <param name="amsgrad">Divide by the largest second moment so far.</param>
        /// <param name="maximize">Climb instead of descend.</param>
        /// <param name="decoupled_weight_decay">Shrink the parameter itself, as AdamW does.</param>
        public ParamGroup(
            IEnumerable<Parameter> parameters,
            double? lr = null, double? beta1 = null, double? beta2 = null, double? eps = null,
            double? weight_decay = null, bool? amsgrad = null, bool? maximize = null,
            bool? decoupled_weight_decay = null)
            : base(
                parameters,
                ("lr", lr), ("betas", Two("betas", beta1, beta2)), ("eps", eps), ("weight_decay", weight_decay),
                ("amsgrad", amsgrad), ("maximize", maximize), ("decoupled_weight_decay", decoupled_weight_decay))
        {
        }

        /// <summary>The decays of both moments.</summary>
        public (double, double) betas
        {
            get => Pair("betas");
            set => this["betas"] = value;
        }

        /// <summary>Added to the denominator.</summary>
        public double eps
        {
            get => Number("eps");
            set => this["eps"] = value;
        }

        /// <summary>The L2 penalty.</summary>
        public double weight_decay
        {
            get => Number("weight_decay");
            set => this["weight_decay"] = value;
        }

        /// <summary>Divide by the largest second moment so far.</summary>
        public bool amsgrad
        {
            get => Flag("amsgrad");
            set => this["amsgrad"] = value;
        }

        /// <summary>Climb instead of descend.</summary>
        public bool maximize
        {
            get => Flag("maximize");
            set => this["maximize"] = value;
        }

        /// <summary>Shrink the parameter itself, as AdamW does.</summary>
        public bool decoupled_weight_decay
        {
            get => Flag("decoupled_weight_decay");
            set => this["decoupled_weight_decay"] = value;
        }

        (double, double) optim.IBetas.Betas
        {
            get => betas;
            set => betas = value;
        }
    }
}
